/**
 * The door of the ceremony: turns the identity that a wallet has made into an account. How a ceremony begins is in
 * `provisioning`.
 *
 * The process may be killed between any two of these steps, because a repeated request continues:
 *
 * 1. check everything that can be checked without effect;
 * 2. store the DID;
 * 3. submit the identity to the directory, and store that the directory has it;
 * 4. in one transaction, make the account, its repository and its first session, and delete the ceremony.
 */
import { DAY_MILLIS } from '../../../base/durations.ts'
import { isDeeperThan } from '../../../base/json-depth.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { authenticationRequired, internalError, invalidClaim, Refusal } from '../../../http/errors.ts'
import { requestOrigin } from '../../../http/origin.ts'
import { personsLanguage } from '../../../http/page-language.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { PlcDirectoryError } from '../../../platform/network/directory-client.ts'
import {
  checkCeremonyDocument,
  checkCeremonyGenesis,
  type CeremonyIdentity,
  type CeremonyOutcome,
} from '../../../protocol/ceremony-identity.ts'
import { didWebUrl } from '../../../protocol/did-document.ts'
import { parseShare, shareIndexes, type EscrowShare } from '../../../protocol/escrow-share.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import type { Operation } from '../../../protocol/plc.ts'
import { addAccount } from '../accounts/accounts.ts'
import { announceIn, rememberPlace } from '../account-events/account-events.ts'
import { hashPassword, passwordFault } from '../passwords/passwords.ts'
import { signingKeyOf } from '../account-keys/account-keys.ts'
import { depositShare } from '../escrow/escrow.ts'
import { sequenceEvents } from '../../data/firehose/firehose.ts'
import { fetchPublished, keepDidDocument, submitOperation, verdictOf } from '../identity/identity.ts'
import { requireNoAccount } from '../signup/signup.ts'
import { passOnReservations } from '../handles/handles.ts'
import { putWebDocument } from '../web-documents/web-documents.ts'
import { passOnInvites } from '../invites/invites.ts'
import { createRepo } from '../../data/repo/repo.ts'
import { deleteDevicesOf } from '../../access/wallet-devices/wallet-devices.ts'
import { noteWallet } from '../../access/wallet-proofs/wallet-proofs.ts'
import { clearCeremonyDid, deleteCeremony, findCeremony, setCeremonyDid, type Ceremony } from './ceremony-store.ts'
import { noteRegistered } from './registration.ts'

/** How long the handle is reserved for the new account, which takes it in a separate request. */
const HANDLE_KEPT_MILLIS = DAY_MILLIS

/** Most nesting levels of a document, which is parsed, stored and serialised again. */
const MAX_DOCUMENT_DEPTH = 32

/** What a wallet sends to end its ceremony. Absent members are null. */
export interface DidRequest {
  rotationKeyPublic: string
  signedCreationOp: unknown
  didWebDocument: string | null
  password: string | null
  recoveryKey: string | null
  escrowShare: string | null
}

/** An identity that may become the account of the ceremony. */
type CheckedIdentity = CeremonyIdentity & { genesis: Operation | null; publishedText: string | null }

/**
 * Make the account. `enter` opens its first session, in the same transaction. A repeated request continues an
 * interrupted one.
 *
 * Throws `InvalidClaim` for invalid input, `DidNotFound` for a did:web that is not published, `PlcDirectoryError` (502)
 * if the directory or the host of a did:web fails, `DidAlreadyExists` (409), and `InternalServerError` if the identity
 * is not the one that was sent before.
 */
export async function createDid<Entry>(
  exchange: Exchange,
  ceremony: Ceremony,
  request: DidRequest,
  enter: (tx: Tx, did: Did) => Promise<Entry>,
): Promise<CeremonyIdentity & { entry: Entry }> {
  const { ctx } = exchange
  if (ceremony.key === null) throw invalidClaim('No signing key has been requested for the repository')
  const password = checkPassword(ctx, request.password)
  const share = shareIn(request)
  const identity = await checkIdentity(ctx, ceremony, ceremony.key.signingKey, request)
  const { did, document, genesis } = identity
  await storeDid(ctx, ceremony.id, did)
  if (genesis !== null && ceremony.registeredAt === null) await register(ctx, ceremony, did, genesis)
  const passwordHash = password === null ? null : await hashPassword(ctx, password)
  const entry = await ctx.db.transaction(async (tx) => {
    const entry = await promote(exchange, tx, ceremony.id, { ...identity, share, passwordHash }, enter)
    await announceIn(tx, exchange, 'created', did, { handle: ceremony.handle })
    return entry
  })
  return { did, document, entry }
}

function checkPassword({ config }: Context, password: string | null): string | null {
  if (password === null && config.accounts.passwordOptional) return null
  if (password === null || password === '') throw invalidClaim('A password is required')
  const refused = passwordFault(password)
  if (refused) throw invalidClaim(refused.message)
  return password
}

/** Returns the share for escrow: a did:plc has one, and a did:web has none. */
function shareIn({ recoveryKey, escrowShare, didWebDocument }: DidRequest): EscrowShare | null {
  if (recoveryKey === null && escrowShare === null && didWebDocument !== null) return null
  if (recoveryKey === null || escrowShare === null || didWebDocument !== null)
    throw invalidClaim('recoveryKey and escrowShare belong to a did:plc, and a did:web has neither')
  const outcome = parseShare(escrowShare)
  if (!outcome.ok) throw invalidClaim(`escrowShare is not a share: ${outcome.fault}`)
  if (outcome.share.index !== shareIndexes.escrow) throw invalidClaim('escrowShare must be share 2')
  return outcome.share
}

