/**
 * Questions with known answers: what the reference answers to each is recorded in `reference-answers.json`, and where
 * ours differs on purpose, `deviations` says how it reads, and why. Asked one after the other of one server.
 */
import { expect } from 'bun:test'
import { createAccount, PASSWORD, type TestAccount } from '../../support/clients/account.ts'
import { basic, bearer, request, type Answer } from '../../support/clients/http.ts'
import type { Upstream } from '../../support/servers/upstream.ts'

export interface World {
  url: string
  operator: Record<string, string>
  alice: TestAccount
  /** App passwords of alice. */
  plain: Record<string, string>
  privileged: Record<string, string>
  /** Deactivated. */
  dora: TestAccount
  /** Taken down; has the limited session. */
  tara: TestAccount
  /** Deleted. */
  gone: TestAccount
  /** Records and blobs of alice, by name. */
  known: Record<string, string>
}

export const APPVIEW = 'did:web:appview.test'

/** The AppView knows none of the records that are asked for, and answers `failing` as it says. */
export function answerAsAppview(appview: Upstream): void {
  appview.answer('com.atproto.repo.getRecord', () =>
    Response.json({ error: 'RecordNotFound', message: 'from the AppView' }, { status: 400 }),
  )
  for (const [nsid, status, body] of failing) appview.answer(nsid, () => new Response(body, { status }))
  appview.answer(TELLS_HEADERS, (_, { headers }) =>
    Response.json({ told: Object.fromEntries([...headers].filter(([name]) => name.startsWith('x-'))) }),
  )
}

const failing: readonly [nsid: string, status: number, body: string][] = [
  ['app.bsky.test.namesFault', 400, '{"error":"Faulty","message":"says why"}'],
  ['app.bsky.test.namesNone', 400, '{"message":"says why"}'],
  ['app.bsky.test.misnames', 400, '{"error":1,"message":2}'],
  ['app.bsky.test.refusesInText', 403, 'says why'],
  ['app.bsky.test.isMissing', 404, 'Not Found'],
  ['app.bsky.test.wantsPatience', 429, '{"error":"RateLimitExceeded","message":"says why"}'],
  ['app.bsky.test.fails', 500, '{"error":"InternalServerError","message":"says why"}'],
  ['app.bsky.test.failsInText', 500, 'says why'],
  ['app.bsky.test.lacksMethod', 501, '{"error":"MethodNotImplemented","message":"says why"}'],
  ['app.bsky.test.isDown', 503, '{"error":"Down","message":"says why"}'],
]
const TELLS_HEADERS = 'app.bsky.test.tellsHeaders'

