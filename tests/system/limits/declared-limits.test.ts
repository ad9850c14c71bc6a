/** What limits an endpoint stands in its declaration: this walks all of them. */
import { expect, test } from 'bun:test'
import { features } from '../../../src/features.ts'
import { endpointName, limitsOf, type CallLimit, type Limit } from '../../../src/http/endpoint.ts'
import { sources } from '../../architecture/sources.ts'

const CALLER = { did: 'did:web:a.test' }
const keyOf = (limit: CallLimit<unknown>): string => limit.key({ caller: CALLER })
const shown = (limit: Limit<unknown>): string =>
  typeof limit === 'string' ? `${limit} of the address` : `${limit.name} of ${keyOf(limit)}`

const endpoints = features.flatMap(({ routes = [] }) => routes)
const specOf = (endpoint: (typeof endpoints)[number]) => ('spec' in endpoint ? endpoint.spec : null)

const costs = {
  'com.atproto.repo.createRecord': [[{}, 3]],
  'com.atproto.repo.putRecord': [[{}, 2]],
  'com.atproto.repo.deleteRecord': [[{}, 1]],
  'com.atproto.repo.applyWrites': [
    [{ writes: [] }, 0],
    [
      {
        writes: ['create', 'update', 'delete', 'delete'].map((action) => ({
          $type: `com.atproto.repo.applyWrites#${action}`,
        })),
      },
      7,
    ],
  ],
} as const

