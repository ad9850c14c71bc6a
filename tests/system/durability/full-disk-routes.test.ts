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
import { fixedIssuer, issuerKey } from '../../support/servers/issuer.ts'
import { ADMIN_TOKEN, MASTER_KEY } from '../../support/servers/config.ts'
import { liftFileLimit, limitFiles } from '../../support/faults/process-limits.ts'
import { freePort } from '../../support/ports.ts'
import { NOTICE_AUTHORITY } from '../../support/clients/service-signer.ts'
import { loggedMails } from '../../support/servers/mail.ts'
import { startProgram } from '../../support/servers/program.ts'
import { setUp } from '../../support/set-up.ts'
import { faultOfRefusal, strangers } from './refused-routes.ts'
import { writingRoutes, type Send } from './writing-routes.ts'
import { useWorldOnFile } from '../../support/file-world.ts'

/** A hundred and fifty requests are prepared, each for an account of its own. */
setDefaultTimeout(120_000)

const RELAY = 'ea4a6c63e29c520abef5507b132ec5f9954776aebebe7b92421eea691446d22c'
/** No file may grow, nor be written beyond this. */
const LIMIT_BYTES = 1
/** Programs that wait for their owner may ask once in five seconds. */
const POLL_SECS = 6

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

const issuer = issuerKey('idp-1')
const folder = mkdtempSync(join(tmpdir(), 'holdfast-full-disk-'))
const {
  pds,
  plc: directory,
  web,
} = useWorldOnFile({
  plc: true,
  web: [],
  config: {
    signingKeyMasterKey: MASTER_KEY,
    rateLimit: { enabled: false },
    accounts: { passwordOptional: true },
    waitlist: { enabled: true },
    notifications: { relay: RELAY },
    formerUrls: ['http://former.test'],
    archives: { folder: join(folder, 'archives') },
    alerts: { mailTo: ['operator@example.org'] },
    spaces: { enabled: true },
    cases: { noticeAuthorities: [NOTICE_AUTHORITY] },
    agentAuth: { anonymousEnabled: true, serviceAuthEnabled: true, trustedIssuers: [fixedIssuer([issuer])] },
  },
})
/** A process of its own, because the limit is that of a process. */
const old = setUp(async () => {
  const env = {
    PORT: String(await freePort()),
    SERVICE_DATA_DIR: join(folder, 'old'),
    SERVICE_PLC_DIRECTORY_URL: directory.url,
    SERVICE_RATE_LIMIT_ENABLED: 'false',
    SERVICE_LOG_FORMAT: 'json',
  }
  return startProgram(['dev'], env, folder)
})
afterAll(() => rmSync(folder, { recursive: true }))
let names: string[]
const full = new Map<string, Answer>()
/** Of what reads, as an account holder and as the operator. */
const read: [name: string, status: number][] = []
const after = new Map<string, Answer>()
beforeAll(async () => {
  const alice = await createAccount(pds, 'alice')
  const prepared: [name: string, send: Send][] = []
  const other = {
    url: old.url,
    get mails() {
      return loggedMails(old)
    },
  }
  for (const [name, prepare] of Object.entries(writingRoutes({ pds, old: other, directory, web, issuer })))
    prepared.push([name, await prepare()])
  names = prepared.map(([name]) => name)
  await pds.ctx.background.settled()
  // This process is the server, and so are its files.
  limitFiles(process.pid, LIMIT_BYTES)
  try {
    for (const [name, send] of prepared) full.set(name, await send())
    full.set('/readyz', await request(`${pds.url}/readyz`))
    for (const [name, path] of readsOf(alice))
      for (const headers of [bearer(alice.accessJwt), basic('admin', ADMIN_TOKEN)])
        read.push([name, (await request(`${pds.url}${path}`, { headers })).status])
  } finally {
    liftFileLimit(process.pid)
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