/** The accounts that the questions are about, and what they own. */
export async function populate(url: string, operator: Record<string, string>): Promise<World> {
  const at = { url }
  const alice = await createAccount(at, 'alice')
  const session = async (privileged: boolean) => {
    const { body } = await alice.call('com.atproto.server.createAppPassword', {
      json: { name: `privileged ${privileged}`, privileged },
    })
    const opened = await request(`${url}/xrpc/com.atproto.server.createSession`, {
      json: { identifier: 'alice.test', password: body.password },
    })
    return bearer(opened.body.accessJwt)
  }
  const dora = await createAccount(at, 'dora')
  await dora.call('com.atproto.server.deactivateAccount', { json: {} })
  const tara = await createAccount(at, 'tara')
  await request(`${url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
    json: { subject: { $type: 'com.atproto.admin.defs#repoRef', did: tara.did }, takedown: { applied: true } },
    headers: operator,
  })
  const limited = await request(`${url}/xrpc/com.atproto.server.createSession`, {
    json: { identifier: 'tara.test', password: PASSWORD, allowTakendown: true },
  })
  const gone = await createAccount(at, 'gone')
  await request(`${url}/xrpc/com.atproto.admin.deleteAccount`, { json: { did: gone.did }, headers: operator })
  const made = await alice.call('com.atproto.repo.createRecord', {
    json: { repo: alice.did, collection: POST, rkey: '3jzfcijpj2z2a', record: aPost('hello') },
  })
  const blob = await request(`${url}/xrpc/com.atproto.repo.uploadBlob`, {
    method: 'POST',
    body: new Uint8Array([1, 2, 3]),
    headers: { ...bearer(alice.accessJwt), 'content-type': 'application/x-things' },
  })
  return {
    url,
    operator,
    alice,
    plain: await session(false),
    privileged: await session(true),
    dora,
    tara: { ...tara, accessJwt: limited.body.accessJwt },
    gone,
    known: {
      post: made.body.cid,
      head: made.body.commit.cid,
      rev: made.body.commit.rev,
      blob: blob.body.blob.ref.$link,
    },
  }
}

const POST = 'app.bsky.feed.post'
const aPost = (text: string) => ({ $type: POST, text, createdAt: '2026-01-01T00:00:00.000Z' })
const NOBODY = 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa'
const OTHER_CID = 'bafyreie5737gdxlw5i64vzichcalba3z2v5n6icifvx5xytvske7mr3hpm'

type Person = 'alice' | 'dora' | 'tara' | 'gone'
type Init = Parameters<typeof request>[1]
type Step = (world: World) => readonly [path: string, init?: Init]
type Row = readonly [name: string, step: Step]

const as = (who: keyof World) => (world: World) => {
  const found = world[who] as TestAccount | Record<string, string>
  return 'accessJwt' in found ? bearer(found['accessJwt'] as string) : (found as Record<string, string>)
}
const get =
  (path: string | ((world: World) => string), who?: keyof World): Step =>
  (world) => [typeof path === 'string' ? path : path(world), who ? { headers: as(who)(world) } : {}]
const call =
  (nsid: string, json: unknown, who?: keyof World): Step =>
  (world) => [nsid, { json: typeof json === 'function' ? json(world) : json, headers: who ? as(who)(world) : {} }]
const send =
  (nsid: string, init: Init | ((world: World) => Init), who?: keyof World): Step =>
  (world) => {
    const { headers, ...rest } = typeof init === 'function' ? init(world)! : init!
    return [
      nsid,
      { method: 'POST', ...rest, headers: { ...(who ? as(who)(world) : {}), ...(headers as Record<string, string>) } },
    ]
  }
const S = 'com.atproto.server.'
const R = 'com.atproto.repo.'
const Y = 'com.atproto.sync.'
const I = 'com.atproto.identity.'
const A = 'com.atproto.admin.'
const repoOf = (who: Person) => (path: string) => (world: World) => path.replace('$', world[who].did)
const [alices, doras, taras] = [repoOf('alice'), repoOf('dora'), repoOf('tara')]
const write = (more: object) => (world: World) => ({ repo: world.alice.did, collection: POST, ...more })

export const rows: readonly Row[] = [
  // 1.1
  ['POST to a query', send(`${S}describeServer`, {})],
  ['GET of a procedure', get(`${S}createSession`)],
  ['PUT', () => [`${S}describeServer`, { method: 'PUT' }]],
  ['DELETE of a procedure', () => [`${S}createSession`, { method: 'DELETE' }]],
  ['no NSID', get('nonsense')],
  ['no NSID either', get('com.example.9x')],
  ['a slash more', get(`${S}describeServer/`)],
  ['a stream without an upgrade', get(`${Y}subscribeRepos`)],
  ['an unknown method of nobody', get('com.example.unknown.method')],
  // 1.2
  ['bad parameters and no token', get(`${S}getServiceAuth`)],
  ['no token and a bad body', call(`${R}createRecord`, [])],
  // 1.4
  ['a limit that is too high', get(alices(`${R}listRecords?repo=$&collection=${POST}&limit=101`))],
  ['a limit of zero', get(alices(`${R}listRecords?repo=$&collection=${POST}&limit=0`))],
  ['a limit that is no number', get(alices(`${R}listRecords?repo=$&collection=${POST}&limit=ten`))],
  ['a limit twice', get(alices(`${R}listRecords?repo=$&collection=${POST}&limit=1&limit=2`))],
  ['an empty cursor', get(alices(`${R}listRecords?repo=$&collection=${POST}&cursor=`))],
  ['a boolean that is none', get(alices(`${R}listRecords?repo=$&collection=${POST}&reverse=1`))],
  ['an unknown parameter', get(alices(`${R}listRecords?repo=$&collection=${POST}&x=y`))],
  ['a DID that is none', get(`${Y}getRepo?did=nonsense`)],
  ['a handle that is none', get(`${I}resolveHandle?handle=no_handle`)],
  ['a CID that is none', get(alices(`${Y}getBlob?did=$&cid=x`))],
  ['a TID that is none', get(alices(`${Y}getRepo?did=$&since=x`))],
  ['a collection that is none', get(alices(`${R}listRecords?repo=$&collection=x`))],
  ['a missing parameter', get(`${R}describeRepo`)],
  // 1.5
  ['JSON that is none', send(`${S}createSession`, { body: '{', headers: { 'content-type': 'application/json' } })],
  ['JSON that is a number', send(`${S}createSession`, { body: '1', headers: { 'content-type': 'application/json' } })],
  ['JSON that is null', send(`${S}createSession`, { body: 'null', headers: { 'content-type': 'application/json' } })],
  ['JSON that is a list', send(`${S}createSession`, { body: '[]', headers: { 'content-type': 'application/json' } })],
  ['a missing member', call(`${S}createSession`, { identifier: 'x' })],
  ['a member of the wrong type', call(`${S}createSession`, { identifier: 1, password: 'x' })],
  ['another content type', send(`${S}createSession`, { body: 'a=b', headers: { 'content-type': 'text/plain' } })],
  [
    'a body where none belongs',
    send(`${S}requestEmailConfirmation`, { body: '{}', headers: { 'content-type': 'application/json' } }, 'alice'),
  ],
  [
    'a body too large',
    send(`${S}createSession`, { body: `"${'x'.repeat(160_000)}"`, headers: { 'content-type': 'application/json' } }),
  ],
  [
    'a record too large',
    send(
      `${R}createRecord`,
      { body: `{"x":"${'x'.repeat(1_000_001)}"}`, headers: { 'content-type': 'application/json' } },
      'alice',
    ),
  ],
  [
    'a coding nobody knows',
    send(`${S}createSession`, {
      body: '{}',
      headers: { 'content-type': 'application/json', 'content-encoding': 'zstd' },
    }),
  ],
  ['an empty body', send(`${S}createSession`, { body: '', headers: { 'content-type': 'application/json' } })],
  // 2.1, 2.2
  ['no credentials', get(`${S}getSession`)],
  ['half a header', get(`${S}getSession`)],
  ...(['Bearer', 'Bearer a b', 'Negotiate x', 'Basic YTpi', 'Bearer x', 'DPoP x'] as const).map(
    (authorization): Row => [`the header "${authorization}"`, () => [`${S}getSession`, { headers: { authorization } }]],
  ),
  ['a refresh token as an access token', (w) => [`${S}getSession`, { headers: bearer(w.alice.refreshJwt) }]],
  [
    'an access token as a refresh token',
    (w) => [`${S}refreshSession`, { method: 'POST', headers: bearer(w.alice.accessJwt) }],
  ],
  ['a session at an operator’s method', get(alices(`${A}getAccountInfo?did=$`), 'alice')],
  ['an operator at an account’s method', get(`${S}getSession`, 'operator')],
  ['a wrong operator', (w) => [`${A}getAccountInfo?did=${w.alice.did}`, { headers: basic('admin', 'x') }]],
  ['a session at sign-up', call(`${S}createAccount`, { handle: 'x.test' }, 'alice')],
  [
    'an operator at sign-up',
    call(`${S}createAccount`, { handle: 'xxx.test', email: 'x@example.com', password: 'x' }, 'operator'),
  ],
  // 2.4
  ['login of nobody', call(`${S}createSession`, { identifier: 'nobody.test', password: 'x' })],
  ['login with a wrong password', call(`${S}createSession`, { identifier: 'alice.test', password: 'x' })],
  [
    'login with an endless password',
    call(`${S}createSession`, { identifier: 'alice.test', password: 'x'.repeat(513) }),
  ],
  ['login by address', call(`${S}createSession`, { identifier: 'ALICE@example.com', password: PASSWORD })],
  ['login by DID', call(`${S}createSession`, (w: World) => ({ identifier: w.alice.did, password: PASSWORD }))],
  ['login while deactivated', call(`${S}createSession`, { identifier: 'dora.test', password: PASSWORD })],
  ['login while taken down', call(`${S}createSession`, { identifier: 'tara.test', password: PASSWORD })],
  [
    'login while taken down, as such',
    call(`${S}createSession`, { identifier: 'tara.test', password: PASSWORD, allowTakendown: true }),
  ],
  // 3.1
  ['the session', get(`${S}getSession`, 'alice')],
  ['the session while deactivated', get(`${S}getSession`, 'dora')],
  ['the session while taken down', get(`${S}getSession`, 'tara')],
  ['the server', get(`${S}describeServer`)],
  ['the state of an account', get(`${S}checkAccountStatus`, 'alice')],
  ['the state of a deactivated account', get(`${S}checkAccountStatus`, 'dora')],
  ['app passwords', get(`${S}listAppPasswords`, 'alice')],
  ['an app password of the same name', call(`${S}createAppPassword`, { name: 'privileged true' }, 'alice')],
  ['an app password made by one', call(`${S}createAppPassword`, { name: 'x' }, 'privileged')],
  ['revoking what is not there', call(`${S}revokeAppPassword`, { name: 'nothing' }, 'alice')],
  [
    'confirming with a wrong code',
    call(`${S}confirmEmail`, { email: 'alice@example.com', token: 'aaaaa-aaaaa' }, 'alice'),
  ],
  ['confirming another address', call(`${S}confirmEmail`, { email: 'x@example.com', token: 'aaaaa-aaaaa' }, 'alice')],
  ['an address that is none', call(`${S}updateEmail`, { email: 'nonsense' }, 'alice')],
  ['an address of another', call(`${S}updateEmail`, { email: 'dora@example.com' }, 'alice')],
  ['asking for a change of address', send(`${S}requestEmailUpdate`, {}, 'alice')],
  ['resetting with a wrong code', call(`${S}resetPassword`, { token: 'aaaaa-aaaaa', password: 'some password' })],
  ['resetting to an endless password', call(`${S}resetPassword`, { token: 'aaaaa-aaaaa', password: 'x'.repeat(257) })],
  ['a reset for nobody', call(`${S}requestPasswordReset`, { email: 'nobody@example.com' })],
  ['a reset', call(`${S}requestPasswordReset`, { email: 'dora@example.com' })],
  ['deleting nobody', call(`${S}deleteAccount`, { did: NOBODY, password: 'x', token: 'aaaaa-aaaaa' })],
  [
    'deleting with a wrong password',
    call(`${S}deleteAccount`, (w: World) => ({ did: w.alice.did, password: 'x', token: 'aaaaa-aaaaa' })),
  ],
  [
    'deleting with a wrong code',
    call(`${S}deleteAccount`, (w: World) => ({ did: w.alice.did, password: PASSWORD, token: 'aaaaa-aaaaa' })),
  ],
  ['invite codes of an account', get(`${S}getAccountInviteCodes`, 'alice')],
  ['a service token for nobody', get(`${S}getServiceAuth?aud=nonsense`, 'alice')],
  ['a service token for a path', get(`${S}getServiceAuth?aud=did:web:example.com:path`, 'alice')],
  ['a service token for the past', get(`${S}getServiceAuth?aud=did:web:example.com&exp=1`, 'alice')],
  [
    'a service token for ever',
    get(
      () =>
        `${S}getServiceAuth?aud=did:web:example.com&lxm=com.example.get&exp=${Math.floor(Date.now() / 1000) + 4000}`,
      'alice',
    ),
  ],
  [
    'a service token for anything, for long',
    get(() => `${S}getServiceAuth?aud=did:web:example.com&exp=${Math.floor(Date.now() / 1000) + 300}`, 'alice'),
  ],
  [
    'a service token for a protected method',
    get(`${S}getServiceAuth?aud=did:web:example.com&lxm=${S}createAppPassword`, 'alice'),
  ],
  [
    'a service token for chats by an app password',
    get(`${S}getServiceAuth?aud=did:web:example.com&lxm=chat.bsky.convo.getLog`, 'plain'),
  ],
  ['a service token while taken down', get(`${S}getServiceAuth?aud=did:web:example.com&lxm=com.example.get`, 'tara')],
  ['a service token to leave', get(`${S}getServiceAuth?aud=did:web:example.com&lxm=${S}createAccount`, 'tara')],
  ['a service token', get(`${S}getServiceAuth?aud=did:web:example.com`, 'dora')],
  ['activating while taken down', send(`${S}activateAccount`, {}, 'tara')],
  ['activating while active', send(`${S}activateAccount`, {}, 'alice')],
  // 4.1
  [
    'sign-up with a PLC operation',
    call(`${S}createAccount`, {
      handle: 'newcomer.test',
      email: 'new@example.com',
      password: 'long enough',
      plcOp: {},
    }),
  ],
  [
    'sign-up with an endless password',
    call(`${S}createAccount`, { handle: 'newcomer.test', email: 'new@example.com', password: 'x'.repeat(257) }),
  ],
  ['sign-up without an address', call(`${S}createAccount`, { handle: 'newcomer.test', password: 'long enough' })],
  [
    'sign-up with a bad address',
    call(`${S}createAccount`, { handle: 'newcomer.test', email: 'nonsense', password: 'long enough' }),
  ],
  [
    'sign-up with a taken handle',
    call(`${S}createAccount`, { handle: 'alice.test', email: 'new@example.com', password: 'long enough' }),
  ],
  [
    'sign-up with a taken address',
    call(`${S}createAccount`, { handle: 'newcomer.test', email: 'alice@example.com', password: 'long enough' }),
  ],
  [
    'sign-up elsewhere',
    call(`${S}createAccount`, { handle: 'new.example.com', email: 'new@example.com', password: 'long enough' }),
  ],
  [
    'sign-up with a dot',
    call(`${S}createAccount`, { handle: 'a.new.test', email: 'new@example.com', password: 'long enough' }),
  ],
  [
    'sign-up with a short handle',
    call(`${S}createAccount`, { handle: 'ab.test', email: 'new@example.com', password: 'long enough' }),
  ],
  [
    'sign-up with a long handle',
    call(`${S}createAccount`, { handle: `${'a'.repeat(19)}.test`, email: 'long@example.com', password: 'long enough' }),
  ],
  [
    'sign-up with a reserved handle',
    call(`${S}createAccount`, { handle: 'admin.test', email: 'new@example.com', password: 'long enough' }),
  ],
  [
    'sign-up with a bad top level',
    call(`${S}createAccount`, { handle: 'new.local', email: 'new@example.com', password: 'long enough' }),
  ],
  [
    'sign-up with a DID of somebody',
    call(`${S}createAccount`, {
      handle: 'newcomer.test',
      email: 'new@example.com',
      password: 'long enough',
      did: NOBODY,
    }),
  ],
  [
    'sign-up with no handle at all',
    call(`${S}createAccount`, { handle: 'not a handle', email: 'new@example.com', password: 'long enough' }),
  ],
  // 3.2
  ['resolving', get(`${I}resolveHandle?handle=ALICE.test`)],
  ['resolving nobody here', get(`${I}resolveHandle?handle=nobody.test`)],
  ['resolving a deactivated account', get(`${I}resolveHandle?handle=dora.test`)],
  ['credentials', get(`${I}getRecommendedDidCredentials`, 'alice')],
  ['signing without a code', call(`${I}signPlcOperation`, {}, 'alice')],
  ['signing with a wrong code', call(`${I}signPlcOperation`, { token: 'aaaaa-aaaaa' }, 'alice')],
  ['submitting nonsense', call(`${I}submitPlcOperation`, { operation: {} }, 'alice')],
  ['a handle that is taken', call(`${I}updateHandle`, { handle: 'dora.test' }, 'alice')],
  ['a handle that is too short', call(`${I}updateHandle`, { handle: 'ab.test' }, 'alice')],
  ['a handle under two labels', call(`${I}updateHandle`, { handle: 'a.b.test' }, 'alice')],
  ['a handle with a bad top level', call(`${I}updateHandle`, { handle: 'alice.local' }, 'alice')],
  ['the same handle', call(`${I}updateHandle`, { handle: 'alice.test' }, 'alice')],
  // 3.3
  ['a repository', get(alices(`${R}describeRepo?repo=$`))],
  ['nobody’s repository', get(`${R}describeRepo?repo=${NOBODY}`)],
  ['a deactivated repository', get(doras(`${R}describeRepo?repo=$`))],
  ['a taken-down repository', get(taras(`${R}describeRepo?repo=$`))],
  ['a record', get(alices(`${R}getRecord?repo=$&collection=${POST}&rkey=3jzfcijpj2z2a`))],
  [
    'a record of another version',
    get(alices(`${R}getRecord?repo=$&collection=${POST}&rkey=3jzfcijpj2z2a&cid=${OTHER_CID}`)),
  ],
  ['a record that is not there', get(alices(`${R}getRecord?repo=$&collection=${POST}&rkey=x`))],
  ['a record of a deactivated account', get(doras(`${R}getRecord?repo=$&collection=${POST}&rkey=x`))],
  ['a record of nobody', get(`${R}getRecord?repo=${NOBODY}&collection=${POST}&rkey=x`)],
  ['records', get(alices(`${R}listRecords?repo=$&collection=${POST}`))],
  ['records of nobody', get(`${R}listRecords?repo=${NOBODY}&collection=${POST}`)],
  ['records of a deactivated account', get(doras(`${R}listRecords?repo=$&collection=${POST}`))],
  [
    'writing for somebody else',
    call(`${R}createRecord`, (w: World) => ({ repo: w.dora.did, collection: POST, record: aPost('x') }), 'alice'),
  ],
  ['writing for nobody', call(`${R}createRecord`, { repo: NOBODY, collection: POST, record: aPost('x') }, 'alice')],
  [
    'writing while deactivated',
    call(`${R}createRecord`, (w: World) => ({ repo: w.dora.did, collection: POST, record: aPost('x') }), 'dora'),
  ],
  [
    'writing while taken down',
    call(`${R}createRecord`, (w: World) => ({ repo: w.tara.did, collection: POST, record: aPost('x') }), 'tara'),
  ],
  [
    'a record of another type',
    call(`${R}createRecord`, write({ record: { ...aPost('x'), $type: 'app.bsky.feed.like' } }), 'alice'),
  ],
  ['an invalid record', call(`${R}createRecord`, write({ record: { $type: POST, text: 5, createdAt: 'x' } }), 'alice')],
  ['a record without its time', call(`${R}createRecord`, write({ record: { $type: POST, text: 'x' } }), 'alice')],
  [
    'a record with a bad time',
    call(`${R}createRecord`, write({ record: { ...aPost('x'), createdAt: 'yesterday' } }), 'alice'),
  ],
  ['a bad record key', call(`${R}createRecord`, write({ rkey: 'a/b', record: aPost('x') }), 'alice')],
  ['a record key that is no TID', call(`${R}createRecord`, write({ rkey: 'abc', record: aPost('x') }), 'alice')],
  [
    'a profile that is not self',
    call(`${R}createRecord`, write({ collection: 'app.bsky.actor.profile', rkey: 'other', record: {} }), 'alice'),
  ],
  [
    'a record of an unknown type',
    call(`${R}createRecord`, write({ collection: 'com.example.thing', record: { a: 1 } }), 'alice'),
  ],
  [
    'a record of an unknown type, validated',
    call(`${R}createRecord`, write({ collection: 'com.example.thing', validate: true, record: { a: 1 } }), 'alice'),
  ],
  [
    'a record with a float',
    call(`${R}createRecord`, write({ collection: 'com.example.thing', record: { a: 1.5 } }), 'alice'),
  ],
  [
    'a record with a huge number',
    call(`${R}createRecord`, write({ collection: 'com.example.thing', record: { a: 2 ** 53 } }), 'alice'),
  ],
  [
    'a record with a bad link',
    call(`${R}createRecord`, write({ collection: 'com.example.thing', record: { a: { $link: 'x' } } }), 'alice'),
  ],
  [
    'a record with a link and more',
    call(
      `${R}createRecord`,
      write({ collection: 'com.example.thing', record: { a: { $link: OTHER_CID, b: 1 } } }),
      'alice',
    ),
  ],
  [
    'a record with a blob in the old shape',
    call(
      `${R}createRecord`,
      write({ collection: 'com.example.thing', record: { a: { cid: OTHER_CID, mimeType: 'image/png' } } }),
      'alice',
    ),
  ],
  [
    'a record with a missing blob',
    call(
      `${R}createRecord`,
      write({
        collection: 'com.example.thing',
        record: {
          a: {
            $type: 'blob',
            ref: { $link: 'bafkreie5737gdxlw5i64vzichcalba3z2v5n6icifvx5xytvske7mr3hpm' },
            mimeType: 'image/png',
            size: 1,
          },
        },
      }),
      'alice',
    ),
  ],
  [
    'a record with a blob of another type',
    call(
      `${R}createRecord`,
      (w: World) => ({
        repo: w.alice.did,
        collection: 'com.example.thing',
        record: { a: { $type: 'blob', ref: { $link: w.known['blob'] }, mimeType: 'image/png', size: 3 } },
      }),
      'alice',
    ),
  ],
  [
    'a record with a blob of another size',
    call(
      `${R}createRecord`,
      (w: World) => ({
        repo: w.alice.did,
        collection: 'com.example.thing',
        record: { a: { $type: 'blob', ref: { $link: w.known['blob'] }, mimeType: 'application/x-things', size: 4 } },
      }),
      'alice',
    ),
  ],
  [
    'a record key that is taken',
    call(`${R}createRecord`, write({ rkey: '3jzfcijpj2z2a', record: aPost('again') }), 'alice'),
  ],
  ['a stale commit', call(`${R}createRecord`, write({ record: aPost('x'), swapCommit: OTHER_CID }), 'alice')],
  [
    'a stale record',
    call(`${R}putRecord`, write({ rkey: '3jzfcijpj2z2a', record: aPost('y'), swapRecord: OTHER_CID }), 'alice'),
  ],
  [
    'a put that must be the first',
    call(`${R}putRecord`, write({ rkey: '3jzfcijpj2z2a', record: aPost('y'), swapRecord: null }), 'alice'),
  ],
  [
    'a put of the same',
    call(`${R}putRecord`, write({ rkey: '3jzfcijpj2z2a', record: aPost('hello'), swapRecord: OTHER_CID }), 'alice'),
  ],
  ['a stale deletion', call(`${R}deleteRecord`, write({ rkey: '3jzfcijpj2z2a', swapRecord: OTHER_CID }), 'alice')],
  ['a deletion of nothing', call(`${R}deleteRecord`, write({ rkey: 'x', swapCommit: OTHER_CID }), 'alice')],
  ['a batch of nothing', call(`${R}applyWrites`, (w: World) => ({ repo: w.alice.did, writes: [] }), 'alice')],
  [
    'a batch too long',
    call(
      `${R}applyWrites`,
      (w: World) => ({
        repo: w.alice.did,
        writes: Array.from({ length: 201 }, () => ({
          $type: `${R}applyWrites#create`,
          collection: 'com.example.thing',
          value: {},
        })),
      }),
      'alice',
    ),
  ],
  [
    'a batch with an unknown action',
    call(
      `${R}applyWrites`,
      (w: World) => ({ repo: w.alice.did, writes: [{ $type: `${R}applyWrites#explode`, collection: POST }] }),
      'alice',
    ),
  ],
  ['a batch for somebody else', call(`${R}applyWrites`, (w: World) => ({ repo: w.dora.did, writes: [] }), 'alice')],
  [
    'a batch that updates nothing',
    call(
      `${R}applyWrites`,
      (w: World) => ({
        repo: w.alice.did,
        writes: [{ $type: `${R}applyWrites#update`, collection: 'com.example.thing', rkey: 'x', value: {} }],
      }),
      'alice',
    ),
  ],
  [
    'a batch that deletes nothing',
    call(
      `${R}applyWrites`,
      (w: World) => ({
        repo: w.alice.did,
        writes: [{ $type: `${R}applyWrites#delete`, collection: 'com.example.thing', rkey: 'x' }],
      }),
      'alice',
    ),
  ],
  [
    'a batch',
    call(
      `${R}applyWrites`,
      (w: World) => ({
        repo: w.alice.did,
        writes: [
          { $type: `${R}applyWrites#create`, collection: 'com.example.thing', rkey: 'one', value: { a: 1 } },
          { $type: `${R}applyWrites#create`, collection: POST, value: aPost('two') },
        ],
      }),
      'alice',
    ),
  ],
  [
    'a batch of all kinds',
    call(
      `${R}applyWrites`,
      (w: World) => ({
        repo: w.alice.did,
        writes: [
          { $type: `${R}applyWrites#update`, collection: 'com.example.thing', rkey: 'one', value: { a: 2 } },
          { $type: `${R}applyWrites#delete`, collection: 'com.example.thing', rkey: 'one' },
        ],
      }),
      'alice',
    ),
  ],
  [
    'a record unchecked',
    call(`${R}createRecord`, write({ validate: false, record: { $type: POST, text: 5 } }), 'alice'),
  ],
  ['missing blobs', get(`${R}listMissingBlobs`, 'alice')],
  [
    'an archive that is none',
    send(
      `${R}importRepo`,
      { body: new Uint8Array([1, 2, 3]), headers: { 'content-type': 'application/vnd.ipld.car' } },
      'alice',
    ),
  ],
  [
    'an archive as JSON',
    send(`${R}importRepo`, { body: '{}', headers: { 'content-type': 'application/json' } }, 'alice'),
  ],
  ['an upload without a token', send(`${R}uploadBlob`, { body: 'x', headers: { 'content-type': 'text/plain' } })],
  [
    'an upload with a token that is none',
    () => [`${R}uploadBlob`, { method: 'POST', body: 'x', headers: { 'content-type': 'text/plain', ...bearer('x') } }],
  ],
  [
    'an upload',
    send(`${R}uploadBlob`, { body: 'x', headers: { 'content-type': 'text/plain; charset=utf-8' } }, 'alice'),
  ],
  ['an upload of nothing', send(`${R}uploadBlob`, { body: '', headers: { 'content-type': 'text/plain' } }, 'alice')],
  [
    'an upload while deactivated',
    send(`${R}uploadBlob`, { body: 'x', headers: { 'content-type': 'text/plain' } }, 'dora'),
  ],
  // 3.4
  ...(
    [
      'getRepo?did=$',
      'getLatestCommit?did=$',
      'getHead?did=$',
      'getCheckout?did=$',
      'getRepoStatus?did=$',
      `getBlocks?did=$&cids=${OTHER_CID}`,
      `getRecord?did=$&collection=${POST}&rkey=x`,
      `getBlob?did=$&cid=${OTHER_CID}`,
      'listBlobs?did=$',
    ] as const
  ).flatMap((path): Row[] => [
    [`${path} of an account`, get(alices(Y + path))],
    [`${path} of nobody`, get((Y + path).replace('$', NOBODY))],
    [`${path} of a deactivated account`, get(doras(Y + path))],
    [`${path} of a deactivated account, for itself`, get(doras(Y + path), 'dora')],
    [`${path} of a deactivated account, for the operator`, get(doras(Y + path), 'operator')],
    [`${path} of a taken-down account`, get(taras(Y + path))],
    [`${path} of a taken-down account, for itself`, get(taras(Y + path), 'tara')],
    [`${path} of a taken-down account, for the operator`, get(taras(Y + path), 'operator')],
  ]),
  ['repositories', get(`${Y}listRepos`)],
  ['repositories after nonsense', get(`${Y}listRepos?cursor=nonsense`)],
  ['repositories by one', get(`${Y}listRepos?limit=1`)],
  // 3.5
  ['an account, for the operator', get(alices(`${A}getAccountInfo?did=$`), 'operator')],
  ['nobody, for the operator', get(`${A}getAccountInfo?did=${NOBODY}`, 'operator')],
  ['accounts, for the operator', get((w) => `${A}getAccountInfos?dids=${w.alice.did}&dids=${NOBODY}`, 'operator')],
  ['a subject', get(alices(`${A}getSubjectStatus?did=$`), 'operator')],
  ['a taken-down subject', get(taras(`${A}getSubjectStatus?did=$`), 'operator')],
  ['a deactivated subject', get(doras(`${A}getSubjectStatus?did=$`), 'operator')],
  ['a subject that is nobody', get(`${A}getSubjectStatus?did=${NOBODY}`, 'operator')],
  ['no subject', get(`${A}getSubjectStatus`, 'operator')],
  ['a blob of nobody', get(`${A}getSubjectStatus?blob=${OTHER_CID}`, 'operator')],
  ['a record as a subject', get(alices(`${A}getSubjectStatus?uri=at://$/${POST}/3jzfcijpj2z2a`), 'operator')],
  ['a record that is not there as a subject', get(alices(`${A}getSubjectStatus?uri=at://$/${POST}/x`), 'operator')],
  [
    'activation and takedown at once',
    call(
      `${A}updateSubjectStatus`,
      (w: World) => ({
        subject: { $type: 'com.atproto.admin.defs#repoRef', did: w.dora.did },
        takedown: { applied: true },
        deactivated: { applied: false },
      }),
      'operator',
    ),
  ],
  [
    'an unknown kind of subject',
    call(`${A}updateSubjectStatus`, { subject: { $type: 'com.example.defs#thing' } }, 'operator'),
  ],
  [
    'a status that changes nothing',
    call(
      `${A}updateSubjectStatus`,
      (w: World) => ({ subject: { $type: 'com.atproto.admin.defs#repoRef', did: w.dora.did } }),
      'operator',
    ),
  ],
  ['an address for nobody', call(`${A}updateAccountEmail`, { account: NOBODY, email: 'x@example.com' }, 'operator')],
  [
    'an address that is taken',
    call(`${A}updateAccountEmail`, { account: 'dora.test', email: 'alice@example.com' }, 'operator'),
  ],
  [
    'an endless password, by the operator',
    call(`${A}updateAccountPassword`, (w: World) => ({ did: w.dora.did, password: 'x'.repeat(257) }), 'operator'),
  ],
  [
    'a handle, by the operator',
    call(`${A}updateAccountHandle`, (w: World) => ({ did: w.dora.did, handle: 'a.b.test' }), 'operator'),
  ],
  ['mail to nobody', call(`${A}sendEmail`, { recipientDid: NOBODY, senderDid: NOBODY, content: 'x' }, 'operator')],
  [
    'mail',
    call(`${A}sendEmail`, (w: World) => ({ recipientDid: w.alice.did, senderDid: NOBODY, content: 'x' }), 'operator'),
  ],
  ['codes', get(`${A}getInviteCodes`, 'operator')],
  ['codes in an unknown order', get(`${A}getInviteCodes?sort=x`, 'operator')],
  ['codes after nonsense', get(`${A}getInviteCodes?cursor=x`, 'operator')],
  ['disabling the operator’s codes', call(`${A}disableInviteCodes`, { accounts: ['admin'] }, 'operator')],
  ['a code', call(`${S}createInviteCode`, { useCount: 1 }, 'operator')],
  ['many codes', call(`${S}createInviteCodes`, { codeCount: 2, useCount: 1 }, 'operator')],
  ['deleting nobody, by the operator', call(`${A}deleteAccount`, { did: NOBODY }, 'operator')],
  // 3.6, 10, 12
  ['the queue', get('com.atproto.temp.checkSignupQueue', 'alice')],
  [
    'a report without a service',
    call(
      'com.atproto.moderation.createReport',
      (w: World) => ({
        reasonType: 'com.atproto.moderation.defs#reasonSpam',
        subject: { $type: 'com.atproto.admin.defs#repoRef', did: w.dora.did },
      }),
      'alice',
    ),
  ],
  ['preferences', get('app.bsky.actor.getPreferences', 'alice')],
  ['preferences without a type', call('app.bsky.actor.putPreferences', { preferences: [{ x: 1 }] }, 'alice')],
  [
    'preferences of others',
    call('app.bsky.actor.putPreferences', { preferences: [{ $type: 'com.example.pref' }] }, 'alice'),
  ],
  [
    'the birth date by an app password',
    call(
      'app.bsky.actor.putPreferences',
      { preferences: [{ $type: 'app.bsky.actor.defs#personalDetailsPref', birthDate: '2000-01-01T00:00:00Z' }] },
      'plain',
    ),
  ],
  [
    'preferences that are set',
    call(
      'app.bsky.actor.putPreferences',
      { preferences: [{ $type: 'app.bsky.actor.defs#adultContentPref', enabled: false }] },
      'alice',
    ),
  ],
  ['a protected method for others', get(`${S}GetSession`, 'alice')],
  ['chats by an app password', get('chat.bsky.convo.getLog', 'plain')],
  ...(
    [
      '#x',
      'did:web:example.com',
      'did:web:example.com#',
      'did:web:example.com#a#b',
      'did:web:example.com #a',
      'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa#x',
    ] as const
  ).map((proxy): Row => [
    `the proxy header "${proxy}"`,
    (w) => ['app.bsky.unspecced.getConfig', { headers: { ...bearer(w.alice.accessJwt), 'atproto-proxy': proxy } }],
  ]),
  ['a proxied method without a token', get('app.bsky.unspecced.getConfig')],
  [
    'codings that nobody speaks',
    (w) => ['app.bsky.feed.getTimeline', { headers: { ...bearer(w.alice.accessJwt), 'accept-encoding': 'x, *;q=0' } }],
  ],
  // 4.4: what each state of an account allows
  ...(['dora', 'tara', 'gone'] as const).flatMap((who): Row[] => {
    const thing = (w: World, more: object = {}) => ({
      repo: w[who].did,
      collection: 'com.example.thing',
      rkey: 'one',
      ...more,
    })
    const actions: [name: string, step: Step][] = [
      ['getSession', get(`${S}getSession`, who)],
      ['checkAccountStatus', get(`${S}checkAccountStatus`, who)],
      ['createSession', call(`${S}createSession`, { identifier: `${who}.test`, password: PASSWORD })],
      ['createAppPassword', call(`${S}createAppPassword`, { name: 'another' }, who)],
      ['listAppPasswords', get(`${S}listAppPasswords`, who)],
      ['requestEmailConfirmation', send(`${S}requestEmailConfirmation`, {}, who)],
      ['requestEmailUpdate', send(`${S}requestEmailUpdate`, {}, who)],
      ['requestAccountDelete', send(`${S}requestAccountDelete`, {}, who)],
      ['getServiceAuth', get(`${S}getServiceAuth?aud=did:web:example.com&lxm=com.example.get`, who)],
      ['getRecommendedDidCredentials', get(`${I}getRecommendedDidCredentials`, who)],
      ['requestPlcOperationSignature', send(`${I}requestPlcOperationSignature`, {}, who)],
      ['updateHandle', call(`${I}updateHandle`, { handle: `${who}-new.test` }, who)],
      ['resolveHandle', get(`${I}resolveHandle?handle=${who}.test`)],
      ['createRecord', call(`${R}createRecord`, (w: World) => thing(w, { record: { a: 1 } }), who)],
      ['putRecord', call(`${R}putRecord`, (w: World) => thing(w, { record: { a: 1 } }), who)],
      ['deleteRecord', call(`${R}deleteRecord`, (w: World) => thing(w), who)],
      [
        'applyWrites',
        call(
          `${R}applyWrites`,
          (w: World) => ({
            repo: w[who].did,
            writes: [{ $type: `${R}applyWrites#create`, collection: 'com.example.thing', value: { a: 1 } }],
          }),
          who,
        ),
      ],
      ['uploadBlob', send(`${R}uploadBlob`, { body: 'x', headers: { 'content-type': 'text/plain' } }, who)],
      ['listMissingBlobs', get(`${R}listMissingBlobs`, who)],
      ['describeRepo', get(repoOf(who)(`${R}describeRepo?repo=$`))],
      ['describeRepo by handle', get(`${R}describeRepo?repo=${who}.test`)],
      ['getRecord', get(repoOf(who)(`${R}getRecord?repo=$&collection=${POST}&rkey=x`))],
      ['listRecords', get(repoOf(who)(`${R}listRecords?repo=$&collection=${POST}`))],
      ['getRepoStatus', get(repoOf(who)(`${Y}getRepoStatus?did=$`))],
      ['getPreferences', get('app.bsky.actor.getPreferences', who)],
      ['putPreferences', call('app.bsky.actor.putPreferences', { preferences: [] }, who)],
      ['a proxied method', get('app.bsky.unspecced.getConfig', who)],
      ['getAccountInfo', get(repoOf(who)(`${A}getAccountInfo?did=$`), 'operator')],
    ]
    return actions.map(([name, step]) => [`${name} of ${who}`, step])
  }),
  // 2.5
  ['a refresh', (w) => [`${S}refreshSession`, { method: 'POST', headers: bearer(w.alice.refreshJwt) }]],
  [
    'a refresh while deactivated',
    (w) => [`${S}refreshSession`, { method: 'POST', headers: bearer(w.dora.refreshJwt) }],
  ],
  ['a refresh while taken down', (w) => [`${S}refreshSession`, { method: 'POST', headers: bearer(w.tara.refreshJwt) }]],
  ['the end of a session', (w) => [`${S}deleteSession`, { method: 'POST', headers: bearer(w.dora.refreshJwt) }]],
  ['the end of a session, again', (w) => [`${S}deleteSession`, { method: 'POST', headers: bearer(w.dora.refreshJwt) }]],
  ['a refresh after the end', (w) => [`${S}refreshSession`, { method: 'POST', headers: bearer(w.dora.refreshJwt) }]],
  // 1.5, 7.1: types
  ['an upload of no type', send(`${R}uploadBlob`, { body: new Uint8Array([1]) }, 'alice')],
  ...(['x', 'image/*', '*/*', 'text/plain;charset=latin1'] as const).map((type): Row => [
    `an upload of the type "${type}"`,
    send(`${R}uploadBlob`, { body: 'x', headers: { 'content-type': type } }, 'alice'),
  ]),
  ['a body of no type', send(`${S}createSession`, { body: new TextEncoder().encode('{}') })],
  // 2.7
  ...(
    ['example.com%23x', 'example.com%23', 'example.com%23a%23b', 'localhost%253A3000', '', 'example.com%20'] as const
  ).map((host): Row => [
    `a service token for did:web:${host}`,
    get(`${S}getServiceAuth?aud=did:web:${host}&lxm=com.example.get`, 'alice'),
  ]),
  // 3.3, 3.4: pages
  ...(
    [
      `${R}listRecords?repo=$&collection=${POST}&limit=1`,
      `${R}listRecords?repo=$&collection=${POST}&limit=1&reverse=true`,
      `${R}listRecords?repo=$&collection=${POST}&cursor=zzz`,
      `${R}listRecords?repo=$&collection=${POST}&cursor=a/b`,
      `${R}listRecords?repo=$&collection=com.example.none`,
      `${R}listRecords?repo=alice.test&collection=${POST}&limit=1`,
      `${Y}getRepo?did=$&since=3jzfcijpj2z2a`,
      `${Y}getRepo?did=$&since=7zzzzzzzzzzzz`,
      `${Y}getRepo?did=$&since=`,
      `${Y}listBlobs?did=$&cursor=zzzz`,
      `${Y}listBlobs?did=$&since=7zzzzzzzzzzzz`,
      `${Y}listBlobs?did=$&limit=1001`,
      `${Y}getRecord?did=$&collection=${POST}&rkey=3jzfcijpj2z2a`,
      `${Y}getRecord?did=$&collection=com.example&rkey=x`,
      `${Y}listRepos?limit=0`,
      `${Y}listRepos?cursor=::`,
    ] as const
  ).map((path): Row => [path, get(alices(path))]),
  ['a block twice', get((w) => `${Y}getBlocks?did=${w.alice.did}&cids=${w.known['post']}&cids=${w.known['post']}`)],
  // 6.2: keys, collections and what is in a record
  ...['', '.', '..', 'a b', 'é', '~', 'a:b', '__proto__', 'x'.repeat(512), 'x'.repeat(513), null, 1].map(
    (rkey): Row => [
      `the record key ${JSON.stringify(rkey).slice(0, 20)} of ${String(rkey).length}`,
      call(`${R}createRecord`, write({ collection: 'com.example.thing', rkey, record: { a: 1 } }), 'alice'),
    ],
  ),
  ...['com.example', 'com.example.Thing', 'com.example.thing-x', 'com.example.1thing', 'COM.example.thing', ''].map(
    (collection): Row => [
      `the collection "${collection}"`,
      call(`${R}createRecord`, write({ collection, record: { a: 1 } }), 'alice'),
    ],
  ),
  [
    'a profile without a record key',
    call(`${R}createRecord`, write({ collection: 'app.bsky.actor.profile', record: {} }), 'alice'),
  ],
  ...['{"__proto__":{"a":1}}', '{"a":null}', '{"a":1.0}', '{"a":9007199254740991}', '{"":1}', '{"a":1,"a":2}'].map(
    (record): Row => [
      `the record ${record}`,
      send(
        `${R}createRecord`,
        (w) => ({
          body: `{"repo":"${w.alice.did}","collection":"com.example.thing","record":${record}}`,
          headers: { 'content-type': 'application/json' },
        }),
        'alice',
      ),
    ],
  ),
  ...[
    { text: 'x'.repeat(3001) },
    { text: 'é'.repeat(301) },
    { text: null },
    { langs: ['not a lang'] },
    { langs: ['en', 'de', 'fr', 'es'] },
    { tags: ['x'.repeat(641)] },
    { embed: { a: 1 } },
    { embed: { $type: 'com.example.embed', a: 1 } },
    { embed: { $type: 'app.bsky.embed.images', images: [{ alt: 'x' }] } },
    { reply: { root: { uri: `at://${NOBODY}/${POST}/x` } } },
    { facets: [{ index: { byteStart: -1, byteEnd: 1 }, features: [] }] },
    { labels: { values: [{ val: 'x' }] } },
    { more: { than: 'known' } },
    ...['2026-01-01t00:00:00z', '2026-01-01T00:00:00', '2026-01-01T00:00:00-00:00', '2026-02-30T00:00:00Z'].map(
      (createdAt) => ({ createdAt }),
    ),
  ].map((more): Row => [
    `a post with ${JSON.stringify(more).slice(0, 60)}`,
    call(`${R}createRecord`, write({ record: { ...aPost('x'), ...more } }), 'alice'),
  ]),
  ...[null, 'true', 1].map((validate): Row => [
    `a record validated ${JSON.stringify(validate)}`,
    call(`${R}createRecord`, write({ validate, record: aPost('x') }), 'alice'),
  ]),
  // 6.4
  ...[null, '', 'x'].flatMap((swap): Row[] => [
    [
      `a swap of the commit ${JSON.stringify(swap)}`,
      call(`${R}createRecord`, write({ record: aPost('x'), swapCommit: swap }), 'alice'),
    ],
    [
      `a put that swaps the record ${JSON.stringify(swap)}`,
      call(
        `${R}putRecord`,
        write({ collection: 'com.example.thing', rkey: 'new', record: {}, swapRecord: swap }),
        'alice',
      ),
    ],
    [
      `a deletion that swaps the record ${JSON.stringify(swap)}`,
      call(`${R}deleteRecord`, write({ collection: 'com.example.thing', rkey: 'new', swapRecord: swap }), 'alice'),
    ],
  ]),
  ...[{ $type: `${R}applyWrites#create`, collection: POST }, { collection: POST, value: {} }, null, 1].map(
    (item): Row => [
      `a batch of ${JSON.stringify(item)}`,
      call(`${R}applyWrites`, (w: World) => ({ repo: w.alice.did, writes: [item] }), 'alice'),
    ],
  ),
  // 10.3, 10.4
  ...failing.map(([nsid]): Row => [nsid, get(nsid, 'alice')]),
  [
    'headers for a service',
    (w) => [
      TELLS_HEADERS,
      { headers: { ...bearer(w.alice.accessJwt), 'x-atproto-bsky-topics': 'a', 'x-bsky-topics': 'b', 'x-other': 'c' } },
    ],
  ],
  // 12.1
  ...[
    { $type: 'app.bsky' },
    { $type: 'app.bskyx.foo' },
    { $type: '' },
    { $type: 'app.bsky.actor.defs#adultContentPref', enabled: 'x' },
    { $type: 'app.bsky.actor.defs#declaredAgePref', isOverAge13: true },
    { $type: 'app.bsky.actor.defs#personalDetailsPref', birthDate: '2000-01-01T00:00:00.000Z' },
  ].map((preference): Row => [
    `the preference ${JSON.stringify(preference)}`,
    call('app.bsky.actor.putPreferences', { preferences: [preference] }, 'alice'),
  ]),
  ['preferences with a birth date', get('app.bsky.actor.getPreferences', 'alice')],
  ['preferences with a birth date, for an app password', get('app.bsky.actor.getPreferences', 'plain')],
]

