/** Checks of a sign-up, in the order of the reference, except that a taken email address is reported last. */
import { authenticationRequired, invalidRequest, Refusal } from '../../../http/errors.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { requireMasterKey } from '../../../http/master-key-guard.ts'
import { personsLanguage } from '../../../http/page-language.ts'
import type { Reader } from '../../../platform/database/database.ts'
import type { Did, Handle, Millis } from '../../../protocol/identifiers.ts'
import { parseDidKey } from '../../../protocol/keys.ts'
import type { Language } from '../../../protocol/languages.ts'
import { accountOf } from '../accounts/accounts.ts'
import {
  AddressTaken,
  emailNotSupported,
  parseEmailAddress,
  requireLastingAddress,
  withinRefusedAddresses,
} from '../addresses/addresses.ts'
import { passwordFault } from '../passwords/passwords.ts'
import { admitHandle, isNameTaken, leaveOwnName } from '../handles/handles.ts'
import { checkBroughtIdentity, type BroughtIdentity } from './brought-identity.ts'
import { isInviteUsable } from '../invites/invites.ts'
import { noAnswers, passAnswerGates, type GateAnswers, type UnspentProof } from './signup-gates.ts'

export interface SignupRequest {
  handle: string
  email?: string
  password?: string
  inviteCode?: string
  /** DID of an account that migrates here. */
  did?: Did
  recoveryKey?: string
  plcOp?: unknown
  /** For the question and the proof of work, if the server has them. */
  gates?: GateAnswers
}

/** A request that passed every check; it fails only if another sign-up takes its names first. */
export interface AdmittedSignup {
  did: Did | null
  handle: Handle
  email: string
  password: string | null
  inviteCode: string | null
  recoveryKey: string | null
  /** The identity that the client has made itself; null if the server makes it, or if the DID existed before. */
  brought: BroughtIdentity | null
  /** The proof of work that the sign-up spends. */
  proof: UnspentProof | null
  /** Language of its mails; null if the request names none. */
  language: Language | null
}

/**
 * Returns the checked request. `provenDid` is the DID that a service token proved the caller to own, or null.
 *
 * Throws `InvalidRequest`, `InvalidPassword`, `InvalidInviteCode`, `InvalidHandle`, `AlreadyExists`, what
 * `checkBroughtIdentity` and `passAnswerGates` throw, `ServiceUnavailable` for a `plcOp` without a configured master
 * key, `AuthenticationRequired` for a DID without proof, and `RateLimitExceeded` after too many taken addresses.
 */
export async function checkRequest(
  exchange: Exchange,
  request: SignupRequest,
  provenDid: Did | null,
): Promise<AdmittedSignup> {
  const { ctx } = exchange
  const { config, db, clock } = ctx
  if (request.plcOp !== undefined) requireMasterKey(ctx)
  if (request.plcOp !== undefined && request.did !== undefined)
    throw invalidRequest('Unsupported input: "plcOp" together with "did"')
  const did = request.did ?? null
  const password = checkPassword(request.password, config.accounts.passwordOptional || did !== null)
  const inviteCode = config.inviteCodeRequired ? request.inviteCode || null : null
  if (config.inviteCodeRequired && inviteCode === null) throw invalidInviteCode('No invite code provided')
  if (!request.email) throw invalidRequest('Email is required')
  const email = parseEmailAddress(request.email)
  if (email === null) throw emailNotSupported()
  await requireLastingAddress(ctx, email)
  // A sign-up with a DID, for an account that moves here, has to prove control of the DID, and the tools that move
  // accounts do not know these gates.
  const proof = did === null ? await passAnswerGates(ctx, email, request.gates ?? noAnswers) : null
  const handle = await admitHandle(ctx, request.handle, did)
  const recoveryKey = request.recoveryKey ?? null
  if (recoveryKey !== null && !parseDidKey(recoveryKey))
    throw invalidRequest('The recovery key is not a did:key of a supported curve')
  const brought =
    request.plcOp === undefined ? null : await checkBroughtIdentity(ctx, request.plcOp, handle, recoveryKey)
  if (did === null || did === provenDid) await leaveOwnName(ctx, { handle, did, email, inviteCode })
  await requireUsable(db, inviteCode, handle, clock.now())
  await requireFreeHandle(db, handle, clock.now())
  if (did !== provenDid && did !== null) throw authenticationRequired(`Missing auth to create account with did: ${did}`)
  if (did !== null) await requireNew(db, did)
  // Last, because otherwise a request that fails for another reason would reveal for free whether the address is
  // available.
  await withinRefusedAddresses(exchange, () => requireFreeAddress(db, email, clock.now()))
  return { did, handle, email, password, inviteCode, recoveryKey, brought, proof, language: personsLanguage(exchange) }
}

/**
 * Returns the password, or null for an account without one. Throws `InvalidPassword`, or `InvalidRequest` if it is too
 * long.
 */
export function checkPassword(password: string | undefined, isOptional: boolean): string | null {
  if (password === undefined && isOptional) return null
  if (password === undefined || password === '') throw new Refusal(400, 'InvalidPassword', 'A password is required')
  const refused = passwordFault(password)
  if (refused) throw new Refusal(400, refused.fault === 'short' ? 'InvalidPassword' : 'InvalidRequest', refused.message)
  return password
}

export async function requireUsable(
  reader: Reader,
  inviteCode: string | null,
  handle: Handle,
  now: Millis,
): Promise<void> {
  if (inviteCode !== null && !(await isInviteUsable(reader, inviteCode, { handle, now })))
    throw invalidInviteCode('Provided invite code not available')
}

export async function requireFreeHandle(reader: Reader, handle: Handle, now: Millis): Promise<void> {
  if (await isNameTaken.handle(reader, handle, now)) throw handleTaken(handle)
}

export async function requireFreeAddress(reader: Reader, email: string, now: Millis): Promise<void> {
  if (await isNameTaken.email(reader, email, now)) throw new AddressTaken(email)
}

export const handleTaken = (handle: Handle) => invalidRequest(`Handle already taken: ${handle}`)

export async function requireNew(reader: Reader, did: Did): Promise<void> {
  if (await accountOf(reader, did)) throw new Refusal(400, 'AlreadyExists', 'Repo already exists')
}

const invalidInviteCode = (message: string) => new Refusal(400, 'InvalidInviteCode', message)