test('each endpoint with limits of its own has these', () => {
  const limited = endpoints
    .map((endpoint) => [endpointName(endpoint), limitsOf(specOf(endpoint)).map(shown).join(', ')] as const)
    .filter(([, limits]) => limits !== '')
  expect(Object.fromEntries(limited)).toEqual({
    'GET /account/network': 'accountReach of the address',
    'GET /v1/account/archive': 'exportAccount of did:web:a.test',
    'POST /v1/account/archive': 'importAccount of did:web:a.test',
    'POST /v1/did-web/document': 'updateHandle of did:web:a.test',
    'POST /agent/identity': 'agentIdentity of the address',
    'POST /agent/identity/claim/confirm': 'agentClaimConfirm of the address',
    'POST /agent/claim': 'agentClaimConfirm of the address',
    'POST /v1/agents/claim-preview': 'agentClaimConfirm of the address',
    'POST /agent/child': 'makeChild of did:web:a.test',
    'POST /v1/delegates': 'inviteDelegate of did:web:a.test',
    'POST /v1/rotation-keys': 'updateHandle of did:web:a.test',
    'POST /v1/handles': 'updateHandle of did:web:a.test',
    'DELETE /v1/handles/:handle': 'updateHandle of did:web:a.test',
    'POST /v1/notifications/register': 'registerPush of did:web:a.test',
    'POST /v1/repo-keys/rotation': 'rotateRepoKey of did:web:a.test',
    'POST /v1/repo-keys/rotation/complete': 'rotateRepoKey of did:web:a.test',
    'POST /account/sign-in/wallet': 'oauthConsentCreate of the address',
    'POST /v1/accounts': 'createAccount of the address',
    'POST /v1/accounts/mobile': 'createAccount of the address',
    'POST /v1/accounts/sessions': 'createSession of the address',
    'POST /v1/devices': 'createAccount of the address',
    'POST /v1/admin/sessions': 'createSession of the address',
    'POST /v1/admin/sessions/prove': 'createSession of the address',
    'PUT /v1/recovery/escrow-share': 'depositShare of did:web:a.test',
    'POST /v1/recovery/initiate': 'recovery of the address',
    'POST /v1/recovery/release': 'recovery of the address',
    'GET /oauth/authorize/consent-request': 'oauthConsentAction of the address',
    'POST /oauth/authorize/approve': 'oauthConsentAction of the address',
    'POST /oauth/par': 'pushRequest of the address',
    'POST /v1/move-in/plan': 'planMove of the address',
    'POST /v1/move-in/offer': 'reserveSigningKey of the address',
    'POST /v1/move-in': 'createAccount of the address',
    'POST /v1/move-in/answer': 'answerMove of did:web:a.test',
    'POST /v1/move-in/archive': 'answerMove of did:web:a.test',
    'DELETE /v1/move-in': 'answerMove of did:web:a.test',
    'POST /v1/move-out/leave': 'answerMove of did:web:a.test',
    'POST /v1/transfer/accept': 'transferAccept of the address',
    'POST /waitlist': 'waitlist of the address',
    'POST /v1/decisions/view': 'appeal of the address',
    'POST /v1/decisions/appeal': 'appeal of the address',
    'POST /v1/sessions/sovereign': 'createSession of the address',
    'app.bsky.actor.putPreferences': 'putPreferences of did:web:a.test',
    'com.atproto.identity.requestPlcOperationSignature': 'requestMail of plc_operation did:web:a.test',
    'com.atproto.identity.submitPlcOperation': 'statusChange of did:web:a.test',
    'com.atproto.identity.updateHandle': 'updateHandle of the address',
    'com.atproto.repo.applyWrites': 'repoWrite of did:web:a.test',
    'com.atproto.repo.createRecord': 'repoWrite of did:web:a.test',
    'com.atproto.repo.deleteRecord': 'repoWrite of did:web:a.test',
    'com.atproto.repo.importRepo': 'importAccount of did:web:a.test',
    'com.atproto.repo.putRecord': 'repoWrite of did:web:a.test',
    'com.atproto.repo.uploadBlob': 'uploadBlob of did:web:a.test',
    'com.atproto.server.activateAccount': 'statusChange of did:web:a.test',
    'com.atproto.server.createAccount': 'createAccount of the address',
    'com.atproto.server.createSession': 'createSession of the address',
    'com.atproto.server.deactivateAccount': 'statusChange of did:web:a.test',
    'com.atproto.server.deleteAccount': 'deleteAccount of the address',
    'com.atproto.server.requestAccountDelete': 'requestMail of delete_account did:web:a.test',
    'com.atproto.server.requestEmailConfirmation': 'requestMail of confirm_email did:web:a.test',
    'com.atproto.server.requestEmailUpdate': 'requestMail of update_email did:web:a.test',
    'com.atproto.server.requestPasswordReset': 'requestPasswordReset of the address',
    'com.atproto.server.resetPassword': 'resetPassword of the address',
    'com.atproto.space.applyWrites': 'repoWrite of did:web:a.test',
    'com.atproto.space.createRecord': 'repoWrite of did:web:a.test',
    'com.atproto.space.deleteRecord': 'repoWrite of did:web:a.test',
    'com.atproto.space.getBlob': 'spaceRead of did:web:a.test',
    'com.atproto.space.getLatestCommit': 'spaceRead of did:web:a.test',
    'com.atproto.space.getRecord': 'spaceRead of did:web:a.test',
    'com.atproto.space.listBlobs': 'spaceRead of did:web:a.test',
    'com.atproto.space.listRecords': 'spaceRead of did:web:a.test',
    'com.atproto.space.listRepoOps': 'spaceRead of did:web:a.test',
    'com.atproto.space.listSpaces': 'spaceRead of did:web:a.test',
    'com.atproto.space.putRecord': 'repoWrite of did:web:a.test',
    'com.atproto.sync.getCheckout': 'getRepo of the address',
    'com.atproto.sync.getRepo': 'getRepo of the address',
  })
})

test('what is charged to an account is charged to an authenticated caller', () => {
  for (const endpoint of endpoints) {
    const spec = specOf(endpoint)
    if (limitsOf(spec).some((limit) => typeof limit !== 'string'))
      expect({ endpoint: endpointName(endpoint), personal: spec?.auth?.personal }).toMatchObject({ personal: true })
  }
})

