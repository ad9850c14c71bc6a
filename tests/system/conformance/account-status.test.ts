/**
 * What a token is still worth when its account was taken down, deactivated or deleted after it was issued: for every
 * method that takes one, and on every way through to other services.
 */
import { beforeAll, describe, expect, test } from 'bun:test'
import { createAccount, logIn, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { bearer, type Answer, type request } from '../../support/clients/http.ts'
import { loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { openStage, operator, SERVICES, setTakedown } from './callers.ts'
import { servedMethods, type Served } from './served-methods.ts'
import { setUp } from '../../support/set-up.ts'

type Status = 'takendown' | 'deactivated' | 'deleted'
type Outcomes = Record<Status, string>

const OK = '200'
const TAKEN_DOWN = '401 AccountTakedown'
const ENDED = '400 ExpiredToken'
const NOT_THERE = '403 AccountNotFound'
const NO_REPO = '400 RepoNotFound'

/**
 * What holds where the table says nothing else: no word for who was taken down, while a deactivated account is its
 * holder's.
 */
const usual: Outcomes = { takendown: TAKEN_DOWN, deactivated: OK, deleted: NOT_THERE }
const write: Outcomes = { ...usual, deactivated: '401 AccountDeactivated' }
/** A holder sees what is theirs in any state. */
const own: Outcomes = { takendown: OK, deactivated: OK, deleted: NOT_THERE }
const ownRepo: Outcomes = { ...own, deleted: NO_REPO }
/** Decided by what the request says, which is junk here. */
const junk = (answer: string): Outcomes => ({ takendown: answer, deactivated: answer, deleted: answer })

/** As the reference, but for the ways to other services: there it goes on speaking for who was taken down. */
const outcomes: Record<string, Outcomes> = {
  'com.atproto.server.activateAccount': {
    takendown: '400 AccountNotFound',
    deactivated: OK,
    deleted: '400 AccountNotFound',
  },
  'com.atproto.server.checkAccountStatus': own,
  'com.atproto.server.confirmEmail': { ...usual, deactivated: '400 InvalidToken' },
  'com.atproto.server.deactivateAccount': { ...own, deleted: '400 InvalidRequest' },
  'com.atproto.server.getAccountInviteCodes': { ...usual, deactivated: '400 NotFound' },
  // With the one method that is for moving away.
  'com.atproto.server.getServiceAuth': own,
  'com.atproto.server.getSession': { takendown: '400 InvalidRequest', deactivated: OK, deleted: '400 InvalidRequest' },
  'com.atproto.server.listAppPasswords': { ...own, deleted: OK },
  'com.atproto.server.revokeAppPassword': { ...own, deleted: OK },
  'com.atproto.identity.getRecommendedDidCredentials': own,
  'com.atproto.identity.requestPlcOperationSignature': { ...own, deleted: '400 InvalidRequest' },
  'com.atproto.identity.signPlcOperation': junk('400 InvalidToken'),
  'com.atproto.identity.submitPlcOperation': junk('400 InvalidRequest'),
  'com.atproto.repo.applyWrites': write,
  'com.atproto.repo.createRecord': write,
  'com.atproto.repo.deleteRecord': write,
  'com.atproto.repo.putRecord': write,
  'com.atproto.repo.importRepo': { ...usual, deactivated: '400 InvalidRequest' },
  'com.atproto.repo.listMissingBlobs': own,
  'com.atproto.sync.getBlob': { takendown: '400 BlobNotFound', deactivated: '400 BlobNotFound', deleted: NO_REPO },
  'com.atproto.sync.getBlocks': ownRepo,
  'com.atproto.sync.getLatestCommit': ownRepo,
  'com.atproto.sync.getRecord': ownRepo,
  'com.atproto.sync.getRepo': ownRepo,
  'com.atproto.sync.listBlobs': ownRepo,
  'com.atproto.sync.getCheckout': ownRepo,
  'com.atproto.sync.getHead': ownRepo,
  // The way to appeal.
  'com.atproto.moderation.createReport': own,
  'com.atproto.temp.checkSignupQueue': junk(OK),
  'app.bsky.actor.getPreferences': own,
}

type Init = Parameters<typeof request>[1]

const collection = 'app.bsky.feed.post'
const record = { $type: collection, text: 'Hello!', createdAt: '2026-01-01T00:00:00.000Z' }
const rkey = '3jzfcijpj2z2a'
const device = { serviceDid: SERVICES.appview, token: 't', platform: 'web', appId: 'a' }

const inputs: Record<string, (who: TestAccount) => Init> = {
  'com.atproto.server.confirmEmail': ({ email }) => ({ json: { email, token: 'x' } }),
  'com.atproto.server.createAppPassword': () => ({ json: { name: 'another' } }),
  'com.atproto.server.deactivateAccount': () => ({ json: {} }),
  'com.atproto.server.revokeAppPassword': () => ({ json: { name: 'nothing' } }),
  'com.atproto.server.updateEmail': ({ handle }) => ({ json: { email: `new.${handle}@example.com` } }),
  'com.atproto.identity.signPlcOperation': () => ({ json: { token: 'x' } }),
  'com.atproto.identity.submitPlcOperation': () => ({ json: { operation: {} } }),
  'com.atproto.identity.updateHandle': ({ handle }) => ({ json: { handle: `new-${handle}` } }),
  'com.atproto.repo.applyWrites': ({ did: repo }) => ({
    json: { repo, writes: [{ $type: 'com.atproto.repo.applyWrites#create', collection, value: record }] },
  }),
  'com.atproto.repo.createRecord': ({ did: repo }) => ({ json: { repo, collection, record } }),
  'com.atproto.repo.deleteRecord': ({ did: repo }) => ({ json: { repo, collection, rkey } }),
  'com.atproto.repo.putRecord': ({ did: repo }) => ({ json: { repo, collection, rkey, record } }),
  'com.atproto.repo.uploadBlob': () => ({ method: 'POST', body: 'x', headers: { 'content-type': 'text/plain' } }),
  'com.atproto.moderation.createReport': ({ did }) => ({
    json: {
      reasonType: 'com.atproto.moderation.defs#reasonAppeal',
      subject: { $type: 'com.atproto.admin.defs#repoRef', did },
    },
  }),
  'app.bsky.actor.putPreferences': () => ({ json: { preferences: [] } }),
  'app.bsky.notification.registerPush': () => ({ json: device }),
  'app.bsky.notification.unregisterPush': () => ({ json: device }),
}

let accounts: Record<Status, TestAccount>
/** An app password's session of the account that was taken down. */
let helper: TestAccount
/** Sessions that were ended, of accounts that are active and taken down. */
let ended: TestAccount[]
/** Apps that were authorized before, by their account's status. */
let apps: Record<'takendown' | 'deactivated', { client: OAuthClient; token: string }>

const stage = setUp(openStage)
beforeAll(async () => {
  const { pds, appview } = stage
  appview.answer('com.atproto.repo.getRecord', () => Response.json({ value: { did: stage.elsewhere.did } }))
  const [takendown, deactivated, deleted] = [
    await createAccount(pds, 'tom'),
    await createAccount(pds, 'dan'),
    await createAccount(pds, 'gil'),
  ]
  accounts = { takendown, deactivated, deleted }
  ended = [await createAccount(pds, 'eve'), await logIn(pds, takendown, takendown.password)]
  const { body: made } = await takendown.call('com.atproto.server.createAppPassword', { json: { name: 'helper' } })
  helper = await logIn(pds, takendown, made.password)
  apps = { takendown: await letIn(takendown), deactivated: await letIn(deactivated) }
  await setTakedown(pds, takendown.did, true)
  await deactivated.call('com.atproto.server.deactivateAccount', { json: {} })
  await xrpc(pds, 'com.atproto.admin.deleteAccount', { json: { did: deleted.did }, headers: operator })
  for (const { refreshJwt } of ended)
    await xrpc(pds, 'com.atproto.server.deleteSession', { method: 'POST', headers: bearer(refreshJwt) })
})

async function letIn({ handle, password }: TestAccount): Promise<{ client: OAuthClient; token: string }> {
  const scope = 'atproto transition:generic'
  const client = new OAuthClient(stage.pds, loopbackClientId(scope))
  const { access_token: token } = await client.signIn({ identifier: handle, password }, { scope })
  return { client, token }
}

const told = ({ status, body }: Answer) => (status === 200 ? OK : `${status} ${body.error}`)
const methodsOf = ({ did, handle }: Pick<TestAccount, 'did' | 'handle'>) =>
  servedMethods({
    did,
    handle,
    appview: `${SERVICES.appview}#bsky_appview`,
    reports: `${SERVICES.reports}#atproto_labeler`,
  }).filter(({ callers }) => callers.includes('F'))

const pathOf = ({ nsid, query }: Served) => (query === undefined ? nsid : `${nsid}?${new URLSearchParams(query)}`)

function ask(nsid: string, who: TestAccount): Promise<Answer> {
  const served = methodsOf(who).find((method) => method.nsid === nsid)!
  return who.call(pathOf(served), inputs[nsid]?.(who) ?? (served.verb === 'POST' ? { method: 'POST' } : {}))
}

describe.each(
  methodsOf({ did: 'did:plc:placeholder', handle: 'placeholder.test' }).map(
    ({ nsid, callers }) => [nsid, callers] as const,
  ),
)('%s', (nsid, kinds) => {
  const expected = outcomes[nsid] ?? usual

  test('with a session from before', async () => {
    const actual: Partial<Outcomes> = {}
    for (const status of ['takendown', 'deactivated', 'deleted'] as const)
      actual[status] = told(await ask(nsid, accounts[status]))
    expect(actual).toEqual(expected)
  })

  test('with a session that was ended', async () => {
    const [active, takendown] = await Promise.all(ended.map(async (who) => told(await ask(nsid, who))))
    expect(active).toBe(ENDED)
    // If there is nothing for who was taken down, that may be said first.
    expect([ENDED, ...(expected.takendown === OK ? [] : [expected.takendown])]).toContain(takendown!)
  })

  test('with an app password of who was taken down', async () => {
    // It never moves an account.
    const answer = nsid === 'com.atproto.server.getServiceAuth' ? '400 InvalidRequest' : expected.takendown
    if (kinds.includes('A')) expect(told(await ask(nsid, helper))).toBe(answer)
  })
})

/** Named by the request, or by the method's name alone. */
const ways: Record<string, { path: string; init?: () => Init }> = {
  'the AppView': { path: 'app.bsky.graph.getFollows?actor=alice.test' },
  'the AppView, to write there': { path: 'app.bsky.bookmark.createBookmark', init: () => ({ json: {} }) },
  'a service that the request names': {
    path: 'com.example.anything',
    init: () => ({ headers: { 'atproto-proxy': `${stage.elsewhere.did}#some_service` } }),
  },
  'the preferences of another AppView': {
    path: 'app.bsky.actor.getPreferences',
    init: () => ({ headers: { 'atproto-proxy': `${stage.elsewhere.did}#some_service` } }),
  },
}

describe.each(Object.entries(ways))('on the way to %s', (_, { path, init }) => {
  test('who was taken down has no voice, and who is deactivated has one', async () => {
    stage.elsewhere.services['some_service'] = stage.elsewhere.url
    const before = stage.appview.received.length + stage.elsewhere.received.length
    for (const who of [accounts.takendown, helper]) expect(told(await who.call(path, init?.()))).toBe(TAKEN_DOWN)
    expect(told(await accounts.deleted.call(path, init?.()))).toBe(NOT_THERE)
    expect(stage.appview.received.length + stage.elsewhere.received.length).toBe(before)
    expect(told(await accounts.deactivated.call(path, init?.()))).toBe(OK)
  })

  test('an app goes with the account that let it in', async () => {
    const asked = init?.()
    const { takendown, deactivated } = apps
    expect(told(await takendown.client.call(takendown.token, path, {}, asked))).toBe('401 invalid_token')
    if (!path.startsWith('com.example.') && !asked?.headers)
      expect(told(await deactivated.client.call(deactivated.token, path, {}, asked))).toBe(OK)
  })
})

test('a service token for anything but moving away is not given to who was taken down', async () => {
  const { takendown, deactivated, deleted } = accounts
  const path = `com.atproto.server.getServiceAuth?${new URLSearchParams({ aud: SERVICES.appview, lxm: 'app.bsky.feed.getTimeline' })}`
  expect([
    told(await takendown.call(path)),
    told(await helper.call(path)),
    told(await deactivated.call(path)),
    told(await deleted.call(path)),
  ]).toEqual(['400 InvalidToken', '400 InvalidToken', OK, NOT_THERE])
})

test('refresh tokens of who was taken down or deleted lead nowhere', async () => {
  const refresh = (who: TestAccount) =>
    xrpc(stage.pds, 'com.atproto.server.refreshSession', { method: 'POST', headers: bearer(who.refreshJwt) })
  expect(
    await Promise.all(
      [accounts.takendown, helper, accounts.deactivated, accounts.deleted].map(async (who) => told(await refresh(who))),
    ),
  ).toEqual([TAKEN_DOWN, TAKEN_DOWN, OK, '400 InvalidRequest'])
})
