/**
 * What look-ups in silence cost everybody else: the 99th percentile of ordinary requests, idle and beside 500 forged
 * service tokens whose issuers nobody answers for.
 *
 *     bun tests/bench/name-flood.ts
 */
import { systemResolver } from '../../src/platform/network/resolver.ts'
import { encodeObject } from '../../src/protocol/jws.ts'
import { createAccount, PASSWORD, xrpc } from '../support/clients/account.ts'
import { raw } from '../support/clients/http.ts'
import { startNameServer } from '../support/servers/name-server.ts'
import { startPds } from '../support/servers/pds.ts'

const ROUNDS = 300
const FLOOD = 500
const FLOOD_PER_SECOND = 50

await using names = await startNameServer()
names.setSilent(true)
await using pds = await startPds(
  { rateLimit: { enabled: false } },
  { resolver: systemResolver({ servers: [names.address] }) },
)
const alice = await createAccount(pds, 'alice')
const collection = 'app.bsky.feed.post'
const record = { $type: collection, text: 'Hello!', createdAt: '2026-01-01T00:00:00.000Z' }
const blob = crypto.getRandomValues(new Uint8Array(50_000))
const { body: made } = await alice.call('com.atproto.repo.createRecord', {
  json: { repo: alice.did, collection, record },
})
const rkey = String(made.uri).split('/').at(-1)!

const kinds: Record<string, () => Promise<{ status: number }>> = {
  createRecord: () => alice.call('com.atproto.repo.createRecord', { json: { repo: alice.did, collection, record } }),
  getRecord: () =>
    xrpc(pds, `com.atproto.repo.getRecord?${new URLSearchParams({ repo: alice.did, collection, rkey })}`),
  uploadBlob: () =>
    alice.call('com.atproto.repo.uploadBlob', {
      method: 'POST',
      body: blob,
      headers: { 'content-type': 'application/octet-stream' },
    }),
  createSession: () =>
    xrpc(pds, 'com.atproto.server.createSession', { json: { identifier: alice.did, password: PASSWORD } }),
}

async function measure(): Promise<Record<string, number[]>> {
  const millis: Record<string, number[]> = {}
  for (let round = 0; round < ROUNDS; round++) {
    for (const [kind, run] of Object.entries(kinds)) {
      const begun = performance.now()
      const { status } = await run()
      if (status !== 200) throw new Error(`${kind} answered ${status}`)
      ;(millis[kind] ??= []).push(performance.now() - begun)
    }
  }
  return millis
}

const percentile = (values: number[], share: number) =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))]!

function forged(index: number): Promise<string> {
  const nsid = 'com.atproto.server.createAccount'
  const token = `${encodeObject({ typ: 'JWT', alg: 'ES256K' })}.${encodeObject({ iss: `did:web:x${index}.example.com`, aud: 'did:web:localhost', exp: 4_000_000_000, lxm: nsid })}.${Buffer.alloc(64, 1).toString('base64url')}`
  const head = [
    `POST /xrpc/${nsid} HTTP/1.1`,
    `Host: ${new URL(pds.url).host}`,
    'Connection: close',
    `Authorization: Bearer ${token}`,
    'Content-Length: 0',
  ]
  return raw(pds.url, `${head.join('\r\n')}\r\n\r\n`, 20_000)
}

await measure()
const idle = await measure()
let isOver = false
const flood = (async () => {
  for (let index = 0; !isOver && index < FLOOD * 4; index++) {
    void forged(index)
    await Bun.sleep(1000 / FLOOD_PER_SECOND)
  }
})()
// The first of them have taken their places by then.
await Bun.sleep(1000)
const beside = await measure()
isOver = true
await flood
for (const kind of Object.keys(kinds)) {
  const [before, during] = [idle[kind]!, beside[kind]!]
  console.log(
    `${kind.padEnd(14)} p50 ${percentile(before, 0.5).toFixed(1)} → ${percentile(during, 0.5).toFixed(1)} ms, p99 ${percentile(before, 0.99).toFixed(1)} → ${percentile(during, 0.99).toFixed(1)} ms`,
  )
}
process.exit(0)
