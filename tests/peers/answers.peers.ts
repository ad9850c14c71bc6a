/**
 * What the reference answers, asked of the reference itself: the recorded answers must be its own.
 *
 * `RECORD=1 npm run test:peers` writes them anew.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import {
  answerAsAppview,
  APPVIEW,
  ask,
  populate,
  rows,
  type Told,
  type World,
} from '../system/conformance/questions.ts'
import recorded from '../system/conformance/reference-answers.json'
import { basic } from '../support/clients/http.ts'
import { startPlcServer, type PlcHost } from '../support/servers/plc-server.ts'
import { startUpstream, type Upstream } from '../support/servers/upstream.ts'
import { startPostOffice, type PostOffice } from './post-office.ts'
import { REFERENCE_ADMIN_PASSWORD, startReference, type Reference } from './reference.ts'

const RECORDS = join(import.meta.dir, '../system/conformance/reference-answers.json')
const isRecording = process.env['RECORD'] === '1'

let plc: PlcHost
let post: PostOffice
let appview: Upstream
let reference: Reference
let world: World
beforeAll(async () => {
  ;[plc, post] = await Promise.all([startPlcServer(), startPostOffice()])
  appview = startUpstream()
  answerAsAppview(appview)
  reference = await startReference({
    plcUrl: plc.url,
    smtpUrl: post.url,
    handleDomain: '.test',
    appview: { url: appview.url, did: APPVIEW },
  })
  world = await populate(reference.url, basic('admin', REFERENCE_ADMIN_PASSWORD))
}, 120_000)
afterAll(async () => {
  await reference[Symbol.asyncDispose]()
  await Promise.all([plc, post, appview].map((server) => server[Symbol.asyncDispose]()))
})

test('the recorded answers are those of the reference', async () => {
  const answers: Record<string, Told> = {}
  for (const [name, step] of rows) answers[name] = await ask(world, step)
  if (isRecording) await Bun.write(RECORDS, `${JSON.stringify(answers, null, 1)}\n`)
  else expect<object>(answers).toEqual(recorded)
}, 120_000)
