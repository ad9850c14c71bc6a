/**
 * What agents may reach: every endpoint of every feature is called by an agent with the widest scopes that there are.
 * An endpoint is closed to agents unless it is listed here, so a new one is closed until somebody decides otherwise.
 */
import { beforeAll, expect, test } from 'bun:test'
import { features } from '../../../src/features.ts'
import { endpointName, type Endpoint } from '../../../src/http/endpoint.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { servedMethods } from '../../system/conformance/served-methods.ts'
import { createAccount } from '../../support/clients/account.ts'
import { forCeremonies } from '../../support/clients/ceremony.ts'
import { bearer, request, type Answer } from '../../support/clients/http.ts'
import { registerAgent, withAgents, type RegisteredAgent } from '../../support/clients/registered-agent.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const APPVIEW = 'did:web:appview.test#bsky_appview'
const REPORTS = 'did:web:reports.test' as Did

/** Wider than any configuration would be: the owner's whole reach. */
const EVERYTHING = [
  'atproto',
  'account:*?action=manage',
  'account:email?action=manage',
  'account:repo?action=manage',
  'account:status?action=manage',
  'blob:*/*',
  'com.atproto.access',
  'identity:*',
  'repo:*',
  `rpc:*?aud=${APPVIEW.replace('#', '%23')}`,
  `rpc:*?aud=${REPORTS}%23atproto_labeler`,
  'transition:chat.bsky',
  'transition:email',
  'transition:generic',
]

/** With a token that is good for it. `scoped`: what the agent was granted decides; `public`: everybody may read it. */
const open: Record<string, 'scoped' | 'public' | 'read'> = {
  'com.atproto.repo.createRecord': 'scoped',
  'com.atproto.repo.putRecord': 'scoped',
  'com.atproto.repo.deleteRecord': 'scoped',
  'com.atproto.repo.applyWrites': 'scoped',
  'com.atproto.repo.uploadBlob': 'scoped',
  'com.atproto.server.checkAccountStatus': 'read',
  'com.atproto.server.getSession': 'read',
  'com.atproto.server.getServiceAuth': 'scoped',
  'com.atproto.moderation.createReport': 'scoped',
  'app.bsky.actor.getPreferences': 'scoped',
  'app.bsky.actor.putPreferences': 'scoped',

  'app.bsky.actor.getProfile': 'read',
  'app.bsky.actor.getProfiles': 'read',
  'app.bsky.feed.getActorLikes': 'read',
  'app.bsky.feed.getAuthorFeed': 'read',
  'app.bsky.feed.getFeed': 'read',
  'app.bsky.feed.getPostThread': 'read',
  'app.bsky.feed.getTimeline': 'read',
  '/xrpc/*': 'read',

  'com.atproto.sync.getBlob': 'public',
  'com.atproto.sync.getBlocks': 'public',
  'com.atproto.sync.getCheckout': 'public',
  'com.atproto.sync.getHead': 'public',
  'com.atproto.sync.getLatestCommit': 'public',
  'com.atproto.sync.getRecord': 'public',
  'com.atproto.sync.getRepo': 'public',
  'com.atproto.sync.listBlobs': 'public',
}

let agent: RegisteredAgent
let bare: RegisteredAgent
const { pds } = useWorld({
  appview: true,
  config: ({ appview }) => ({
    cases: { noticeAuthorities: ['did:web:authority.test' as Did] },
    spaces: { enabled: true },
    ...forCeremonies,
    agentAuth: { ...withAgents, grantedScopes: EVERYTHING },
    moderation: { reportUrl: appview.url, reportDid: REPORTS },
    telemetry: { metricsRequireAdmin: true },
    waitlist: { enabled: true },
  }),
})
const alice = setUp(() => createAccount(pds, 'alice'))
beforeAll(async () => {
  agent = await registerAgent(pds, alice, { scopes: EVERYTHING })
  bare = await registerAgent(pds, alice, { scopes: ['atproto'] })
})

