/**
 * Plans a move, before anything is created or changed: signs in at the old server, and reports what the account has
 * there. The password is passed on to the old server and never stored; the session that it opens is stored encrypted.
 */
import { Type } from '@sinclair/typebox'
import { HOUR_MILLIS } from '../../../base/durations.ts'
import { authenticationRequired, forbidden, invalidRequest, Refusal, serviceUnavailable } from '../../../http/errors.ts'
import { isOwnUrl } from '../../../platform/configuration/service-names.ts'
import type { Context } from '../../../platform/context.ts'
import { newToken } from '../../../platform/secrets/new-token.ts'
import { claimedHandle, pdsEndpoint, type DidDocument } from '../../../protocol/did-document.ts'
import { parseDid, parseHandle, type Did, type Handle, type Millis } from '../../../protocol/identifiers.ts'
import { decodeJws } from '../../../protocol/jws.ts'
import { opaqueTokenHash } from '../../../protocol/opaque-token.ts'
import { isPlcDid } from '../../../protocol/plc.ts'
import { serverRotationKeys } from '../account-changes/account-changes.ts'
import { presentIdentity, resolveDid, resolveHandle, unresolvable } from '../identity/identity.ts'
import { claimedKeys } from './agreed-identity.ts'
import { keyChanges, noNotes, type KeyChanges } from './key-changes.ts'
import { findPlan, insertPlan } from './move-store.ts'
import {
  hostOf,
  MAX_ADDRESS_CHARS,
  OldHost,
  OldHostAway,
  OldHostRefusal,
  OldSessionEnded,
  type OldLogin,
} from './old-host.ts'
import { plannedHost, sealSession } from './old-host-access.ts'

/** How long the holder may think about the plan. */
const PLAN_MILLIS = HOUR_MILLIS

export interface PlanRequest {
  /** Handle or DID. */
  identifier: string
  password: string
  /** The code that the old server mails if the account has a second factor there. */
  authFactorToken?: string
}

export interface MovePlan {
  /** The token that begins the move. */
  plan: string
  expiresAt: Millis
  did: Did
  /** Null if the identity claims none. */
  handle: Handle | null
  /** Host name of the old server. */
  host: string
  /** The address that the account has there; null if the old server does not say. */
  email: string | null
  method: 'plc' | 'web'
  /** Where the holder can download the repository, as a backup. */
  backupUrl: string
  /** Counts by the old server; null if it does not say. */
  records: number | null
  blobs: number | null
  /** The default decision about the rotation keys; null for a did:web. */
  keys: KeyChanges | null
}

const count = Type.Integer({ minimum: 0 })
const sessionInfoShape = Type.Object({ email: Type.Optional(Type.String({ maxLength: MAX_ADDRESS_CHARS })) })
const statusShape = Type.Object({ indexedRecords: Type.Optional(count), expectedBlobs: Type.Optional(count) })

/**
 * Sign in at the old server and return the plan. Throws `InvalidRequest` for an identifier without an account
 * elsewhere, `AuthenticationRequired` if the old server refuses the password, `AuthFactorTokenRequired` (401) if it
 * requires its mailed code, `Forbidden` for an app password, `ServiceUnavailable` if the old server cannot be used, and
 * what `resolveDid` throws.
 */
export async function planMove(ctx: Context, request: PlanRequest): Promise<MovePlan> {
  requireImports(ctx)
  const { did, document, origin } = await originOf(ctx, request.identifier)
  const host = new OldHost(ctx, origin, null)
  const session = await logInAt(host, did, request)
  const { token, hash } = newToken()
  const expiresAt = ctx.clock.now() + PLAN_MILLIS
  await insertPlan(ctx.db, {
    tokenHash: hash,
    did,
    host: origin,
    sessionWrapped: sealSession(ctx.vault, session),
    expiresAt,
  })
  return described(ctx, host, { plan: token, expiresAt, did, document, email: session.email ?? null })
}

/** Returns the plan that has this token, or null if it is unknown or has expired. Throws as `planMove` does. */
export async function planOf(ctx: Context, token: string): Promise<MovePlan | null> {
  const planned = await findPlan(ctx.db, opaqueTokenHash(token) ?? '', ctx.clock.now())
  if (planned === null) return null
  const { did, expiresAt } = planned
  const host = plannedHost(ctx, planned)
  const resolution = await resolveDid(ctx, did)
  if (!resolution.ok) throw unresolvable(did, resolution.fault)
  const session = await host.query('com.atproto.server.getSession', {}, sessionInfoShape).catch(unlessSaid)
  return described(ctx, host, {
    plan: token,
    expiresAt,
    did,
    document: resolution.document,
    email: session?.email ?? null,
  })
}

