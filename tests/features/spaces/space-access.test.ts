/** Who gets in where few people may: nobody without a grant that names the space, and nothing shows up elsewhere. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { createAccount, logIn, type TestAccount } from '../../support/clients/account.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { spaceApp, type SpaceApp } from '../../support/clients/space-app.ts'
import { ADMIN_TOKEN, startPds } from '../../support/servers/pds.ts'
import { atOneNode } from '../../support/turns.ts'
import { useWorld } from '../../support/world.ts'
import { thrownBy } from '../../support/thrown.ts'

const TYPE = 'test.forum.space'
const NOTE = 'test.forum.note'
/** Occurs in a text, a key of a record and one of a space, and nowhere else. */
const SENTINEL = 'for-members-only'
const config = {
  spaces: { enabled: true },
  rateLimit: { enabled: false },
  signup: { requireConfirmedAddress: false },
}
const { pds, author, dns, web } = useWorld({ author: true, web: ['authority.web.test', 'slow.web.test'], config })
let alice: TestAccount
let bob: TestAccount
let member: SpaceApp
let place: { space: string; repo: string }
const record = () => ({ ...place, collection: NOTE, rkey: SENTINEL, record: { text: SENTINEL } })

beforeAll(async () => {
  dns.setTexts('_lexicon.forum.test', `did=${author.did}`)
  await author.publish(TYPE, declaration({ name: 'Forum', collections: [NOTE, 'test.forum.vote'] }))
  alice = await createAccount(pds, 'alice')
  bob = await createAccount(pds, 'bob')
  place = { space: `at://${alice.did}/space/${TYPE}/${SENTINEL}`, repo: alice.did }
  member = await spaceApp(pds, alice, 'space:*?authority=*&collection=*', 'blob:*/*')
  expect((await member.post('createRecord', record())).status).toBe(200)
})

const reads = {
  getRecord: { collection: NOTE, rkey: SENTINEL },
  listRecords: {},
  getLatestCommit: {},
  listRepoOps: {},
  listBlobs: {},
}
const names = Object.keys(reads) as (keyof typeof reads)[]

test('each method asks for its scope, and names the one that is missing', async () => {
  const write = { ...place, collection: NOTE }
  const rows: [string, object, string, string[]][] = [
    ['createRecord', { ...write, rkey: 'new', record: {} }, 'action=create', ['action=update', 'action=read']],
    ['putRecord', { ...write, rkey: 'new', record: { n: 1 } }, 'action=update', ['action=create']],
    ['putRecord', { ...write, rkey: 'newer', record: {} }, 'action=create', ['action=update']],
    ['deleteRecord', { ...write, rkey: 'new' }, 'action=delete', ['action=create&action=update']],
  ]
  const scope = (actions: string) => `space:${TYPE}?authority=${alice.did}&collection=${NOTE}&${actions}`
  for (const [method, input, enough, others] of rows) {
    for (const other of others) {
      const answer = await (await spaceApp(pds, alice, scope(other))).post(method, input)
      expect({ method, other, status: answer.status, error: answer.body.error }).toEqual({
        method,
        other,
        status: 403,
        error: 'ScopeMissingError',
      })
      expect(answer.body.message).toContain(`Missing required scope "space:${TYPE}?authority=${alice.did}`)
      expect(answer.body.message).toContain(enough)
    }
    expect((await (await spaceApp(pds, alice, scope(enough))).post(method, input)).status).toBe(200)
  }
  const elsewhere = await spaceApp(
    pds,
    alice,
    `space:${TYPE}?authority=${bob.did}`.replace('?', `?collection=${NOTE}&`),
    `space:${TYPE}?skey=other&collection=${NOTE}`,
    `space:test.other.space?authority=*&collection=${NOTE}`,
    `space:${TYPE}?authority=${alice.did}&collection=test.forum.other&action=create`,
  )
  expect((await elsewhere.post('createRecord', { ...write, record: {} })).status).toBe(403)
  for (const name of names)
    expect({ name, status: (await elsewhere.get(name, { ...place, ...reads[name] })).status }).toEqual({
      name,
      status: 403,
    })
  expect((await elsewhere.get('listSpaces')).status).toBe(403)
  expect((await elsewhere.get('listSpaces', { spaceType: 'test.other.space' })).status).toBe(200)
})