const CID = 'bafyreie5737gdxlw5i64vzichcalba3z2v5n6icifvx5xytvske7mr3hpm'
const endpoints = features.flatMap(({ routes = [] }) => routes)
const takes = (endpoint: Endpoint): readonly string[] => ('spec' in endpoint && endpoint.spec.auth?.takes) || []
const named = (filter: (endpoint: Endpoint) => boolean) =>
  endpoints.filter(filter).map((one) => [endpointName(one), one] as const)

function addressOf(endpoint: Endpoint): { method: string; path: string } {
  if (endpoint.kind === 'route')
    return { method: endpoint.method, path: endpoint.path.replace(':did', alice.did).replaceAll(/:\w+/g, 'something') }
  if (endpoint.kind === 'fallback') return { method: 'GET', path: '/xrpc/app.bsky.graph.getFollows?actor=alice.test' }
  const method = endpoint.kind === 'procedure' ? 'POST' : 'GET'
  const subjects = { did: alice.did, handle: alice.handle, appview: APPVIEW, reports: `${REPORTS}#atproto_labeler` }
  const space = `at://${alice.did}/space/com.example.space/a`
  const inSpace = { space, repo: alice.did, collection: 'com.example.note', rkey: 'a', cid: CID }
  const { query } = endpoint.nsid.startsWith('com.atproto.space.')
    ? { query: inSpace }
    : (servedMethods(subjects).find(({ nsid }) => nsid === endpoint.nsid) ?? {})
  return { method, path: `/xrpc/${endpoint.nsid}${query === undefined ? '' : `?${new URLSearchParams(query)}`}` }
}

/** Nobody takes an empty list as input, and authentication comes before input. */
function call(endpoint: Endpoint, token: string | null): Promise<Answer> {
  const { method, path } = addressOf(endpoint)
  return request(`${pds.url}${path}`, {
    method,
    headers: token === null ? {} : bearer(token),
    ...(method !== 'GET' && { json: [] }),
  })
}

const nameOf = ({ body }: Answer) => body?.error?.code ?? body?.error
const isRefused = (answer: Answer) =>
  answer.status === 401 || answer.status === 403 || (answer.status === 400 && nameOf(answer) === 'InvalidToken')

test.each(named((endpoint) => takes(endpoint).length > 0 && !(endpointName(endpoint) in open)))(
  '%s is closed to agents, whatever their scopes',
  async (_, endpoint) => {
    const answer = await call(endpoint, agent.token)
    expect({ status: answer.status, error: nameOf(answer), refused: isRefused(answer) }).toMatchObject({
      refused: true,
    })
    if (takes(endpoint).includes('agent')) expect(answer.status).toBe(403)
  },
)

test.each(named((endpoint) => endpointName(endpoint) in open))(
  '%s lets agents in as far as they were granted',
  async (name, endpoint) => {
    expect(takes(endpoint)).toContain('agent')
    const answer = await call(endpoint, agent.token)
    expect({ status: answer.status, error: nameOf(answer), refused: isRefused(answer) }).toMatchObject({
      refused: false,
    })
    if (open[name] !== 'scoped') expect(isRefused(await call(endpoint, bare.token))).toBe(false)
  },
)

test.each(named((endpoint) => takes(endpoint).length === 0 && endpoint.kind !== 'subscription'))(
  '%s does not care for the token of an agent',
  async (_, endpoint) => {
    const [stranger, asAgent] = [await call(endpoint, null), await call(endpoint, agent.token)]
    expect({ status: asAgent.status, error: nameOf(asAgent) }).toEqual({
      status: stranger.status,
      error: nameOf(stranger),
    })
  },
)

test('the list names endpoints that exist', () => {
  const names = new Set(endpoints.map(endpointName))
  expect(Object.keys(open).filter((name) => !names.has(name))).toEqual([])
})
