/** Answers are those of the reference, as they were recorded from it, but for the deviations that are listed. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { basic } from '../../support/clients/http.ts'
import { ADMIN_TOKEN, startPds, type TestPds } from '../../support/servers/pds.ts'
import { startUpstream, type Upstream } from '../../support/servers/upstream.ts'
import {
  answerAsAppview,
  APPVIEW,
  ask,
  deviations,
  expectAnswer,
  populate,
  rows,
  type Told,
  type World,
} from './questions.ts'
import recorded from './reference-answers.json'

let appview: Upstream
let pds: TestPds
let world: World
beforeAll(async () => {
  appview = startUpstream()
  answerAsAppview(appview)
  pds = await startPds({ rateLimit: { enabled: false }, appview: { url: appview.url, did: `${APPVIEW}#bsky_appview` } })
  world = await populate(pds.url, basic('admin', ADMIN_TOKEN))
})
afterAll(async () => {
  await pds[Symbol.asyncDispose]()
  await appview[Symbol.asyncDispose]()
})

const answers = new Map(Object.entries(recorded as Record<string, Told>))

test.each(rows)('%s', async (name, step) => {
  expectAnswer(name, await ask(world, step), answers.get(name)!)
})

test('every question has one name, one recorded answer, and no deviation is about nothing', () => {
  const names = rows.map(([name]) => name)
  expect(new Set(names).size).toBe(names.length)
  expect([...answers.keys()].toSorted()).toEqual(names.toSorted())
  expect([...deviations.keys()].filter((name) => !names.includes(name))).toEqual([])
})