test('no other grant, password or token opens a space', async () => {
  await using other = await startPds({ ...config, development: false })
  const carol = await createAccount(other, 'carol')
  const own = { space: `at://${carol.did}/space/${TYPE}/a`, repo: carol.did }
  const wide = await spaceApp(other, carol, 'transition:generic', 'transition:chat.bsky', 'repo:*', 'blob:*/*')
  const { body: appPassword } = await carol.call('com.atproto.server.createAppPassword', {
    json: { name: 'app', privileged: true },
  })
  const byAppPassword = await logIn(other, carol, appPassword.password)
  const methods = names.map((name) => `com.atproto.space.${name}?${new URLSearchParams({ ...own, ...reads[name] })}`)
  const write = { json: { ...own, collection: NOTE, record: {} } }
  for (const call of [wide.call, byAppPassword.call, carol.call] as SpaceApp['call'][]) {
    for (const method of methods)
      expect({ method, status: (await call(method)).status }).toEqual({ method, status: 403 })
    expect((await call('com.atproto.space.createRecord', write)).status).toBe(403)
  }
  for (const method of methods)
    for (const headers of [{}, basic('admin', ADMIN_TOKEN), bearer(ADMIN_TOKEN)])
      expect((await request(`${other.url}/xrpc/${method}`, { headers })).status).toBeOneOf([400, 401])
})

test('in development, a session of the password may write and read, and an app password still not', async () => {
  const carol = await createAccount(pds, 'carol')
  const own = { space: `at://${carol.did}/space/${TYPE}/a`, repo: carol.did }
  const json = { ...own, collection: NOTE, record: {} }
  expect((await carol.call('com.atproto.space.createRecord', { json })).status).toBe(200)
  expect((await carol.call(`com.atproto.space.listRecords?${new URLSearchParams(own)}`)).body.records).toHaveLength(1)
  const { body } = await carol.call('com.atproto.server.createAppPassword', { json: { name: 'app' } })
  const app = await logIn(pds, carol, body.password)
  expect((await app.call('com.atproto.space.createRecord', { json })).status).toBe(403)
})

