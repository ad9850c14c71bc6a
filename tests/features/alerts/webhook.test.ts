/** Alerts as they reach a receiver over HTTP, and what becomes of them if it, or the database, is away. */
import { expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { renameSync } from 'node:fs'
import { Secret } from '../../../src/base/secret.ts'
import { lookAtNode } from '../../../src/features/operations/alerts/alert-pass.ts'
import { bearer, request } from '../../support/clients/http.ts'
import type { ConfigOverrides } from '../../support/servers/config.ts'
import { ADMIN_TOKEN, startPds, type TestPds } from '../../support/servers/pds.ts'
import { onPostgres } from '../../support/servers/suite.ts'
import { startRawUpstream, startUpstream } from '../../support/servers/upstream.ts'
import { useWorld } from '../../support/world.ts'

const KEY = Buffer.alloc(32, 7)
const OPERATOR = 'operator@example.org'

/** A receiver, and the configuration of a server that posts to it. */
function startReceiver() {
  const upstream = startUpstream()
  const posts: { headers: Headers; body: string }[] = []
  const receiver = {
    posts,
    status: 200,
    config: {
      alerts: {
        webhookUrl: `${upstream.url}/hook`,
        webhookSecret: new Secret(`whsec_${KEY.toString('base64')}`),
        diskFreeBytes: Number.MAX_SAFE_INTEGER,
      },
    } satisfies ConfigOverrides,
    [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose](),
  }
  upstream.answer('', async (received) => {
    posts.push({ headers: received.headers, body: await received.text() })
    return new Response(null, { status: receiver.status, headers: { location: `${upstream.url}/elsewhere` } })
  })
  return receiver
}

async function pass(pds: TestPds): Promise<void> {
  pds.clock.advance({ secs: 60 })
  await pds.runSweep('alerts')
  await pds.runSteps()
}

test('an alert is posted as JSON, with the signature of Standard Webhooks', async () => {
  await using receiver = startReceiver()
  await using pds = await startPds(receiver.config)
  await pass(pds)
  expect(receiver.posts).toHaveLength(1)
  const [{ headers, body }] = receiver.posts as [(typeof receiver.posts)[0]]
  expect(headers.get('content-type')).toBe('application/json')
  const [id, at] = [headers.get('webhook-id')!, headers.get('webhook-timestamp')!]
  expect(Number(at)).toBe(Math.floor(Number(at)))
  const signature = createHmac('sha256', KEY).update(`${id}.${at}.${body}`).digest('base64')
  expect(headers.get('webhook-signature')).toBe(`v1,${signature}`)
  expect(JSON.parse(body)).toEqual({
    type: 'alerts.changed',
    timestamp: expect.stringMatching(/Z$/),
    data: {
      server: pds.ctx.config.publicUrl,
      summary: expect.stringContaining('Alert: the disk is nearly full'),
      alerts: [
        {
          name: 'disk-nearly-full',
          subject: onPostgres ? expect.any(String) : null,
          state: 'begun',
          title: 'the disk is nearly full',
          text: expect.stringContaining('GiB are free at'),
          remedy: expect.any(String),
          guide: 'docs/alerts.md#disk-nearly-full',
          since: expect.stringMatching(/Z$/),
          overSince: null,
        },
      ],
    },
  })
})

test('a receiver that is away gets the same message later, signed anew; a redirect is not followed', async () => {
  await using receiver = startReceiver()
  await using pds = await startPds(receiver.config)
  for (const status of [500, 302, 200]) {
    receiver.status = status
    await pass(pds)
  }
  expect(receiver.posts).toHaveLength(3)
  const [first, second, third] = receiver.posts.map(({ headers, body }) => [headers.get('webhook-id'), body])
  expect([second, third]).toEqual([first, first])
  const times = receiver.posts.map(({ headers }) => Number(headers.get('webhook-timestamp')))
  expect(times).toEqual(times.toSorted((a, b) => a - b))
  expect(new Set(times).size).toBe(3)
  expect(await pds.count('step', { kind: 'alert-webhook' })).toBe(0)
})

test('a receiver that says it is gone is not asked again', async () => {
  await using receiver = startReceiver()
  receiver.status = 410
  await using pds = await startPds(receiver.config)
  await pass(pds)
  await pass(pds)
  expect(receiver.posts).toHaveLength(1)
  expect(await pds.rows('step', { kind: 'alert-webhook' }, ['due_at'])).toEqual([{ due_at: null }])
})

test('the address of the webhook, which is a secret, is not logged if the receiver answers what is no HTTP', async () => {
  await using upstream = startRawUpstream('HTTP/1.1 200 OK\r\ncontent-length: none\r\n\r\n')
  await using receiver = startReceiver()
  const webhookUrl = `${upstream.url}/services/T0A1B2?token=c3d4e5`
  await using pds = await startPds({ alerts: { ...receiver.config.alerts, webhookUrl } })
  await pass(pds)
  const lines = pds.log.map((line) => JSON.stringify(line))
  expect(lines.filter((line) => line.includes('InvalidContentLength'))).toHaveLength(1)
  for (const secret of ['T0A1B2', 'c3d4e5']) expect(lines.filter((line) => line.includes(secret))).toEqual([])
})

test('a test is sent to every recipient, and it is said which got it', async () => {
  await using receiver = startReceiver()
  await using pds = await startPds({ alerts: { ...receiver.config.alerts, mailTo: [OPERATOR] } })
  const ask = () => request(`${pds.url}/v1/admin/alerts/test`, { method: 'POST', headers: bearer(ADMIN_TOKEN) })
  expect((await ask()).body).toEqual({ mail: [{ to: OPERATOR, sent: true, outcome: 'sent' }], webhook: true })
  expect(pds.mails).toEqual([expect.objectContaining({ to: OPERATOR, subject: expect.stringContaining('a test') })])
  expect(JSON.parse(receiver.posts[0]!.body)).toMatchObject({ type: 'alerts.test' })
  receiver.status = 503
  expect((await ask()).body).toMatchObject({ webhook: false })
  expect((await request(`${pds.url}/v1/admin/alerts`, { headers: bearer(ADMIN_TOKEN) })).body.alerts).toEqual([])
})

test('while nothing can be written, operators are told without the database, once, and once that it is over', async () => {
  await using receiver = startReceiver()
  await using pds = await startPds({ alerts: { ...receiver.config.alerts, mailTo: [OPERATOR], diskFreeBytes: 0 } })
  const away = `${pds.dataDir}-away`
  renameSync(pds.dataDir, away)
  for (let minute = 0; minute < 3; minute++) await pass(pds)
  renameSync(away, pds.dataDir)
  const told = () => receiver.posts.map(({ body }) => JSON.parse(body).data.alerts[0])
  expect(told()).toEqual([
    expect.objectContaining({ name: 'cannot-write', state: 'begun', text: 'the data directory cannot be written' }),
  ])
  expect(pds.mails.map(({ subject }) => subject)).toEqual([expect.stringContaining('Alert: nothing can be written')])
  await pass(pds)
  await pass(pds)
  expect(told().slice(1)).toEqual([expect.objectContaining({ state: 'over', overSince: expect.any(String) })])
  expect(pds.mails).toHaveLength(2)
})

test('of two looks at once, one tells operators that nothing can be written', async () => {
  await using pds = await startPds({ alerts: { mailTo: [OPERATOR], diskFreeBytes: 0 } })
  const away = `${pds.dataDir}-away`
  renameSync(pds.dataDir, away)
  if (onPostgres) {
    // With a server of databases, a short outage is not told.
    await lookAtNode(pds.ctx)
    pds.clock.advance({ secs: 120 })
  }
  await Promise.all([lookAtNode(pds.ctx), lookAtNode(pds.ctx)])
  expect(pds.mails.map(({ subject }) => subject)).toEqual([expect.stringContaining('Alert: nothing can be written')])
  renameSync(away, pds.dataDir)
})

const { pds: plain } = useWorld()

test('without a recipient there is nothing to test', async () => {
  const refused = await request(`${plain.url}/v1/admin/alerts/test`, { method: 'POST', headers: bearer(ADMIN_TOKEN) })
  expect(refused).toMatchObject({ status: 400 })
  expect(JSON.stringify(refused.body)).toContain('alerts.mail_to')
})
