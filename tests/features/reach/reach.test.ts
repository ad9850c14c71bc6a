/** What an operator is told of the way from this server to the network. */
import { expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN, freePort, startPds, type TestPds } from '../../support/servers/pds.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'

const PUBLIC_URL = 'https://pds.example.org'
const STATUS = 'com.atproto.sync.getHostStatus'

const {
  pds,
  other: relay,
  appview,
} = useWorld({
  other: true,
  appview: true,
  config: ({ other, appview }) => ({
    crawlers: { urls: [other.url] },
    appview: { url: appview.url },
    rateLimit: { enabled: false },
  }),
  options: { publicUrl: PUBLIC_URL },
})

const operator = bearer(ADMIN_TOKEN)
const ask = (at: TestPds, account?: string) =>
  request(`${at.url}/v1/admin/network${account === undefined ? '' : `?account=${encodeURIComponent(account)}`}`, {
    headers: operator,
  })

interface Link {
  name: string
  state: string
  text: string
  remedy: string | null
}

/** The link whose name begins so. */
const linkOf = (links: Link[], name: string): Link => links.find((link) => link.name.startsWith(name))!

test('a server that no relay can find says so', async () => {
  const reasons = [
    [{ crawlers: { urls: [] } }, 'no relay is configured'],
    [{ crawlers: { urls: [relay.url] } }, 'localhost:', 'is a name that no relay can reach'],
  ] as const
  for (const [config, ...words] of reasons) {
    await using local = await startPds(config)
    const { links } = (await ask(local)).body
    expect(links).toEqual([{ name: 'relays', state: 'fault', text: expect.any(String), remedy: expect.any(String) }])
    for (const word of words) expect(links[0].text).toContain(word)
  }
})

test('what a relay says of this server is told, with what to do', async () => {
  const answers: [() => Response, string, string][] = [
    [() => Response.json({ error: 'HostNotFound' }, { status: 400 }), 'fault', 'never read this server'],
    [() => Response.json({ status: 'banned', seq: 1 }), 'fault', '"banned"'],
    [() => new Response('', { status: 502 }), 'unknown', 'returns 502'],
    [() => Response.json({ status: 'active', seq: 10_000 }), 'ok', 'taken event 10000 of'],
    [() => Response.json({ status: 'idle' }), 'ok', 'follows this server'],
  ]
  for (const [answer, state, text] of answers) {
    relay.answer(STATUS, answer)
    const { links } = (await ask(pds)).body
    const link = linkOf(links, 'relay ')
    expect(link).toMatchObject({ state, text: expect.stringContaining(text) })
    expect(link.remedy === null).toBe(state === 'ok')
  }
})

test('a relay that was asked to come is told with its answer, and one that cannot be reached', async () => {
  using _ = atOneNode(pds, 'each node knows what it has asked')
  relay.answer('com.atproto.sync.requestCrawl', () => new Response('', { status: 400 }))
  await request(`${pds.url}/v1/admin/request-crawl`, { method: 'POST', headers: operator })
  expect(linkOf((await ask(pds)).body.links, 'request to')).toMatchObject({
    state: 'fault',
    text: expect.stringMatching(/^asked it to come on .* UTC: HTTP 400$/),
    remedy: expect.stringContaining('holdfast doctor'),
  })
  relay.answer('com.atproto.sync.requestCrawl', () => new Response(''))
  await request(`${pds.url}/v1/admin/request-crawl`, { method: 'POST', headers: operator })
  expect(linkOf((await ask(pds)).body.links, 'request to')).toMatchObject({ state: 'ok', remedy: null })

  await using away = await startPds(
    { crawlers: { urls: [`http://127.0.0.1:${await freePort()}`] } },
    { publicUrl: PUBLIC_URL },
  )
  expect(linkOf((await ask(away)).body.links, 'relay ')).toMatchObject({ state: 'unknown', remedy: expect.any(String) })
})

