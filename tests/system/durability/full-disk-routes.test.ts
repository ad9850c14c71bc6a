/**
 * Every endpoint that writes, on a disk that takes nothing: each says so in the format of its surface, and the same
 * request succeeds once there is room.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { features } from '../../../src/features.ts'
import { endpointName } from '../../../src/http/endpoint.ts'
import { servedMethods } from '../conformance/served-methods.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { basic, bearer, request, type Answer } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { liftFileLimit, limitFiles } from '../../support/faults/process-limits.ts'
import { faultOfRefusal, strangers } from './refused-routes.ts'
import { POLL_SECS, useWritingWorld } from './writing-world.ts'

/** A hundred and fifty requests are prepared, each for an account of its own. */
setDefaultTimeout(120_000)

/** No file may grow, nor be written beyond this. */
const LIMIT_BYTES = 1

/** The endpoints that read, with their paths. */
function readsOf({ did, handle }: TestAccount): [name: string, path: string][] {
  const services = { appview: 'did:web:appview.test#bsky_appview', reports: 'did:web:reports.test#atproto_labeler' }
  const methods = servedMethods({ did, handle, ...services })
  return features
    .flatMap(({ routes = [] }) => routes)
    .flatMap((endpoint): [string, string][] => {
      const name = endpointName(endpoint)
      if (endpoint.kind === 'route' && endpoint.method === 'GET')
        return [[name, endpoint.path.replace(':did', did).replaceAll(/:\w+/g, 'something')]]
      if (endpoint.kind !== 'query') return []
      return [[name, `/xrpc/${name}?${new URLSearchParams(methods.find(({ nsid }) => nsid === name)?.query)}`]]
    })
}

/** This process is the server, and so are its files. */
function fullDisk(): Disposable {
  limitFiles(process.pid, LIMIT_BYTES)
  return { [Symbol.dispose]: () => liftFileLimit(process.pid) }
}

/** Standard error may be a file too, which cannot grow either: what is printed meanwhile is printed afterwards. */
function printedLater(): Disposable {
  const { write } = process.stderr
  const texts: string[] = []
  process.stderr.write = ((text: string) => texts.push(text) > 0) as typeof write
  return {
    [Symbol.dispose]() {
      process.stderr.write = write
      for (const text of texts) process.stderr.write(text)
    },
  }
}

const folder = mkdtempSync(join(tmpdir(), 'holdfast-full-disk-'))
const { pds, prepare } = useWritingWorld(folder)
afterAll(() => rmSync(folder, { recursive: true }))
let names: string[]
const full = new Map<string, Answer>()
/** Of what reads, as an account holder and as the operator. */
const read: [name: string, status: number][] = []
const after = new Map<string, Answer>()
beforeAll(async () => {
  const alice = await createAccount(pds, 'alice')
  const prepared = await prepare()
  names = prepared.map(([name]) => name)
  {
    using _printed = printedLater()
    using _full = fullDisk()
    for (const [name, send] of prepared) full.set(name, await send())
    full.set('/readyz', await request(`${pds.url}/readyz`))
    for (const [name, path] of readsOf(alice))
      for (const headers of [bearer(alice.accessJwt), basic('admin', ADMIN_TOKEN)])
        read.push([name, (await request(`${pds.url}${path}`, { headers })).status])
  }
  pds.clock.advance({ secs: POLL_SECS })
  for (const [name, send] of prepared) after.set(name, await send())
})

test('no request is answered as if it had been done, nor as a fault of the server', () => {
  const faults = names.map((name) => faultOfRefusal(name, full.get(name)!)).filter((fault) => fault !== null)
  expect(faults).toEqual([])
})

test('what reads is not told as a fault of the server either', () => {
  expect(read.length).toBeGreaterThan(100)
  expect(read.filter(([, status]) => status === 500)).toEqual([])
  const still = [
    'com.atproto.sync.getRepo',
    'com.atproto.repo.describeRepo',
    'com.atproto.server.getSession',
    'GET /account/sign-in',
  ]
  for (const name of still) expect(read).toContainEqual([name, 200])
})

test('nothing was used up by it: the same request succeeds once there is room', () => {
  const faults = names.flatMap((name) => {
    const { status, body } = after.get(name)!
    return status < 400 ? [] : [[name, status, body]]
  })
  expect(faults).toEqual([])
})

test('the server was not ready, and is again', async () => {
  expect(full.get('/readyz')).toMatchObject({ status: 503, body: { reason: 'the database cannot be written' } })
  pds.clock.advance({ secs: POLL_SECS })
  expect(await request(`${pds.url}/readyz`)).toMatchObject({ status: 200 })
})

test('every endpoint that writes is among them', () => {
  expect(strangers(names)).toEqual([[], []])
})
