/**
 * Which credentials each endpoint takes, as its guard declares it, against the table of methods that black-box tests go
 * through (`conformance/credentials.test.ts`); and what each kind of session may.
 */
import { expect, test } from 'bun:test'
import type { RequiredScope, RequiredSession } from '../../../src/http/credential.ts'
import { mayHaveCalled } from '../../../src/features/access/auth/auth.ts'
import type { SessionKind } from '../../../src/features/access/callers/callers.ts'
import { sessionCallerOf, sessionCredential } from '../../../src/features/access/sessions/session-credential.ts'
import { features } from '../../../src/features.ts'
import { endpointName, type Exchange } from '../../../src/http/endpoint.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { servedMethods } from '../../system/conformance/served-methods.ts'

const endpoints = features.flatMap(({ routes = [] }) => routes)
const takenBy = new Map(
  endpoints.map((endpoint) => [endpointName(endpoint), ('spec' in endpoint && endpoint.spec.auth?.takes) || []]),
)

/** Credentials, in the order in which they are looked for, and an endpoint that takes them. */
const kindsOfEndpoints = {
  '': 'com.atproto.server.createSession',
  'agent, session, app': 'com.atproto.repo.createRecord',
  'refresh token': 'com.atproto.server.refreshSession',
  service: 'com.atproto.server.createAccount',
  'service of the account, agent, session, app': 'com.atproto.repo.uploadBlob',
  'moderation service, agent, session, app': 'app.bsky.actor.getPreferences',
  'service, agent, session, app': 'com.atproto.moderation.createReport',
  'moderation service, operator': 'com.atproto.admin.getAccountInfo',
  'operator, agent, session, app': 'com.atproto.sync.getRepo',
  operator: 'com.atproto.admin.deleteAccount',
  'wallet session, agent, session, app': 'POST /v1/did-web/hosting',
  'wallet session': 'POST /v1/handles',
  device: 'GET /v1/devices/:id/pds',
  'wallet session, device': 'POST /v1/transfer/complete',
  'pending session': 'POST /v1/dids',
}

test('every endpoint takes one of these sets of credentials', () => {
  expect(new Set([...takenBy.values()].map((names) => names.join(', ')))).toEqual(
    new Set(Object.keys(kindsOfEndpoints)),
  )
  for (const [names, name] of Object.entries(kindsOfEndpoints))
    expect({ name, names: takenBy.get(name)?.join(', ') }).toEqual({ name, names })
})

test('every declared credential is taken somewhere', () => {
  const taken = new Set([...takenBy.values()].flat())
  const declared = features.flatMap(({ credentials = [] }) => credentials.map(({ name }) => name))
  expect(declared.filter((name) => !taken.has(name))).toEqual([])
  expect(declared).toEqual([...new Set(declared)])
})

/**
 * The letters of `served-methods.ts`, as far as they name a credential. A service of the account may also be one that
 * speaks for itself.
 */
const letters: Record<string, readonly string[]> = {
  F: ['session'],
  R: ['refresh token'],
  B: ['operator'],
  M: ['moderation service', 'service'],
  S: ['service of the account', 'service'],
}

test('what is declared is what methods are tested for, credential by credential', () => {
  for (const { nsid, callers, grant } of servedMethods({
    did: 'did:web:a.test',
    handle: 'a.test',
    appview: '',
    reports: '',
  })) {
    const declared = takenBy.get(nsid) ?? takenBy.get('/xrpc/*') ?? []
    for (const [letter, names] of Object.entries(letters))
      expect({ nsid, letter, taken: names.some((name) => declared.includes(name)) }).toEqual({
        nsid,
        letter,
        taken: callers.includes(letter),
      })
    expect({ nsid, app: declared.includes('app') }).toEqual({ nsid, app: grant !== undefined })
  }
})

/**
 * Demands of endpoints, and the kinds of sessions that meet them. App passwords open `privileged`, `app` and `scoped`
 * sessions.
 */
const sessions = {
  everyday: { full: true, privileged: true, app: true, scoped: true, takendown: false },
  owner: { full: true, privileged: false, app: false, scoped: false, takendown: false },
  leaving: { full: true, privileged: false, app: false, scoped: false, takendown: true },
  every: { full: true, privileged: true, app: true, scoped: true, takendown: true },
} as const

const callerBy = (kind: SessionKind) =>
  sessionCallerOf({
    did: 'did:web:a.test' as Did,
    sessionId: 'a',
    kind,
    personalDetails: false,
    ...(kind === 'scoped' && { scope: 'atproto transition:generic transition:chat.bsky' }),
  })

test('a session suffices where its kind is required', () => {
  const isLetIn = (kind: SessionKind, demand: RequiredSession) => {
    try {
      const required = { sessions: demand, grants: 'any', handlerRevalidates: true } as const
      void sessionCredential.may?.(callerBy(kind), required, { ctx: {} } as Exchange)
      return true
    } catch {
      return false
    }
  }
  const found = Object.entries(sessions).map(([demand, kinds]) => [
    demand,
    Object.fromEntries(Object.keys(kinds).map((kind) => [kind, isLetIn(kind as 'full', demand as RequiredSession)])),
  ])
  expect(Object.fromEntries(found)).toEqual(sessions)
})

test('an app password with scopes is let in where apps are, and by the same scopes', () => {
  const isLetIn = (grants: RequiredScope['grants']) => {
    try {
      const required = { ...(grants !== undefined && { grants }), handlerRevalidates: true }
      void sessionCredential.may?.(callerBy('scoped'), required, { ctx: {} } as Exchange)
      return true
    } catch {
      return false
    }
  }
  expect(isLetIn('any')).toBe(true)
  expect(isLetIn((permissions) => permissions.assertRepo({ collection: 'a.b.c', action: 'create' }))).toBe(true)
  expect(isLetIn((permissions) => permissions.assertIdentity({ attr: 'handle' }))).toBe(false)
  expect(isLetIn(undefined)).toBe(false)
  expect(isLetIn('refuse')).toBe(false)
  expect(isLetIn({ refuse: 'not here' })).toBe(false)
})

test('an app password with scopes has no methods called that manage accounts, whatever its scopes', () => {
  const methods = ['com.atproto.server.createAccount', 'com.atproto.server.anything', 'com.atproto.repo.importRepo']
  expect(methods.filter((nsid) => mayHaveCalled(callerBy('scoped'), nsid))).toEqual([])
  expect(mayHaveCalled(callerBy('scoped'), 'app.bsky.feed.getTimeline')).toBe(true)
})

test('only an app password without direct messages is kept from them, and from moving the account', () => {
  for (const nsid of ['chat.bsky.convo.getLog', 'com.atproto.server.createAccount'])
    expect(
      (['full', 'privileged', 'app', 'takendown'] as const).filter((kind) => !mayHaveCalled(callerBy(kind), nsid)),
    ).toEqual(['app'])
})