test('subscribers are listed with their address, their program and the last event that they were sent', async () => {
  using _ = atOneNode(pds, 'each node knows its own subscribers')
  const before = (await ask(pds)).body
  expect(linkOf(before.links, 'event stream')).toMatchObject({ state: 'warning' })
  const socket = new WebSocket(`${pds.url.replace('http', 'ws')}/xrpc/com.atproto.sync.subscribeRepos?cursor=0`, {
    headers: { 'user-agent': `relay/${'x'.repeat(500)}` },
  } as unknown as string[])
  await createAccount(pds, 'zoe')
  const listed = async () => (await ask(pds)).body
  await until(async () => (await listed()).subscribers[0]?.seq > 0)
  expect((await listed()).subscribers).toEqual([
    {
      address: expect.stringMatching(/^(127\.0\.0\.1|::1)$/),
      program: expect.stringMatching(/^relay\/x{194}$/),
      since: expect.stringMatching(/Z$/),
      seq: expect.any(Number),
      leftAt: null,
    },
  ])
  expect(linkOf((await listed()).links, 'event stream')).toMatchObject({ state: 'ok' })
  socket.close()
  await until(async () => (await listed()).subscribers.length === 0)
  const after = await listed()
  expect(after.formerSubscribers).toEqual([expect.objectContaining({ leftAt: expect.stringMatching(/Z$/) })])
  expect(linkOf(after.links, 'event stream').text).toContain('the last subscriber left on')
})

test('one account is followed from its identity to the AppView', async () => {
  const alice = await createAccount(pds, 'alice')
  const { rev } = (await pds.rows('repo', { did: alice.did }, ['rev']))[0]!
  relay.answer(STATUS, () => Response.json({ status: 'active', seq: 10_000 }))
  relay.answer('com.atproto.sync.getRepoStatus', () => Response.json({ did: alice.did, active: true, rev }))
  appview.answer('app.bsky.actor.getProfile', () => Response.json({ did: alice.did, handle: alice.handle }))
  pds.dns.setHandle(alice.handle, alice.did)
  const { account } = (await ask(pds, alice.handle)).body
  expect(account).toMatchObject({ did: alice.did, handle: alice.handle })
  expect(account.links.map(({ name, state }: Link) => [name.split(' ')[0], state])).toEqual([
    ['account', 'ok'],
    ['identity', 'ok'],
    ['signing', 'ok'],
    ['handle', 'ok'],
    ['repository', 'ok'],
    ['profile', 'ok'],
  ])
})

test('each link of an account that is broken is named, with what to do', async () => {
  const bob = await createAccount(pds, 'bob')
  const linksOf = async () => (await ask(pds, bob.did)).body.account.links as Link[]

  pds.dns.setHandle(bob.handle, 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa')
  expect(linkOf(await linksOf(), 'handle')).toMatchObject({
    state: 'fault',
    text: expect.stringContaining('leads to did:plc:aaaa'),
    remedy: expect.stringContaining(`_atproto.${bob.handle}`),
  })

  const relayAnswers: [object, number, string, string][] = [
    [{ error: 'RepoNotFound' }, 400, 'fault', 'does not know it'],
    [{ did: bob.did, active: false, status: 'takendown' }, 200, 'fault', 'as takendown'],
    [{ did: bob.did, active: true, rev: '3aaaaaaaaaa22' }, 200, 'warning', 'has revision 3aaaaaaaaaa22'],
    [{}, 500, 'unknown', 'returns 500'],
  ]
  for (const [body, status, state, text] of relayAnswers) {
    relay.answer('com.atproto.sync.getRepoStatus', () => Response.json(body, { status }))
    expect(linkOf(await linksOf(), 'repository')).toMatchObject({ state, text: expect.stringContaining(text) })
  }

  const profiles: [object, number, string, string][] = [
    [{ error: 'InvalidRequest', message: 'Profile\nnot found' }, 400, 'fault', '(InvalidRequest: Profile not found)'],
    [{ did: bob.did, handle: 'handle.invalid' }, 200, 'fault', 'could not verify the handle'],
    [{ did: bob.did, handle: 'old.test' }, 200, 'warning', 'shows it as old.test'],
    [{}, 503, 'unknown', 'returns 503'],
  ]
  for (const [body, status, state, text] of profiles) {
    appview.answer('app.bsky.actor.getProfile', () => Response.json(body, { status }))
    expect(linkOf(await linksOf(), 'profile')).toMatchObject({ state, text: expect.stringContaining(text) })
  }

  await pds.damage('account', { did: bob.did }, { takedown_ref: 'x' })
  expect(linkOf(await linksOf(), 'account')).toMatchObject({ state: 'fault', text: 'it is taken down here' })
})

test('the report is for operators, and an account has to be one of this server', async () => {
  expect((await request(`${pds.url}/v1/admin/network`)).status).toBe(401)
  expect((await ask(pds, 'someone.else.example')).status).toBe(404)
})