/** What is told, without what must differ: names of this world, and values that are drawn or counted. */
export type Told = Refused | Success

interface Refused {
  status: number
  error: string
  message: string
}

interface Success {
  status: number
  type: string | null
  members: string[]
}

/** `text`: the refusal reads otherwise, as it comes from another parser or validator. */
type Deviation =
  'text' | { why: string; ours: object } | { why: string; adds: string[] } | { why: string; lacks: string[] }

const invalid = { status: 400, error: 'InvalidRequest' }
const instead = (why: string, ours: object): Deviation => ({ why, ours })
const mistake = (message: object = {}) =>
  instead('a mistake of the caller is no fault of the server', { ...invalid, ...message })
const blobNotFound = instead('the name that the lexicon gives it', {
  status: 400,
  error: 'BlobNotFound',
  message: 'Blob not found',
})
const extension: Deviation = {
  why: 'tells what it can beside the standard',
  adds: ['.custos', '.extension', '.phoneVerificationRequired'],
}
const missing = instead('one answer for a token that outlives its account', {
  status: 403,
  error: 'AccountNotFound',
  message: 'Account not found',
})
const notTheSameTwice = instead('consumers of the firehose undo the operations of a commit, one for a record', {
  ...invalid,
  message: 'More than one write of a record: com.example.thing/one',
})

