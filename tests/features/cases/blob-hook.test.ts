/** The program of the operator that is asked about blobs before they become public. */
import { beforeEach, expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { connect } from 'node:net'
import { Secret } from '../../../src/base/secret.ts'
import { cidOfBlobDigest } from '../../../src/protocol/cid.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { roleHolder } from '../../support/clients/role-holder.ts'
import { Uploader } from '../../support/clients/uploader.ts'
import { startPds } from '../../support/servers/pds.ts'
import type { Answerer } from '../../support/servers/upstream.ts'
import { atOneNode } from '../../support/turns.ts'
import { until } from '../../support/until.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const KEY = Buffer.alloc(32, 7)
const hook = { secret: new Secret(`whsec_${KEY.toString('base64')}`), timeoutSecs: 1, maxBytes: 1000, parallel: 2 }
const { pds, other } = useWorld({
  other: true,
  config: ({ other }) => ({
    rateLimit: { enabled: false },
    blobHook: { ...hook, url: `${other.url}/xrpc/hook` },
  }),
})
const mona = setUp(() => roleHolder(pds, 'mona', 'moderator'))
const alice = setUp(() => Uploader.join(pds, 'alice'))

let count = 0
const text = () => `picture ${++count}`
const says = (answer: object | Answerer) =>
  other.answer('hook', typeof answer === 'function' ? (answer as Answerer) : () => Response.json(answer))
beforeEach(() => says({ decision: 'allow' }))
const refused = { status: 400, body: { error: 'BlobRefused' } }
const unavailable = { status: 503, body: { error: 'ServiceUnavailable' } }

test('the program gets the blob, signed, once, and its account', async () => {
  let got: { headers: Headers; body: string } | null = null
  says(async (incoming: Request) => {
    got = { headers: incoming.headers, body: await incoming.text() }
    return Response.json({ decision: 'allow' })
  })
  const content = text()
  const blob = await alice.upload(content, 'text/plain')
  const { headers, body } = got!
  const id = headers.get('webhook-id')
  const signed = createHmac('sha256', KEY)
    .update(`${id}.${headers.get('webhook-timestamp')}.${body}`)
    .digest('base64')
  expect(headers.get('webhook-signature')).toBe(`v1,${signed}`)
  expect(headers.has('authorization')).toBe(false)
  expect(JSON.parse(body)).toMatchObject({
    type: 'blob.check',
    data: {
      did: alice.did,
      cid: blob.ref.$link,
      size: content.length,
      bytes: Buffer.from(content).toString('base64'),
      isWhole: true,
    },
  })
  await alice.upload(content, 'text/plain')
  expect(other.received).toHaveLength(1)
})

test('what is refused is not there, and may be asked about again', async () => {
  says({ decision: 'refuse', reason: 'bad' })
  const content = text()
  const answer = await alice.post(content)
  expect(answer).toMatchObject(refused)
  expect(JSON.stringify(answer.body)).not.toContain('bad')
  const cid = cidOfBlobDigest(new Bun.CryptoHasher('sha256').update(content).digest()).toString()
  expect(await pds.count('blob', { did: alice.did, cid })).toBe(0)
  says({ decision: 'allow' })
  await alice.upload(content)
})

test('what is set aside is taken, is readable to moderators alone, and is a case', async () => {
  says({ decision: 'quarantine', reason: 'looks <b>odd\u202e' })
  const content = text()
  const blob = await alice.upload(content)
  const cid = blob.ref.$link
  await alice.refer('com.example.note/odd', blob)
  for (const headers of [{}, bearer(alice.token)] as Record<string, string>[])
    expect((await alice.read(cid, headers)).status).toBe(400)
  const read = await mona.operate(`/v1/admin/accounts/${alice.did}/data/blob?${new URLSearchParams({ cid })}`)
  expect(read.body).toBe(content)
  const [found] = (await mona.operate('/v1/admin/cases')).body.cases
  expect(found).toMatchObject({ kind: 'blob', subject: `${alice.did}#${cid}` })
  const { body } = await mona.operate(`/v1/admin/cases/${found.id}`)
  expect(body.reports).toMatchObject([{ source: 'check', by: 'blob-hook', text: 'looks <b>odd' }])
})

test('what moderators find nothing wrong with is released, and what they look at longer is not made public by that', async () => {
  says({ decision: 'quarantine', reason: 'odd' })
  const setAside = async () => {
    const blob = await alice.upload(text())
    await alice.refer(`com.example.note/aside-${count}`, blob)
    const cid = blob.ref.$link
    const { cases } = (await mona.operate('/v1/admin/cases')).body
    return { cid, id: cases.find(({ subject }: { subject: string }) => subject.endsWith(cid)).id as number }
  }
  const decide = (id: number, act: string) =>
    mona.operate(`/v1/admin/cases/${id}/decision`, { json: { act, reason: 'Looked at.' } })
  for (const act of ['nothing', 'warn']) {
    const { cid, id } = await setAside()
    expect((await decide(id, act)).status).toBe(200)
    expect([act, (await alice.read(cid)).status]).toEqual([act, 200])
  }
  const { cid, id } = await setAside()
  expect((await decide(id, 'quarantine')).status).toBe(200)
  const { blobs } = (await mona.operate('/v1/admin/blobs/quarantine?limit=100')).body
  expect(blobs.find((one: { cid: string }) => one.cid === cid)).toMatchObject({ atEnd: 'takedown' })
})

const faults: Record<string, Answerer> = {
  'an error': () => new Response('no', { status: 500 }),
  'no decision': () => Response.json({ decision: 'perhaps' }),
  'no JSON': () => new Response('allow'),
  'a redirect': () => Response.redirect('http://127.0.0.1:1/'),
  'too long an answer': () => Response.json({ decision: 'allow', reason: 'x'.repeat(20_000) }),
  silence: (_, { aborted }) => aborted.then(() => new Response()),
}

test.each(Object.keys(faults))('%s is no answer: the upload is refused, and leaves nothing', async (name) => {
  says(faults[name]!)
  const content = text()
  expect(await alice.post(content)).toMatchObject(unavailable)
  says({ decision: 'allow' })
  const blob = await alice.upload(content)
  expect((await alice.read(blob.ref.$link, bearer(alice.token))).status).toBe(200)
})

test('an operator may have uploads go on without an answer', async () => {
  await using open = await startPds({
    rateLimit: { enabled: false },
    blobHook: { ...hook, url: 'http://127.0.0.1:1/', onFailure: 'open' },
  })
  const bob = await Uploader.join(open, 'bob')
  const blob = await bob.upload(text())
  expect((await bob.read(blob.ref.$link, bearer(bob.token))).status).toBe(200)
})

test('who uploads more at once than may wait gets nothing past the program, even if it need not answer', async () => {
  await using open = await startPds({
    rateLimit: { enabled: false },
    blobHook: { ...hook, url: `${other.url}/xrpc/hook`, onFailure: 'open', timeoutSecs: 20 },
  })
  const bob = await Uploader.join(open, 'bob')
  const asked = new Set<string>()
  const { promise: gate, resolve: openGate } = Promise.withResolvers<void>()
  says(async (incoming: Request) => {
    asked.add(((await incoming.json()) as { data: { cid: string } }).data.cid)
    await gate
    return Response.json({ decision: 'allow' })
  })
  const answers = await Promise.all(
    Array.from({ length: 40 }, async () => {
      const answer = await bob.post(text())
      if (answer.status === 503) openGate()
      return answer
    }),
  )
  openGate()
  const taken = answers.filter(({ status }) => status === 200).map(({ body }) => body.blob.ref.$link as string)
  expect(taken.filter((cid) => !asked.has(cid))).toEqual([])
  expect(answers.filter(({ status }) => status === 503).length).toBe(40 - taken.length)
  expect(taken.length).toBeLessThan(40)
})

test('who occupies all requests to other services gets nothing past the program either', async () => {
  await using open = await startPds({
    rateLimit: { enabled: false },
    appview: { url: other.url, did: 'did:web:appview.test#bsky_appview' },
    blobHook: { ...hook, url: `${other.url}/xrpc/hook`, onFailure: 'open' },
  })
  using _ = atOneNode(open, 'each node has its own places')
  const bob = await Uploader.join(open, 'bob')
  const { promise: gate, resolve: openGate } = Promise.withResolvers<Response>()
  const slow = 'app.bsky.graph.getFollows'
  other.answer(slow, () => gate)
  const { hostname, host, port } = new URL(open.url)
  // Not with fetch: it makes no more connections at a time than the server does, in the same process.
  const sockets = Array.from({ length: 300 }, () => {
    const socket = connect({ host: hostname, port: Number(port) })
    socket.write(
      `GET /xrpc/${slow}?actor=${bob.did} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${bob.token}\r\n\r\n`,
    )
    return socket
  })
  await until(() => other.received.length >= 128)
  expect(await bob.post(text())).toMatchObject(unavailable)
  for (const socket of sockets) socket.destroy()
  openGate(new Response())
})

test('a long blob is sent in part, and no more blobs than configured at once', async () => {
  let sent: { size: number; bytes: string; isWhole: boolean } | null = null
  says(async (incoming: Request) => {
    sent = ((await incoming.json()) as { data: typeof sent }).data
    return Response.json({ decision: 'allow' })
  })
  await alice.upload('x'.repeat(5000))
  expect(sent).toMatchObject({ size: 5000, isWhole: false })
  expect(Buffer.from(sent!.bytes, 'base64')).toHaveLength(1000)

  let most = 0
  let now = 0
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>()
  const { promise: gate, resolve: openGate } = Promise.withResolvers<void>()
  says(async () => {
    most = Math.max(most, ++now)
    if (now === hook.parallel) begin()
    await gate
    now--
    return Response.json({ decision: 'allow' })
  })
  const uploads = Array.from({ length: 6 }, () => alice.post(text()))
  await begun
  openGate()
  for (const answer of await Promise.all(uploads)) expect([200, 503]).toContain(answer.status)
  expect(most).toBe(hook.parallel)
})

test('a server without the program asks nobody', async () => {
  await using plain = await startPds({ rateLimit: { enabled: false } })
  const bob = await Uploader.join(plain, 'bob')
  await bob.upload(text())
  expect(other.received).toEqual([])
  expect((await request(`${plain.url}/xrpc/_health`)).status).toBe(200)
})
