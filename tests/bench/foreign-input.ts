/**
 * How long the server stands still for the largest input of others that it takes, in milliseconds of its processor.
 *
 *   bun tests/bench/foreign-input.ts
 *
 * Nothing should hold up everybody else for more than some 50 ms. ROOT names another tree than this one.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Data } from '../../src/protocol/cbor.ts'
import { discoverableClient } from '../../src/protocol/client-validation.ts'
import { cidOfBlob } from '../../src/protocol/cid.ts'
import { parseDidDocument } from '../../src/protocol/did-document.ts'
import type { Did } from '../../src/protocol/identifiers.ts'
import { signingKey } from '../../src/protocol/keys.ts'
import { parseAuditLog } from '../../src/protocol/plc.ts'
import { nextTid } from '../../src/protocol/tid.ts'
import { createAccount, type TestAccount } from '../support/clients/account.ts'
import { archiveOf, post } from '../support/archive.ts'
import { bearer } from '../support/clients/http.ts'
import { readOutput } from '../support/servers/program.ts'
import type { LoopStalls } from './loop-stalls.ts'

const ROOT = process.env['ROOT'] ?? join(import.meta.dir, '../..')
const key = signingKey('p256', new Uint8Array(32).fill(7))
const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'))

let answer: () => Response = () => Response.json({})
const appview = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => answer() })
let told: (stalls: LoopStalls) => void = () => undefined
const child = Bun.spawn(
  [process.execPath, '--preload', join(import.meta.dir, 'loop-stalls.ts'), join(ROOT, 'src/main.ts'), 'dev'],
  {
    cwd: folder,
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: folder,
      PORT: '0',
      SERVICE_PUBLIC_URL: 'http://localhost:2583',
      SERVICE_RATE_LIMIT_ENABLED: 'false',
      SERVICE_APPVIEW_URL: `http://127.0.0.1:${appview.port}`,
      SERVICE_APPVIEW_DID: 'did:web:appview.test#bsky_appview',
    },
    stdout: 'pipe',
    stderr: 'inherit',
    ipc: (message: LoopStalls) => told(message),
  },
)
const url = await readOutput(child.stdout, null).listening

function stalls(): Promise<LoopStalls> {
  const { promise, resolve } = Promise.withResolvers<LoopStalls>()
  told = resolve
  child.send('tell')
  return promise
}

console.log('| Input | Longest | Response |\n| --- | ---: | --- |')
const row = (name: string, millis: number, response: string) =>
  console.log(`| ${name} | ${millis.toFixed(1)} ms | ${response} |`)

async function served(name: string, ask: () => Promise<Response>): Promise<void> {
  await Bun.sleep(200)
  await stalls()
  const response = await ask()
  const bytes = (await response.arrayBuffer()).byteLength
  await Bun.sleep(50)
  row(name, (await stalls()).longest, `${response.status}, ${bytes} bytes`)
}

let accounts = 0
const newAccount = (): Promise<TestAccount> => createAccount({ url }, `account-${accounts++}`)
const call = (
  nsid: string,
  { accessJwt }: TestAccount,
  body: string | Uint8Array<ArrayBuffer>,
  type = 'application/json',
) => fetch(`${url}/xrpc/${nsid}`, { method: 'POST', headers: { 'content-type': type, ...bearer(accessJwt) }, body })

async function imported(name: string, records: Record<string, Data>): Promise<void> {
  const account = await newAccount()
  const { bytes } = archiveOf(account.did, nextTid(null, Date.now() * 1000, 7), records, key)
  const car = 'application/vnd.ipld.car'
  await served(`importRepo: ${name}`, () =>
    call('com.atproto.repo.importRepo', account, bytes as Uint8Array<ArrayBuffer>, car),
  )
}
const large = (count: number, more: Record<string, Data>): Record<string, Data> =>
  Object.fromEntries(
    Array.from({ length: count }, (_, n) => [`com.example.large/k${n}`, { $type: 'com.example.large', n, ...more }]),
  )

await imported(
  '50,000 posts',
  Object.fromEntries(Array.from({ length: 50_000 }, (_, i) => [`app.bsky.feed.post/k${i}`, post(`${i}`.padEnd(100))])),
)
await imported('10 records of 1 MiB of integers', large(10, { ints: Array.from({ length: 1_000_000 }, () => 0) }))
const blobs = Array.from({ length: 9000 }, (_, i) => ({
  $type: 'blob',
  ref: cidOfBlob(Buffer.from(`${i}`)),
  mimeType: 'image/png',
  size: 1,
}))
await imported('90,000 references to blobs', large(10, { blobs }))

const writer = await newAccount()
const $type = 'com.example.large'
const create = (record: object) =>
  call(
    'com.atproto.repo.createRecord',
    writer,
    JSON.stringify({ repo: writer.did, collection: $type, record: { $type, ...record } }),
  )
await served('createRecord: 490,000 integers', () => create({ ints: Array.from({ length: 490_000 }, () => 0) }))
await served('createRecord: 70,000 members', () =>
  create(Object.fromEntries(Array.from({ length: 70_000 }, (_, i) => [`k${i}`, 0]))),
)
for (let n = 0; n < 30; n++) await (await create({ n, ints: Array.from({ length: 490_000 }, () => 0) })).arrayBuffer()
await served('listRecords: 30 of 490,000 integers', () =>
  fetch(`${url}/xrpc/com.atproto.repo.listRecords?repo=${writer.did}&collection=${$type}&limit=100`),
)

const rev = ((await (await create({ first: true })).json()) as { commit: { rev: string } }).commit.rev
await (await create({ second: true })).arrayBuffer()
const timelines = { posts: [], 'empty lists': Array.from({ length: 3_300_000 }, () => []) }
for (const [name, filler] of Object.entries(timelines)) {
  const text = JSON.stringify({ feed: [], filler })
  answer = () => new Response(text, { headers: { 'content-type': 'application/json', 'atproto-repo-rev': rev } })
  await served(`getTimeline: ${(text.length / 1e6).toFixed(0)} MB of ${name}`, () =>
    fetch(`${url}/xrpc/app.bsky.feed.getTimeline`, { headers: bearer(writer.accessJwt) }),
  )
}

const preferences = Array.from({ length: 1800 }, () => ({
  $type: 'app.bsky.actor.defs#adultContentPref',
  enabled: true,
}))
await served('putPreferences: 1,800', () =>
  call('app.bsky.actor.putPreferences', writer, JSON.stringify({ preferences })),
)

// The channel to its parent would keep it alive.
child.kill('SIGKILL')
await child.exited
void appview.stop(true)
rmSync(folder, { recursive: true, force: true })

// What is fetched from hosts that strangers name is measured where it is read.

const DOCUMENT_BYTES = 64 * 1024 - 1000

/** As many of these as fit into so many bytes of JSON. */
function filled(make: (i: number) => unknown, maxBytes = DOCUMENT_BYTES): unknown[] {
  const items: unknown[] = []
  for (let bytes = 2; ;) {
    const item = make(items.length)
    bytes += JSON.stringify(item).length + 1
    if (bytes > maxBytes) return items
    items.push(item)
  }
}

