/**
 * Every method of the standard lexicons that is served here and not just passed on: who may call it, and a query that
 * its parameters accept.
 *
 * Callers: `-` nobody in particular, `F` full session, `V` privileged app password, `A` app password, `T` session of a
 * taken-down account, `R` refresh token, `S` service with a token of the account, `B` operator, `M` moderation service.
 * `optional` lets everybody in and looks at who it is. `grant` is what an app needs: any grant at all, none will do, or
 * a scope.
 */
export interface Served {
  verb: 'GET' | 'POST'
  nsid: string
  callers: string
  optional?: true
  grant?: 'any' | 'refused' | { scope: string }
  query?: Record<string, string>
}

export interface Subjects {
  did: string
  handle: string
  /** Services, each as `did#service`. */
  appview: string
  reports: string
}

const FULL = 'F'
const STANDARD = 'FVA'
const OPERATOR = 'B'
const MODERATORS = 'BM'
export const ANYBODY = '-'

export function servedMethods({ did, handle, appview, reports }: Subjects): Served[] {
  const cid = 'bafyreie5737gdxlw5i64vzichcalba3z2v5n6icifvx5xytvske7mr3hpm'
  const collection = 'app.bsky.feed.post'
  const rkey = '3jzfcijpj2z2a'
  const appviewScope = (lxm: string) => ({ scope: `rpc:${lxm}?aud=${appview}` })
  const get = (nsid: string, callers: string, more: Omit<Served, 'verb' | 'nsid' | 'callers'> = {}): Served => ({
    verb: 'GET',
    nsid,
    callers,
    ...more,
  })
  const post = (nsid: string, callers: string, more: Omit<Served, 'verb' | 'nsid' | 'callers'> = {}): Served => ({
    verb: 'POST',
    nsid,
    callers,
    ...more,
  })
  const visible = (nsid: string, callers: string, query: Record<string, string>) =>
    get(nsid, callers, { optional: true, grant: 'any', query })
  const social = (nsid: string, query: Record<string, string> = {}) =>
    get(nsid, STANDARD, { grant: appviewScope(nsid), query })

  return [
    post('com.atproto.server.activateAccount', FULL, { grant: 'refused' }),
    get('com.atproto.server.checkAccountStatus', STANDARD, { grant: 'any' }),
    post('com.atproto.server.confirmEmail', STANDARD, { grant: { scope: 'account:email?action=manage' } }),
    post('com.atproto.server.createAccount', '-SM'),
    post('com.atproto.server.createAppPassword', FULL, { grant: 'refused' }),
    post('com.atproto.server.createInviteCode', OPERATOR),
    post('com.atproto.server.createInviteCodes', OPERATOR),
    post('com.atproto.server.createSession', ANYBODY),
    post('com.atproto.server.deactivateAccount', 'FT', { grant: 'refused' }),
    post('com.atproto.server.deleteAccount', ANYBODY),
    post('com.atproto.server.deleteSession', 'R'),
    get('com.atproto.server.describeServer', ANYBODY),
    get('com.atproto.server.getAccountInviteCodes', FULL, { grant: 'refused' }),
    get('com.atproto.server.getServiceAuth', 'FVAT', {
      grant: { scope: `rpc:com.atproto.server.createAccount?aud=${appview}` },
      query: { aud: appview, lxm: 'com.atproto.server.createAccount' },
    }),
    get('com.atproto.server.getSession', STANDARD, { grant: 'any' }),
    get('com.atproto.server.listAppPasswords', FULL, { grant: 'refused' }),
    post('com.atproto.server.refreshSession', 'R'),
    post('com.atproto.server.requestAccountDelete', FULL, { grant: 'refused' }),
    post('com.atproto.server.requestEmailConfirmation', STANDARD, { grant: { scope: 'account:email?action=manage' } }),
    post('com.atproto.server.requestEmailUpdate', FULL, { grant: 'refused' }),
    post('com.atproto.server.requestPasswordReset', ANYBODY),
    post('com.atproto.server.reserveSigningKey', ANYBODY),
    post('com.atproto.server.resetPassword', ANYBODY),
    post('com.atproto.server.revokeAppPassword', FULL, { grant: 'refused' }),
    post('com.atproto.server.updateEmail', FULL, { grant: 'refused' }),

    get('com.atproto.identity.getRecommendedDidCredentials', STANDARD, { grant: 'any' }),
    post('com.atproto.identity.requestPlcOperationSignature', 'FT', { grant: { scope: 'identity:*' } }),
    get('com.atproto.identity.resolveHandle', ANYBODY, { query: { handle } }),
    post('com.atproto.identity.signPlcOperation', 'FT', { grant: { scope: 'identity:*' } }),
    post('com.atproto.identity.submitPlcOperation', STANDARD, { grant: { scope: 'identity:*' } }),
    post('com.atproto.identity.updateHandle', FULL, { grant: { scope: 'identity:handle' } }),

    post('com.atproto.repo.applyWrites', STANDARD, { grant: 'any' }),
    post('com.atproto.repo.createRecord', STANDARD, { grant: 'any' }),
    post('com.atproto.repo.deleteRecord', STANDARD, { grant: 'any' }),
    post('com.atproto.repo.putRecord', STANDARD, { grant: 'any' }),
    get('com.atproto.repo.describeRepo', ANYBODY, { query: { repo: did } }),
    get('com.atproto.repo.getRecord', ANYBODY, { query: { repo: did, collection, rkey } }),
    get('com.atproto.repo.listRecords', ANYBODY, { query: { repo: did, collection } }),
    post('com.atproto.repo.importRepo', FULL, { grant: { scope: 'account:repo?action=manage' } }),
    get('com.atproto.repo.listMissingBlobs', STANDARD, { grant: 'any' }),
    post('com.atproto.repo.uploadBlob', 'FVAS', { grant: { scope: 'blob:*/*' } }),

    visible('com.atproto.sync.getBlob', 'FVATB', { did, cid }),
    visible('com.atproto.sync.getBlocks', 'FVAB', { did, cids: cid }),
    visible('com.atproto.sync.getLatestCommit', 'FVAB', { did }),
    visible('com.atproto.sync.getRecord', 'FVAB', { did, collection, rkey }),
    visible('com.atproto.sync.getRepo', 'FVATB', { did }),
    visible('com.atproto.sync.listBlobs', 'FVATB', { did }),
    visible('com.atproto.sync.getCheckout', 'FVAB', { did }),
    visible('com.atproto.sync.getHead', 'FVAB', { did }),
    get('com.atproto.sync.getRepoStatus', ANYBODY, { query: { did } }),
    get('com.atproto.sync.listRepos', ANYBODY),

    post('com.atproto.admin.deleteAccount', OPERATOR),
    post('com.atproto.admin.disableAccountInvites', MODERATORS),
    post('com.atproto.admin.disableInviteCodes', MODERATORS),
    post('com.atproto.admin.enableAccountInvites', MODERATORS),
    get('com.atproto.admin.getAccountInfo', MODERATORS, { query: { did } }),
    get('com.atproto.admin.getAccountInfos', MODERATORS, { query: { dids: did } }),
    get('com.atproto.admin.getInviteCodes', MODERATORS),
    get('com.atproto.admin.getSubjectStatus', MODERATORS, { query: { did } }),
    post('com.atproto.admin.sendEmail', MODERATORS),
    post('com.atproto.admin.updateAccountEmail', OPERATOR),
    post('com.atproto.admin.updateAccountHandle', OPERATOR),
    post('com.atproto.admin.updateAccountPassword', OPERATOR),
    post('com.atproto.admin.updateSubjectStatus', MODERATORS),

    post('com.atproto.moderation.createReport', 'FVATSM', {
      grant: { scope: `rpc:com.atproto.moderation.createReport?aud=${reports}` },
    }),
    get('com.atproto.temp.checkSignupQueue', STANDARD, { grant: 'refused' }),

    get('app.bsky.actor.getPreferences', 'FVATM', {
      grant: appviewScope('app.bsky.actor.getPreferences'),
      query: { did },
    }),
    post('app.bsky.actor.putPreferences', STANDARD, { grant: appviewScope('app.bsky.actor.putPreferences') }),
    social('app.bsky.actor.getProfile', { actor: did }),
    social('app.bsky.actor.getProfiles', { actors: did }),
    social('app.bsky.feed.getActorLikes', { actor: did }),
    social('app.bsky.feed.getAuthorFeed', { actor: did }),
    social('app.bsky.feed.getPostThread', { uri: `at://${did}/${collection}/${rkey}` }),
    social('app.bsky.feed.getTimeline'),
    get('app.bsky.feed.getFeed', STANDARD, {
      grant: { scope: `rpc?lxm=app.bsky.feed.getFeed&lxm=app.bsky.feed.getFeedSkeleton&aud=${appview}` },
      query: { feed: `at://${did}/app.bsky.feed.generator/${rkey}` },
    }),
    post('app.bsky.notification.registerPush', STANDARD, { grant: 'any' }),
    post('app.bsky.notification.unregisterPush', STANDARD, { grant: 'any' }),
  ]
}

/** Served beside the reference's methods, as other servers do. */
export const EXTENSIONS = [
  'com.atproto.admin.searchAccounts',
  'com.atproto.identity.refreshIdentity',
  'com.atproto.identity.resolveDid',
  'com.atproto.identity.resolveIdentity',
  'com.atproto.temp.checkHandleAvailability',
]

/** Methods of a draft, which are off by default: `tests/features/spaces`. */
export const DRAFTS = [
  'applyWrites',
  'createRecord',
  'deleteRecord',
  'getBlob',
  'getLatestCommit',
  'getRecord',
  'listBlobs',
  'listRecords',
  'listRepoOps',
  'listSpaces',
  'putRecord',
].map((name) => `com.atproto.space.${name}`)

export const SUBSCRIPTIONS = ['com.atproto.sync.subscribeRepos']