test('a write costs what it is', () => {
  for (const [nsid, cases] of Object.entries(costs)) {
    const endpoint = endpoints.find((candidate) => endpointName(candidate) === nsid)!
    const [limit] = limitsOf(specOf(endpoint)) as [CallLimit<unknown>]
    for (const [input, cost] of cases)
      expect({ nsid, cost: limit.cost?.({ caller: CALLER, input }) }).toEqual({ nsid, cost })
  }
})

/** Files that charge by themselves, and why. */
const chargingThemselves = {
  'features/identity/identity/resolution-routes.ts': 'a refresh counts if the document has changed',
  'features/identity/mails/code-requests.ts': 'pages that ask for a code show in their form that there were too many',
  'features/identity/addresses/taken-address.ts': 'only addresses that are taken count',
  'features/agents/agents/agent-claim-page-routes.ts': 'the form shows it',
  'features/agents/agents/agent-claims.ts': 'only wrong codes count',
  'features/agents/agents/agent-grants.ts': 'it is charged to the registration of a token',
  'features/agents/agents/agent-registrations.ts': 'only what adds rows counts, and each way to register has a limit',
  'features/access/callers/callers.ts': 'only what agents and delegates change is recorded',
  'features/agents/children/child-routes.ts': 'whose child the caller is, is known from the database alone',
  'features/identity/reserved-keys/reserved-key-routes.ts': 'only what is stored counts',
  'features/identity/web-documents/well-known-routes.ts': 'a reverse proxy asks as often as its clients try names',
  'features/identity/transfers/transfer-routes.ts': 'only what looks like a code counts',
  'features/push/iroh/liveness-echo.ts': 'peers call no endpoint',
  'features/access/oauth/authorize-routes.ts': 'the form shows it',
  'features/access/account-pages/appeal-page.ts': 'the form shows it',
  'features/access/pages/proven-form.ts': 'the form shows it',
  'features/access/account-pages/backup-move-pages.ts': 'the form shows it',
  'features/access/account-pages/import-page.ts': 'the form shows it',
  'features/identity/waitlist/waitlist.ts': 'of what is refused, nothing is added to the list',
  'features/access/oauth/wallet-consents.ts': 'without a consent, the page is shown all the same',
  'features/access/oauth/wallet-consent-routes.ts': 'a page that waits counts once, however often it asks',
  'features/data/repo/write-routes.ts': 'the bytes of an event are known once it is written',
  'features/data/spaces/space-routes.ts': 'the same for records in spaces',
  'features/data/proxy/relay-routes.ts': 'only reports of accounts of other servers count',
  'features/operations/operators/operators.ts': 'only failures count',
  'features/operations/console/console-entry.ts': 'the form shows it',
  'features/operations/console/console-pages.ts': 'the form shows it',
  'features/access/account-pages/account-routes.ts': 'the form shows it',
  'features/access/account-pages/factors-page.ts': 'the form shows it',
  'features/access/account-pages/move-away-page.ts': 'the form shows it',
  'features/access/account-pages/sharing-page.ts': 'the form shows it',
  'features/access/account-pages/move-here-pages.ts': 'the form shows it',
  'features/access/account-pages/move-page.ts': 'the form shows it',
  'features/access/account-pages/own-domain-page.ts': 'the form shows it',
  'features/access/account-pages/own-key-part.ts': 'the form shows it',
  'features/access/account-pages/recovery-pages.ts': 'the form shows it',
  'features/access/account-pages/reset-password-pages.ts': 'the form shows it',
  'features/access/account-pages/sign-in-pages.ts': 'the form shows it',
  'features/access/account-pages/sign-up-pages.ts': 'the form shows it',
}

test('a handler charges by itself only where it has to', () => {
  const charging = sources
    .filter(({ path, imports }) => path.startsWith('features/') && imports.includes('http/limiting.ts'))
    .map(({ path }) => path)
  expect(charging.toSorted()).toEqual(Object.keys(chargingThemselves).toSorted())
})