export const deviations = new Map<string, Deviation>([
  ...[
    'bad parameters and no token', 'a limit that is too high', 'a limit of zero', 'a limit that is no number', 'a limit twice', 'a boolean that is none', 'a DID that is none',
    'a handle that is none', 'a CID that is none', 'a TID that is none', 'a collection that is none', 'a missing parameter', 'JSON that is none', 'JSON that is a number', 'JSON that is null',
    'a record key that is no TID', 'a profile that is not self', 'a record with a float', 'a profile without a record key', 'the record {"__proto__":{"a":1}}',
    `${Y}getRecord?did=$&collection=com.example&rkey=x`, `${Y}listBlobs?did=$&limit=1001`, `${Y}listRepos?limit=0`,
  ].map((name) => [name, 'text'] as const), // prettier-ignore
  ['no NSID', instead('what is no method is told so, whoever asks', { ...invalid, message: 'invalid xrpc path' })],
  [
    'no NSID either',
    instead('what is no method is told so, whoever asks', { ...invalid, message: 'invalid xrpc path' }),
  ],
  [
    'a coding nobody knows',
    instead('one name for JSON and for streams', {
      status: 415,
      error: 'UnsupportedMediaType',
      message: 'unsupported content-encoding',
    }),
  ],
  ['the header "DPoP x"', instead('the proof is looked at first', { status: 401, error: 'invalid_dpop_proof' })],
  [
    'a session at an operator’s method',
    instead('the token is looked at before it is asked whether anybody may come with one', {
      status: 401,
      error: 'BadJwtType',
    }),
  ],
  [
    'sign-up with a PLC operation',
    instead('identities that wallets sign are taken under a configured master key', {
      status: 503,
      error: 'ServiceUnavailable',
    }),
  ],
  ['a slash more', extension],
  ['the server', extension],
  ['app passwords', { why: 'grants of our own', adds: ['.personalDetails'] }],
  ['an app password of the same name', mistake()],
  [
    'sign-up with a taken address',
    instead('who has an account is not told', {
      status: 400,
      error: 'InvalidRequest',
      message: 'This email address is not supported, please use a different email.',
    }),
  ],
  ['sign-up with a long handle', instead('a label may be as long as DNS lets it be', { status: 200 })],
  [
    `getBlocks?did=$&cids=${OTHER_CID} of an account`,
    instead('the name that the lexicon gives it', {
      status: 400,
      error: 'BlockNotFound',
      message: 'Could not find cids: CID',
    }),
  ],
  ['a reset for nobody', instead('who has an account is not told', { status: 200 })],
  ...['deleting nobody', 'deleting with a wrong password', 'deleting with a wrong code'].map(
    (name) =>
      [
        name,
        instead('one answer for whatever does not fit', {
          status: 401,
          error: 'AuthenticationRequired',
          message: 'Invalid did, password, proof or token',
        }),
      ] as const,
  ),
  [
    'a service token to leave',
    instead('who was taken down may take the account elsewhere', { status: 200, members: ['.token: string'] }),
  ],
  ['createAppPassword of dora', { why: 'grants of our own', adds: ['.personalDetails'] }],
  ['listAppPasswords of dora', { why: 'grants of our own', adds: ['.personalDetails'] }],
  ['describeRepo by handle of tara', 'text'],
  ...[
    'checkAccountStatus',
    'getServiceAuth',
    'getRecommendedDidCredentials',
    'listMissingBlobs',
    'getPreferences',
    'a proxied method',
  ].map((name) => [`${name} of gone`, missing] as const),
  ['a record with a huge number', mistake()],
  ['a record with a bad link', mistake()],
  ['a record with a link and more', mistake()],
  ['a record with a blob in the old shape', mistake({ message: 'Legacy blobs are not allowed (CID)' })],
  ['a record key that is taken', mistake()],
  ['a batch that updates nothing', mistake({ error: 'RecordNotFound' })],
  ['a batch that deletes nothing', mistake({ error: 'RecordNotFound' })],
  ['a batch of all kinds', notTheSameTwice],
  ['a batch of nothing', { why: 'nothing changed, so there is no commit', lacks: ['.commit'] }],
  ['an archive that is none', mistake()],
  ['an upload with a token that is none', mistake({ error: 'InvalidToken' })],
  ['repositories', { why: 'no cursor behind the last page', lacks: ['.cursor'] }],
  ['an unknown kind of subject', mistake()],
  ['an address that is taken', mistake()],
  [
    'a report without a service',
    instead('there is always one configured; here nobody answers', { status: 502, error: 'UpstreamFailure' }),
  ],
  [
    'a protected method for others',
    instead('names are matched to the letter', { status: 400, error: 'InvalidToken', message: 'Bad token method' }),
  ],
  ...[
    'an account',
    'a deactivated account, for itself',
    'a deactivated account, for the operator',
    'a taken-down account, for itself',
    'a taken-down account, for the operator',
  ].map((whose) => [`getBlob?did=$&cid=${OTHER_CID} of ${whose}`, blobNotFound] as const),
])

