/** A clock that is wrong is called that, wherever it makes something fail. */
import { expect, test } from 'bun:test'
import { createAccount, PASSWORD, xrpc } from '../../support/clients/account.ts'
import { untimely } from '../../support/certificates.ts'
import { startWebHost } from '../../support/servers/did-web-host.ts'
import { startPds, type TestPds } from '../../support/servers/pds.ts'
import { startUpstream } from '../../support/servers/upstream.ts'
import { atOneNode } from '../../support/turns.ts'

const WRONG = 'the clock of this machine differs from the clock of another service'
const linesOf = (pds: TestPds, message: string) =>
  pds.log.filter((line) => line.message === message).map(({ detail }) => detail)

test('a clock that is days off is told from what other services answer, once an hour for each', async () => {
  await using appview = startUpstream()
  await using pds = await startPds({ appview: { url: appview.url, did: `${appview.did}#bsky_appview` } })
  using _ = atOneNode(pds, 'each node counts for itself')
  const alice = await createAccount(pds, 'alice')
  const { host } = new URL(appview.url)
  const ask = async (secs: number) => {
    pds.clock.advance({ secs })
    pds.clock.jump({ secs: -secs })
    expect((await alice.call('app.bsky.feed.getTimeline')).status).toBe(200)
  }
  await ask(0)
  expect(linesOf(pds, WRONG)).toEqual([])
  pds.clock.jump({ days: -3 })
  await ask(30)
  expect(linesOf(pds, WRONG)).toEqual([])
  await ask(61)
  await ask(61)
  expect(linesOf(pds, WRONG)).toEqual([`3 days behind ${host}`])
  await ask(3600)
  expect(linesOf(pds, WRONG)).toEqual([`3 days behind ${host}`, `3 days behind ${host}`])
  pds.clock.jump({ days: 3 })
  await ask(3600)
  expect(linesOf(pds, WRONG)).toHaveLength(2)
})

test('what a cache kept is counted with its age', async () => {
  await using appview = startUpstream()
  appview.answer('app.bsky.feed.getTimeline', () =>
    Response.json({ feed: [] }, { headers: { date: new Date(Date.now() - 86_400_000).toUTCString(), age: '86400' } }),
  )
  await using pds = await startPds({ appview: { url: appview.url, did: `${appview.did}#bsky_appview` } })
  const alice = await createAccount(pds, 'alice')
  expect((await alice.call('app.bsky.feed.getTimeline')).status).toBe(200)
  expect(linesOf(pds, WRONG)).toEqual([])
})

test('a service that a stranger chose tells nothing about the clock', async () => {
  await using stranger = startUpstream()
  stranger.services['some_service'] = stranger.url
  stranger.answer('org.example.getTime', () =>
    Response.json({}, { headers: { date: 'Thu, 01 Jan 1998 00:00:00 GMT' } }),
  )
  await using pds = await startPds()
  const alice = await createAccount(pds, 'alice')
  const answer = await alice.call('org.example.getTime', {
    headers: { 'atproto-proxy': `${stranger.did}#some_service` },
  })
  expect(answer).toMatchObject({ status: 200 })
  expect(linesOf(pds, WRONG)).toEqual([])
})

test.each([
  ['notYetValid', 'its certificate is not valid yet, or the clock of this machine is wrong'],
  ['expired', 'its certificate has expired, or the clock of this machine is wrong'],
] as const)(
  'a directory whose certificate is %s is told, to whom it keeps from signing up too',
  async (which, words) => {
    await using directory = startWebHost({ cert: untimely[which], key: untimely.key })
    await using pds = await startPds({ plcDirectoryUrl: `https://localhost:${directory.port}` })
    using _ = atOneNode(pds, 'each node counts for itself')
    const signUp = (name: string) =>
      xrpc(pds, 'com.atproto.server.createAccount', {
        json: { handle: `${name}.test`, email: `${name}@example.com`, password: PASSWORD },
      })
    expect(await signUp('alice')).toMatchObject({
      status: 502,
      body: { error: 'UpstreamFailure', message: `PLC directory unreachable: ${words}` },
    })
    expect((await signUp('bob')).status).toBe(502)
    expect(linesOf(pds, 'a certificate is not valid according to the clock of this machine')).toEqual([
      `localhost:${directory.port}: ${words}`,
    ])
    expect(directory.requests).toEqual([])
  },
)