function parsed(name: string, parse: () => unknown): void {
  const used = () => (process.threadCpuUsage().user + process.threadCpuUsage().system) / 1000
  const before = used()
  parse()
  row(name, used() - before, '')
}

const clientId = 'https://app.example.com/client.json'
const client = {
  client_id: clientId,
  redirect_uris: ['https://app.example.com/callback'],
  response_types: ['code'],
  grant_types: ['authorization_code'],
  scope: 'atproto',
  token_endpoint_auth_method: 'none',
  dpop_bound_access_tokens: true,
}
parsed('client metadata: ordinary, the first time', () => discoverableClient(clientId, client))
parsed('client metadata: keys that are none', () =>
  discoverableClient(clientId, { ...client, jwks: { keys: filled(() => ({})) } }),
)
parsed('client metadata: redirect URIs', () =>
  discoverableClient(clientId, { ...client, redirect_uris: filled((i) => `https://app.example.com/${i}`) }),
)
const did = 'did:web:example.com' as Did
const multikey = {
  type: 'Multikey',
  controller: did,
  publicKeyMultibase: 'zDnaembgSGUhZULN2Caob4HLJPaxBh92N7rtH21TErzqf8HQo',
}
parsed('DID document: keys', () =>
  parseDidDocument({ id: did, verificationMethod: filled((i) => ({ id: `#${i}`, ...multikey })) }, did),
)
parsed('DID document: names', () => parseDidDocument({ id: did, alsoKnownAs: filled(() => 'at://a.b') }, did))
const operation = { sig: 'x', prev: null, type: 'create', signingKey: 'a', recoveryKey: 'b', handle: 'c', service: 'd' }
const entry = {
  did,
  operation,
  cid: 'bafyreibfvkh3n6odvdpwj54j4xxdsgnn4zo5utbyf7z7nfbyikhtygzjcq',
  nullified: false,
  createdAt: '2024-01-01T00:00:00.000Z',
}
const log = JSON.stringify(filled(() => entry, 4 * 1024 ** 2))
parsed('PLC log of 4 MiB', () => parseAuditLog(JSON.parse(log)))
process.exit(0)