async function described(
  ctx: Context,
  host: OldHost,
  { document, ...plan }: Pick<MovePlan, 'plan' | 'expiresAt' | 'did' | 'email'> & { document: DidDocument },
): Promise<MovePlan> {
  const status = await host.query('com.atproto.server.checkAccountStatus', {}, statusShape).catch(unlessSaid)
  return {
    ...plan,
    handle: claimedHandle(document),
    host: hostOf(host.origin),
    method: isPlcDid(plan.did) ? 'plc' : 'web',
    backupUrl: `${host.origin}/xrpc/com.atproto.sync.getRepo?${new URLSearchParams({ did: plan.did })}`,
    records: status?.indexedRecords ?? null,
    blobs: status?.expectedBlobs ?? null,
    keys: isPlcDid(plan.did) ? await plannedKeys(ctx, plan.did, host) : null,
  }
}

async function plannedKeys(ctx: Context, did: Did, host: OldHost): Promise<KeyChanges> {
  const claimed = await claimedKeys(host).catch(unlessSaid)
  const [{ state }, ours] = [await presentIdentity(ctx, did), await serverRotationKeys(ctx)]
  return keyChanges({ state, ours, recoveryKey: null, notes: { ...noNotes, claimed } })
}

export function requireImports({ config }: Context): void {
  if (!config.repos.importsEnabled) throw invalidRequest('Service is not accepting repo imports')
}

interface NamedServer {
  did: Did
  document: DidDocument
  origin: string
}

/** Returns the server that the identity names. Throws `InvalidRequest` if that is this one, or none. */
export async function originOf(ctx: Context, identifier: string): Promise<NamedServer> {
  const named = await serverOf(ctx, identifier)
  if (isOwnUrl(ctx.config, named.origin)) throw alreadyHere()
  return named
}

export const alreadyHere = () => invalidRequest('The account is already on this server')

/** Returns the server that the identity names, which may be this one. Throws `InvalidRequest` if it names none. */
export async function serverOf(ctx: Context, identifier: string): Promise<NamedServer> {
  const name = identifier.trim().replace(/^@/, '')
  const handle = parseHandle(name)
  const did = handle ? await resolveHandle(ctx, handle) : parseDid(name)
  if (did === null) throw invalidRequest(`There is no account with the handle or DID ${identifier}`)
  const resolution = await resolveDid(ctx, did, { live: true })
  if (!resolution.ok) throw unresolvable(did, resolution.fault)
  const origin = pdsEndpoint(resolution.document)
  if (origin === null) throw invalidRequest('The identity names no server')
  return { did, document: resolution.document, origin }
}

/** Open a session at the old server. Throws as `planMove` does. */
export async function logInAt(
  host: OldHost,
  did: Did,
  { password, authFactorToken }: Omit<PlanRequest, 'identifier'>,
): Promise<OldLogin> {
  const input = { identifier: did, password, ...(authFactorToken !== undefined && { authFactorToken }) }
  const session = await atOldHost(host, () => host.logIn(input))
  if (session.did !== did) throw serviceUnavailable(`${hostOf(host.origin)} returned a session of another account`)
  // The scope that the reference server gives app passwords; other servers have copied it.
  if (String(decodeJws(session.accessJwt)?.payload['scope']).startsWith('com.atproto.appPass'))
    throw forbidden('An app password is not enough to move an account: sign in with its main password')
  return session
}

/** Run `work`, and turn a refusal or failure of the old server into a response of our own. */
export async function atOldHost<T>(host: OldHost, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof OldHostAway) throw serviceUnavailable(error.message)
    if (error instanceof OldSessionEnded) throw signInEnded()
    if (!(error instanceof OldHostRefusal)) throw error
    const said = `${hostOf(host.origin)} says: ${error.message}`
    if (error.code === 'AuthFactorTokenRequired') throw new Refusal(401, 'AuthFactorTokenRequired', said)
    if (error.status === 401) throw authenticationRequired(said)
    throw new Refusal(400, passedOn.has(error.code) ? error.code : 'InvalidRequest', said)
  }
}

export const signInEnded = () => authenticationRequired('The sign-in at the old server has ended: sign in there again')

/** Errors about mailed codes, which are passed on by name. */
const passedOn = new Set(['InvalidToken', 'ExpiredToken'])

/** Returns null for failures without whose answer the plan is still complete; rethrows all others. */
function unlessSaid(error: unknown): null {
  if ([OldHostRefusal, OldHostAway, OldSessionEnded].some((kind) => error instanceof kind)) return null
  throw error
}