test('a member of the space on the same server reads no other member, and cannot tell who writes there', async () => {
  const reader = await spaceApp(pds, bob, 'space:*?authority=*&collection=*')
  for (const name of names) {
    const [theirs, nothing] = [
      await reader.get(name, { ...place, ...reads[name] }),
      await reader.get(name, { ...place, ...reads[name], repo: 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa' }),
    ]
    expect(theirs).toMatchObject({ status: 400, body: { error: 'RepoNotFound' } })
    expect(nothing.body).toEqual(theirs.body)
  }
  expect(await reader.post('createRecord', { ...record(), rkey: 'x' })).toMatchObject({
    status: 403,
    body: { error: 'Forbidden' },
  })
})

test('an account that is taken down or deactivated writes nothing', async () => {
  const eve = await createAccount(pds, 'eve')
  const own = { space: `at://${eve.did}/space/${TYPE}/a`, repo: eve.did }
  const app = await spaceApp(pds, eve, 'space:*?collection=*')
  const write = () => app.post('createRecord', { ...own, collection: NOTE, record: {} })
  expect((await write()).status).toBe(200)
  await eve.call('com.atproto.server.deactivateAccount', { json: {} })
  expect(await write()).toMatchObject({ body: { error: 'AccountDeactivated' } })
  expect((await app.get('listRecords', own)).body.records).toHaveLength(1)
  const takedown = {
    json: { subject: { $type: 'com.atproto.admin.defs#repoRef', did: eve.did }, takedown: { applied: true } },
    headers: basic('admin', ADMIN_TOKEN),
  }
  expect((await request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, takedown)).status).toBe(200)
  for (const answer of [await write(), await app.get('listRecords', own)])
    expect(answer.status).toBeGreaterThanOrEqual(400)
})

test('the token names what was granted: whose spaces, and which collections', async () => {
  const { granted } = await spaceApp(pds, alice, `space:${TYPE}`, `space:${TYPE}?skey=self&action=read_self`)
  expect(granted).toEqual([
    `space:${TYPE}?authority=${alice.did}&collection=${NOTE}&collection=test.forum.vote`,
    `space:${TYPE}?authority=${alice.did}&skey=self&action=read_self`,
  ])
})

test('a set of permissions includes spaces of its own namespace, and no others', async () => {
  const entry = (spaceType: string) => ({ type: 'permission', resource: 'space', spaceType, collection: [NOTE] })
  await author.publish('test.forum.permissions', {
    lexicon: 1,
    id: 'test.forum.permissions',
    defs: {
      main: {
        type: 'permission-set',
        title: 'Forum',
        permissions: [entry(TYPE), entry('test.other.space'), entry('*'), { ...entry(TYPE), action: ['everything'] }],
      },
    },
  })
  const { granted } = await spaceApp(pds, alice, 'include:test.forum.permissions')
  expect(granted).toEqual([`space:${TYPE}?authority=${alice.did}&collection=${NOTE}`])
})

test('a type that nobody declares can be read, and not written without naming collections', async () => {
  const scope = 'atproto space:test.forum.unknown'
  const client = new OAuthClient(pds, loopbackClientId(scope))
  expect(await thrownBy(client.requestUri({ scope }))).toThrow('cannot be resolved')
  const { granted } = await spaceApp(pds, alice, 'space:test.forum.unknown?action=read')
  expect(granted).toEqual([`space:test.forum.unknown?authority=${alice.did}&action=read`])
})

test('the page of consent says in plain words what is shared, and marks what is far-reaching', async () => {
  const scope = `atproto space:${TYPE} space:*?authority=*&collection=* space:${TYPE}?manage=update&action=create&collection=${NOTE}`
  const client = new OAuthClient(pds, loopbackClientId(scope))
  const { body } = await request(client.authorizeUrl(await client.requestUri({ scope })))
  const words = String(body)
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')
  expect(words).toContain('Read your “Forum” spaces, and write there for you')
  expect(words).toContain('Read every space that you are in, and write there for you')
  expect(words).toContain('Decide who may read and write there')
  expect(words).toContain('nothing is encrypted')
  expect(words).toContain('Write for you in your “Forum” spaces')
  for (const [language, ...said] of [
    ['de', 'Lesen und für dich schreiben in: deine Bereiche vom Typ „Forum“', 'verschlüsselt ist nichts'],
    ['fr', 'Lire vos espaces de type « Forum » et y écrire pour vous', 'rien n’est chiffré'],
    ['es', 'Leer tus espacios de tipo «Forum» y escribir allí por ti', 'nada está cifrado'],
    ['pt', 'Ler seus espaços do tipo “Forum” e escrever lá por você', 'nada é criptografado'],
    ['ja', 'あなたの「Forum」スペースを読み、あなたに代わって書き込む', '暗号化はされません'],
  ] as const) {
    const page = await request(client.authorizeUrl(await client.requestUri({ scope })), {
      headers: { 'accept-language': language },
    })
    for (const text of said) expect([language, String(page.body).includes(text)]).toEqual([language, true])
  }
})

test('what is in a space is in no public answer, no event, no log and no metric', async () => {
  const { body: uploaded } = await member.call('com.atproto.repo.uploadBlob', {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: Buffer.from(`a file ${SENTINEL}`),
  })
  const attached = { ...record(), rkey: 'file', record: { file: uploaded.blob } }
  expect((await member.post('createRecord', attached)).status).toBe(200)
  await alice.call('com.atproto.repo.createRecord', {
    json: { repo: alice.did, collection: NOTE, record: { text: 'public' } },
  })
  const { did } = alice
  const paths = [
    `com.atproto.sync.getRepo?did=${did}`,
    `com.atproto.sync.listBlobs?did=${did}`,
    `com.atproto.sync.getBlob?did=${did}&cid=${uploaded.blob.ref.$link}`,
    `com.atproto.sync.getRecord?did=${did}&collection=${NOTE}&rkey=${SENTINEL}`,
    `com.atproto.repo.listRecords?repo=${did}&collection=${NOTE}`,
    `com.atproto.repo.getRecord?repo=${did}&collection=${NOTE}&rkey=${SENTINEL}`,
    `com.atproto.repo.describeRepo?repo=${did}`,
    'com.atproto.sync.listReposByCollection?collection=' + NOTE,
    'com.atproto.sync.listRepos',
  ]
  const answers = await Promise.all(
    paths.map(async (path) =>
      Buffer.from(await (await fetch(`${pds.url}/xrpc/${path}`)).arrayBuffer()).toString('latin1'),
    ),
  )
  const { body: metrics } = await request(`${pds.url}/metrics`, { headers: basic('admin', ADMIN_TOKEN) })
  const frames = await pds.rows('repo_seq', {}, ['frame'])
  const everything = [
    ...answers.map((answer) => answer.replaceAll(/Could not[^"]*/g, '')),
    ...frames.map(({ frame }) => Buffer.from(frame).toString('latin1')),
    JSON.stringify(pds.log),
    String(metrics),
  ].join('\n')
  expect(everything).toContain('public')
  expect(everything).not.toContain(SENTINEL)
  expect(everything).not.toContain('/space/')
})

test('a server without spaces has no method, no scope and no capability of them', async () => {
  await using other = await startPds({ rateLimit: { enabled: false } })
  const dora = await createAccount(other, 'dora')
  const scope = 'atproto space:*?authority=*&collection=*'
  const client = new OAuthClient(other, loopbackClientId(scope))
  const tokens = await client.signIn({ identifier: dora.did, password: dora.password }, { scope })
  expect(tokens.scope).toBe('atproto')
  const own = { space: `at://${dora.did}/space/${TYPE}/a`, repo: dora.did }
  for (const name of names)
    expect(
      (await dora.call(`com.atproto.space.${name}?${new URLSearchParams({ ...own, ...reads[name] })}`)).status,
    ).toBe(501)
  const json = { ...own, collection: NOTE, record: {} }
  expect((await dora.call('com.atproto.space.createRecord', { json })).status).toBe(501)
  const described = await request(`${other.url}/xrpc/com.atproto.server.describeServer`)
  expect(JSON.stringify(described.body)).not.toContain('spaces')
})

/** The text of a page, without its markup. */
const wordsOf = (body: unknown) =>
  String(body)
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')

async function consentPage(scope: string, language = 'en') {
  const client = new OAuthClient(pds, loopbackClientId(scope))
  const url = client.authorizeUrl(await client.requestUri({ scope }))
  return String((await request(url, { headers: { 'accept-language': language } })).body)
}

const declaration = (names: object) => ({
  lexicon: 1,
  id: TYPE,
  defs: { main: { type: 'space', key: 'any', collections: [NOTE], ...names } },
})

describe('the page of consent', () => {
  const publish = (host: string, handle: string) => {
    const did = `did:web:${host}`
    web.publishDidDocument(host, { id: did, alsoKnownAs: [`at://${handle}`] })
    return did
  }

  test('calls who decides about spaces by a handle that is theirs, and by the DID if it is not', async () => {
    const scope = (did: string) => `atproto space:${TYPE}?authority=${did}&collection=${NOTE}`
    expect(wordsOf(await consentPage(scope(bob.did)))).toContain('spaces of @bob.test')
    // Claims a handle that names somebody else.
    const nameless = publish('authority.web.test', 'forum.example')
    dns.setHandle('forum.example', alice.did)
    expect(wordsOf(await consentPage(scope(nameless)))).toContain(`spaces of ${nameless}`)
    dns.setHandle('forum.example', nameless)
    pds.clock.advance({ secs: 61 })
    expect(wordsOf(await consentPage(scope(nameless)))).toContain('spaces of @forum.example')
    // The DID stays where programs are named.
    expect(await consentPage(scope(nameless))).toContain(`authority=${nameless}`)
  })

  test('does not wait for name servers, and asks them once for a while', async () => {
    using _ = atOneNode(pds, 'each node remembers what it has looked up')
    const slow = publish('slow.web.test', 'slow.example')
    const scope = `atproto space:${TYPE}?authority=${slow}&collection=${NOTE}`
    const { texts } = dns
    const answer = Promise.withResolvers<string[]>()
    let asked = 0
    dns.texts = (name) => {
      if (name !== '_atproto.slow.example') return texts(name)
      asked++
      return answer.promise
    }
    for (let i = 0; i < 2; i++) expect(wordsOf(await consentPage(scope))).toContain(`spaces of ${slow}`)
    expect(asked).toBe(1)
    answer.resolve([`did=${slow}`])
    await pds.ctx.background.settled()
    dns.texts = texts
    expect(wordsOf(await consentPage(scope))).toContain('spaces of @slow.example')
    expect(asked).toBe(1)
  })

  test('looks up few names for a request, however many it has', async () => {
    const before = dns.queries.length
    const scopes = Array.from({ length: 40 }, (_, i) => `space:*?authority=did:web:h${i}.web.test&action=read`)
    const page = wordsOf(await consentPage(['atproto', ...scopes].join(' ')))
    expect(page).toContain('all spaces of did:web:h39.web.test')
    expect(dns.queries.length - before).toBeLessThanOrEqual(5)
  })

  test('calls a type of spaces as its author does in the language of the page, and shows nothing else of that', async () => {
    const names = {
      name: 'Forum',
      'name:lang': {
        de: 'Das <b>Forum</b>\u202e & mehr',
        fr: '\u200b',
        'pt-PT': 'Fórum de lá',
        ja: `${'長'.repeat(500)}`,
        es: 5,
      },
    }
    await author.publish(TYPE, declaration(names))
    pds.clock.advance({ secs: 25 * 3600 })
    // Also for an app that only reads, whose grant depends on no declaration.
    const scope = `atproto space:${TYPE}?action=read`
    for (const [language, said] of [
      ['en', 'Read your “Forum” spaces'],
      ['de', 'Lesen: deine Bereiche vom Typ „Das &lt;b&gt;Forum&lt;/b&gt; &amp; mehr“'],
      ['es', 'Leer tus espacios de tipo «Forum»'],
      ['fr', `Lire vos espaces de type « ${TYPE} »`],
      ['pt', 'Ler seus espaços do tipo “Fórum de lá”'],
      ['ja', `「${'長'.repeat(79)}…」`],
    ] as const)
      expect([language, wordsOf(await consentPage(scope, language))]).toEqual([language, expect.stringContaining(said)])
    // A set of permissions names its spaces in the same way.
    expect(wordsOf(await consentPage('atproto include:test.forum.permissions'))).toContain('your “Forum” spaces')
  })
})
