/**
 * The capabilities that describeServer may advertise, in one table. A capability is offered if the configuration asks
 * for it, a feature implements it, and every endpoint that it consists of is mounted.
 *
 * An endpoint that names a capability exists if and only if that capability is offered. Names are wire identifiers and
 * never change.
 */
import type { Config } from './config.ts'

interface Capability {
  readonly name: string
  readonly isWanted: (config: Config) => boolean
  /** Endpoints that a client of the capability needs: a method and a path, or the NSID of an XRPC method. */
  readonly endpoints: readonly string[]
}

const always = () => true
const withMasterKey = (config: Config) => config.signingKeyMasterKey !== null
/** Whether at least one way to register an agent is enabled. If none is, no agent may act. */
export const wantsAgents = ({ agentAuth }: Config): boolean =>
  agentAuth.serviceAuthEnabled || agentAuth.anonymousEnabled || agentAuth.trustedIssuers.length > 0

export const capabilities = [
  {
    name: 'createCeremony',
    isWanted: withMasterKey,
    endpoints: [
      'POST /v1/accounts',
      'POST /v1/accounts/mobile',
      'GET /v1/repo-signing-key',
      'POST /v1/dids',
      'POST /v1/handles',
      'POST /v1/accounts/sessions',
    ],
  },
  {
    name: 'escrow',
    isWanted: withMasterKey,
    endpoints: [
      'PUT /v1/recovery/escrow-share',
      'DELETE /v1/recovery/escrow-share',
      'POST /v1/recovery/initiate',
      'POST /v1/recovery/release',
      'POST /v1/recovery/release/cancel',
    ],
  },
  {
    name: 'abuseNotices',
    isWanted: ({ cases }) => cases.noticeAuthorities.length > 0,
    endpoints: ['POST /v1/abuse-notices'],
  },
  {
    name: 'spaces',
    isWanted: ({ spaces }) => spaces.enabled,
    endpoints: [
      'com.atproto.space.createRecord',
      'com.atproto.space.putRecord',
      'com.atproto.space.deleteRecord',
      'com.atproto.space.applyWrites',
      'com.atproto.space.getRecord',
      'com.atproto.space.listRecords',
      'com.atproto.space.getLatestCommit',
      'com.atproto.space.listRepoOps',
      'com.atproto.space.listBlobs',
      'com.atproto.space.getBlob',
      'com.atproto.space.listSpaces',
    ],
  },
  { name: 'sovereignSessions', isWanted: always, endpoints: ['POST /v1/sessions/sovereign'] },
  {
    name: 'agents',
    isWanted: wantsAgents,
    endpoints: [
      'POST /agent/identity',
      'POST /agent/identity/claim',
      'POST /agent/identity/claim/confirm',
      'POST /v1/agents/claim-preview',
      'GET /v1/agents',
      'GET /v1/agents/:registrationId/audit',
      'POST /v1/agents/:registrationId/revoke',
      'POST /agent/event/notify',
      'GET /auth.md',
      'POST /oauth/token',
    ],
  },
  {
    name: 'walletConsent',
    isWanted: always,
    endpoints: [
      'GET /oauth/authorize',
      'GET /oauth/authorize/status',
      'GET /oauth/authorize/consent-request',
      'POST /oauth/authorize/approve',
      'POST /oauth/authorize/complete',
    ],
  },
  {
    name: 'optionalPassword',
    isWanted: ({ accounts }) => accounts.passwordOptional,
    endpoints: ['com.atproto.server.createAccount'],
  },
  {
    name: 'walletAccountDelete',
    isWanted: always,
    endpoints: ['com.atproto.server.requestAccountDelete', 'com.atproto.server.deleteAccount'],
  },
  {
    name: 'didWebHosting',
    isWanted: always,
    endpoints: ['POST /v1/did-web/hosting', 'POST /v1/did-web/document', 'GET /.well-known/did.json'],
  },
  {
    name: 'appPasswordPersonalDetails',
    isWanted: always,
    endpoints: [
      'com.atproto.server.createAppPassword',
      'com.atproto.server.listAppPasswords',
      'app.bsky.actor.getPreferences',
      'app.bsky.actor.putPreferences',
    ],
  },
  {
    name: 'scopedAppPasswords',
    isWanted: always,
    endpoints: ['GET /v1/app-passwords', 'POST /v1/app-passwords', 'POST /v1/app-passwords/revoke'],
  },
  { name: 'waitlist', isWanted: ({ waitlist }) => waitlist.enabled, endpoints: ['POST /waitlist'] },
] as const satisfies readonly Capability[]

export type CapabilityName = (typeof capabilities)[number]['name']

/** What the features of a deployment implement. */
export interface Built {
  capabilities: ReadonlySet<CapabilityName>
  endpoints: ReadonlySet<string>
}

/** Returns the capabilities to advertise, in the order of the table. */
export const offeredCapabilities = (config: Config, built: Built): Set<CapabilityName> =>
  new Set(
    capabilities
      .filter(
        ({ name, isWanted, endpoints }) =>
          isWanted(config) &&
          built.capabilities.has(name) &&
          endpoints.every((endpoint) => built.endpoints.has(endpoint)),
      )
      .map(({ name }) => name),
  )