function told({ status, headers, body }: Answer, world: World): Told {
  if (status >= 400)
    return {
      status,
      error: body.error,
      message: typeof body.message === 'string' ? anonymous(body.message, world) : body.message,
    }
  const type = headers.get('content-type')
  return {
    status,
    type: type === null ? null : type.replace(/;.*/, ''),
    members: type?.includes('json') ? members(body, '') : [],
  }
}

function anonymous(text: string, { alice, dora, tara, gone, url, known }: World): string {
  const names: [string, string][] = [
    [alice.did, 'ALICE'],
    [dora.did, 'DORA'],
    [tara.did, 'TARA'],
    [gone.did, 'GONE'],
    [url, 'URL'],
    ...Object.entries(known).map(([name, value]): [string, string] => [value, name.toUpperCase()]),
  ]
  return names
    .reduce((result, [value, name]) => result.replaceAll(value, name), text)
    .replace(/bafyrei[a-z2-7]+/g, 'CID')
    .replace(/"3[a-z2-7]{12}"/g, '"TID"')
}

const members = (value: unknown, path: string): string[] =>
  Array.isArray(value)
    ? [...new Set(value.flatMap((item) => members(item, `${path}[]`)))].toSorted()
    : typeof value === 'object' && value !== null
      ? Object.entries(value)
          .flatMap(([key, item]) => members(item, `${path}.${key}`))
          .toSorted()
      : [`${path}: ${typeof value === 'boolean' ? value : typeof value}`]

export async function ask(world: World, step: Step): Promise<Told> {
  const [path, init] = step(world)
  return told(await request(`${world.url}/xrpc/${path}`, init), world)
}

/** `ours` is what the reference answered, or else what is answered here on purpose. */
export function expectAnswer(name: string, ours: Told, theirs: Told): void {
  const deviation = deviations.get(name)
  if (deviation === undefined) return expect<object>(ours).toEqual(theirs)
  expect<object>(ours).not.toEqual(theirs)
  if (deviation === 'text') expect<object>({ ...ours, message: '' }).toEqual({ ...theirs, message: '' })
  else if ('adds' in deviation) expect<object>(without(ours, deviation.adds)).toEqual(theirs)
  else if ('lacks' in deviation) expect<object>(ours).toEqual(without(theirs, deviation.lacks))
  else expect<object>(ours).toMatchObject(deviation.ours)
}

const without = (answer: Told, names: readonly string[]): Told =>
  'members' in answer
    ? { ...answer, members: answer.members.filter((member) => !names.some((name) => member.includes(name))) }
    : answer
