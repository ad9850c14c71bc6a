/** How much an app may ask for: many scopes, long ones, and permission sets that their authors fill. */
import { beforeAll, expect, test } from 'bun:test'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { answerOf, loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { useWorld } from '../../support/world.ts'

const MAX_SCOPES = 500
const MAX_SCOPE_CHARS = 8192
const MAX_TOKEN_CHARS = 8000

let alice: TestAccount
const { pds, author } = useWorld({ author: true, config: { rateLimit: { enabled: false } } })
beforeAll(async () => {
  pds.dns.setTexts('_lexicon.sets.test', `did=${author.did}`)
  alice = await createAccount(pds, 'alice')
})

const person = () => ({ identifier: alice.did, password: alice.password })
const numbered = (count: number, name: (i: number) => string) => Array.from({ length: count }, (_, i) => name(i))

/** A set of as many permissions, each for one collection unless told otherwise. */
async function publishSet(
  name: string,
  permissions: number,
  collections = (i: number): string[] => [`test.sets.r${i}`],
): Promise<void> {
  const main = {
    type: 'permission-set',
    title: 'A set',
    permissions: Array.from({ length: permissions }, (_, i) => ({
      type: 'permission',
      resource: 'repo',
      collection: collections(i),
    })),
  }
  await author.publish(`test.sets.${name}`, { lexicon: 1, id: `test.sets.${name}`, defs: { main } })
}

function clientFor(...scopes: string[]): { client: OAuthClient; scope: string } {
  const scope = ['atproto', ...scopes].join(' ')
  return { client: new OAuthClient(pds, loopbackClientId(scope)), scope }
}

async function push(...scopes: string[]) {
  const { client, scope } = clientFor(...scopes)
  return client.push({ scope })
}

const refused = (error: string, description: string) => ({
  status: 400,
  body: { error, error_description: expect.stringContaining(description) },
})

test('a client that declares more scopes, or longer ones, than can be compared is refused', async () => {
  expect(await push(...numbered(MAX_SCOPES, (i) => `repo:a.b.c${i}`))).toMatchObject(
    refused('invalid_client', 'more than 500 values'),
  )
  expect(await push(`repo:a.b.c?${'x'.repeat(MAX_SCOPE_CHARS)}`)).toMatchObject(
    refused('invalid_client', '8192 characters'),
  )
})

test('a request for more scopes, or longer ones, is refused with a reason', async () => {
  const { client } = clientFor('transition:generic')
  const tooMany = ['atproto', ...numbered(MAX_SCOPES, (i) => `repo:a.b.c${i}`)].join(' ')
  expect(await client.push({ scope: tooMany })).toMatchObject(refused('invalid_scope', 'more than 500 values'))
  expect(await client.push({ scope: `atproto ${'x'.repeat(MAX_SCOPE_CHARS)}` })).toMatchObject(
    refused('invalid_scope', '8192 characters'),
  )
})

test('a permission set of 12,000 entries is refused', async () => {
  await publishSet('vast', 12_000)
  expect(await push('include:test.sets.vast')).toMatchObject(
    refused(
      'invalid_scope',
      'the lexicon test.sets.vast is larger than this server accepts: it has more than 262144 characters',
    ),
  )
  await publishSet('large', 501)
  expect(await push('include:test.sets.large')).toMatchObject(
    refused('invalid_scope', 'test.sets.large has more than 500 permissions'),
  )
})

test('few permissions with long lists are refused too', async () => {
  await publishSet('long', 3, (i) => numbered(3000, (j) => `test.sets.r${i}x${j}`))
  expect(await push('include:test.sets.long')).toMatchObject(refused('invalid_scope', 'test.sets.long have more than'))
})

test('the lists of all sets count together', async () => {
  await publishSet('a', 1, () => numbered(2000, (i) => `test.sets.a${i}`))
  await publishSet('b', 1, () => numbered(2000, (i) => `test.sets.b${i}`))
  expect(await push('include:test.sets.a')).toMatchObject(
    refused('invalid_scope', 'an access token longer than 8000 characters'),
  )
  expect(await push('include:test.sets.a', 'include:test.sets.b')).toMatchObject(
    refused('invalid_scope', 'the permission sets up to test.sets.b have more than 65536 characters'),
  )
})

test('sets are counted together, with the scopes beside them', async () => {
  await publishSet('one', 300)
  await publishSet('other', 300, (i) => [`test.sets.s${i}`])
  expect(await push('include:test.sets.one', 'include:test.sets.other')).toMatchObject(
    refused('invalid_scope', 'comes to 601 permissions, and at most 500'),
  )
})

test('permissions that no access token can hold are refused', async () => {
  await publishSet('wordy', 400, (i) => [`test.sets.aVeryLongNameOfARecord${i}`])
  expect(await push('include:test.sets.wordy')).toMatchObject(
    refused('invalid_scope', 'an access token longer than 8000 characters'),
  )
})

/** Returns the largest count of permissions that a request is accepted with. */
async function mostAccepted(): Promise<number> {
  let [accepted, rejected] = [1, MAX_SCOPES]
  while (rejected - accepted > 1) {
    const count = Math.floor((accepted + rejected) / 2)
    await publishSet(`n${count}`, count)
    if ((await push(`include:test.sets.n${count}`)).status === 201) accepted = count
    else rejected = count
  }
  return accepted
}

test('what a request is accepted with fits the token, and works', async () => {
  const count = await mostAccepted()
  expect(count).toBeGreaterThan(200)
  const { client, scope } = clientFor(`include:test.sets.n${count}`)
  const { access_token: token } = await client.signIn(person(), { scope })
  expect(token.length).toBeLessThanOrEqual(MAX_TOKEN_CHARS)
  expect(token.length).toBeGreaterThan(MAX_TOKEN_CHARS - 1000)
  const create = (collection: string) =>
    client.call(
      token,
      'com.atproto.repo.createRecord',
      {},
      { json: { repo: alice.did, collection, validate: false, record: { $type: collection } } },
    )
  expect(await create(`test.sets.r${count - 1}`)).toMatchObject({ status: 200 })
  expect(await create(`test.sets.r${count}`)).toMatchObject({ status: 403 })
})

test('a set that grows too large does not end the session: the app is told, and goes on once the set is small again', async () => {
  await publishSet('growing', 2)
  const { client, scope } = clientFor('include:test.sets.growing')
  const tokens = await client.signIn(person(), { scope })
  const grown = async (permissions: number) => {
    await publishSet('growing', permissions)
    pds.clock.advance({ days: 1, secs: 1 })
  }

  await grown(501)
  const refusal = refused('invalid_scope', 'test.sets.growing has more than 500 permissions')
  expect(await client.refresh(tokens.refresh_token)).toMatchObject(refusal)
  expect(await client.push({ scope })).toMatchObject(refusal)

  await grown(3)
  const { status, body } = await client.refresh(tokens.refresh_token)
  expect([status, body.scope.split(' ').length]).toEqual([200, 4])
})

test('a set that grows between request and consent sends the browser back with the reason', async () => {
  await publishSet('late', 1)
  const { client, scope } = clientFor('include:test.sets.late')
  const requestUri = await client.requestUri({ scope })
  await publishSet('late', 501)
  await pds.restart()
  await pds.lose('published_lexicon')
  const shown = await request(client.authorizeUrl(requestUri), { redirect: 'manual' })
  expect(shown.status).toBe(303)
  expect(answerOf(shown).get('error')).toBe('invalid_scope')
  expect(answerOf(shown).get('error_description')).toContain('more than 500 permissions')
})