async function checkIdentity(
  ctx: Context,
  { handle }: Ceremony,
  signingKey: string,
  { rotationKeyPublic, recoveryKey, signedCreationOp, didWebDocument }: DidRequest,
): Promise<CheckedIdentity> {
  const terms = { handle, signingKey, publicUrl: ctx.config.publicUrl }
  if ((signedCreationOp === null) === (didWebDocument === null))
    throw invalidClaim('Either signedCreationOp or didWebDocument is required')
  if (didWebDocument === null) {
    const keys = { deviceKey: rotationKeyPublic, recoveryKey: recoveryKey! }
    return { ...accepted(checkCeremonyGenesis(signedCreationOp, keys, terms)), publishedText: null }
  }
  if (isDeeperThan(didWebDocument, MAX_DOCUMENT_DEPTH)) throw invalidClaim('didWebDocument is nested too deeply')
  const identity = accepted(checkCeremonyDocument(didWebDocument, rotationKeyPublic, terms))
  await requirePublished(ctx, identity.did, didWebDocument)
  return { ...identity, genesis: null, publishedText: didWebDocument }
}

function accepted<Identity>(outcome: CeremonyOutcome<Identity>): Identity {
  if (!outcome.ok) throw invalidClaim(outcome.fault)
  return outcome.identity
}

/**
 * Compares bytes, not parsed JSON, so that every reader of the published document reads exactly what was checked here.
 */
async function requirePublished(ctx: Context, did: Did, text: string): Promise<void> {
  const url = didWebUrl(did)
  if (!url) throw invalidClaim('The host of the did:web is not valid')
  const published = await fetchPublished(ctx, url)
  if (!published.ok) {
    if (published.fault === 'not-found') throw new Refusal(404, 'DidNotFound', `Could not resolve DID: ${did}`)
    throw directoryFailed('The host of the DID did not respond with its document')
  }
  if (!Buffer.from(text).equals(published.bytes))
    throw invalidClaim('The published document is not the one that was sent')
}

const directoryFailed = (message: string) => new Refusal(502, 'PlcDirectoryError', message)

/** Store which identity is about to be submitted to the directory. From then on, any other identity is refused. */
function storeDid({ db }: Context, id: string, did: Did): Promise<void> {
  return db.transaction(async (tx) => {
    const stored = await setCeremonyDid(tx, id, did)
    await requireNoAccount(tx, did)
    if (stored > 0) return
    throw (await findCeremony(tx, id)) === null ? authenticationRequired('The session has ended') : internalError()
  })
}

/** Submit the identity to the directory, and store that the directory has it. */
async function register(ctx: Context, ceremony: Ceremony, did: Did, genesis: Operation): Promise<void> {
  try {
    await submitOperation(ctx, did, genesis, 'first')
  } catch (error) {
    if (!(error instanceof PlcDirectoryError)) throw error
    const verdict = verdictOf(error)
    // This identity cannot arrive later: the directory judged it invalid, or refused it and was never sent it before.
    // So the wallet may send another one.
    if (verdict === 'invalid' || (verdict === 'refused' && ceremony.did === null))
      await ctx.db.transaction((tx) => clearCeremonyDid(tx, ceremony.id, did))
    ctx.log.warn('could not submit an identity to the PLC directory', { did, status: error.status })
    throw directoryFailed('The PLC directory did not accept the identity')
  }
  await noteRegistered(ctx, ceremony)
}

async function promote<Entry>(
  exchange: Exchange,
  tx: Tx,
  id: string,
  {
    did,
    document,
    publishedText,
    share,
    passwordHash,
  }: CheckedIdentity & { share: EscrowShare | null; passwordHash: string | null },
  enter: (tx: Tx, did: Did) => Promise<Entry>,
): Promise<Entry> {
  const { ctx } = exchange
  const now = ctx.clock.now()
  const ceremony = await findCeremony(tx, id)
  await requireNoAccount(tx, did)
  if (ceremony?.key == null || ceremony.did !== did) throw authenticationRequired('The session has ended')
  // Fails if the names no longer belong to the ceremony. The handle stays reserved for the account, which takes it
  // later.
  if ((await passOnReservations(tx, id, { owner: did, until: now + HANDLE_KEPT_MILLIS })) === 0)
    throw authenticationRequired('The ceremony has ended')
  await addAccount(tx, {
    did,
    handle: null,
    email: ceremony.email,
    passwordHash,
    ...ceremony.key,
    createdAt: now,
    deactivatedAt: null,
    deleteAfter: null,
    language: personsLanguage(exchange),
  })
  await noteWallet(ctx, tx, did)
  if (share !== null) await depositShare(ctx, tx, did, share)
  if (publishedText !== null) await putWebDocument(tx, did, publishedText)
  await keepDidDocument(tx, document, now)
  await passOnInvites(tx, id, did)
  await deleteDevicesOf(tx, id)
  await deleteCeremony(tx, id)
  await rememberPlace(tx, did, requestOrigin(exchange))
  const entry = await enter(tx, did)
  const repoEvents = await createRepo(ctx, tx, did, (await signingKeyOf(ctx, tx, did))!)
  await sequenceEvents(ctx, tx, [...repoEvents, { type: 'account', did, status: 'active' }])
  return entry
}
