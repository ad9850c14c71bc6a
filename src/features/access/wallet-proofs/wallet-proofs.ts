/**
 * Proofs of wallets: a signature over an envelope (`signed-envelope.ts`), by a key that may currently sign for the
 * identity.
 *
 * Callers check in this order, so that nothing is fetched for a text without a signature: the form of the proof, the
 * account, the signature, the authority, and finally, in the transaction that acts on the proof, the nonce.
 */
import { Type, type Static } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { internalError, Refusal } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { verifierOf } from '../../../platform/secrets/signing-keys.ts'
import { parseBase64url } from '../../../protocol/base64url.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { parseDidKey, type PublicKey } from '../../../protocol/keys.ts'
import type { AuditEntry } from '../../../protocol/plc.ts'
import type { Signer } from '../../../protocol/signed-envelope.ts'
import { accountOf, type Account } from '../../identity/accounts/accounts.ts'
import { signingAuthority, type SigningAuthority } from './signing-authority.ts'
import { insertKnownWallet } from './known-wallet-store.ts'
import { insertProofNonce } from './proof-nonce-store.ts'

export { hasKnownWallets } from './known-wallet-store.ts'
export { signingAuthority, type SigningAuthority } from './signing-authority.ts'

/** How far the time of a proof may be from the server's clock, in either direction. */
const WINDOW_SECS = 60
const SIGNATURE_BYTES = 64
const NONCE_BYTES = 32

/** The members of a request that carry a proof. `timestamp` is in Unix seconds. */
export const proofMembers = {
  signingKey: Type.String(),
  timestamp: Type.Integer(),
  nonce: Type.String(),
  signature: Type.String(),
}

const givenProof = Type.Object(proofMembers)
export type GivenProof = Static<typeof givenProof>

/** A well-formed proof. It proves nothing until its signature and its key are checked. */
export interface Proof {
  key: PublicKey
  signature: Uint8Array
  /** The members that the envelope repeats. */
  signer: Signer
}

/**
 * Returns the proof that `did` claims to have made. Returns null if its key is not a did:key, if nonce or signature are
 * not canonical base64url of 32 and 64 bytes, or if its time is more than 60 seconds off.
 */
export function parseProof(
  { clock, config }: Context,
  did: Did,
  { signingKey, timestamp, nonce, signature }: GivenProof,
): Proof | null {
  const bytes = parseBase64url(signature)
  if (bytes?.byteLength !== SIGNATURE_BYTES || parseBase64url(nonce)?.byteLength !== NONCE_BYTES) return null
  if (Math.abs(Math.floor(clock.now() / 1000) - timestamp) > WINDOW_SECS) return null
  // Parse the key last, because a key that was not seen before takes the computation of a point.
  const key = parseDidKey(signingKey)
  if (key === null) return null
  return { key, signature: bytes, signer: { aud: config.serverDid, did, key: signingKey, timestamp, nonce } }
}

/** What a valid proof says about the identity. `head` is the newest entry of its PLC log, null for a did:web. */
export interface Proven {
  alsoKnownAs: readonly string[]
  head: AuditEntry | null
}

/**
 * Check the signature over the envelope, then whether its key may sign for the identity now. Returns null if either
 * fails.
 *
 * Throws `PlcDirectoryError` (502) if the directory or the host of a did:web does not respond, `DidNotFound` (404),
 * `DidDeactivated` (410), `InternalServerError` if the directory sends a log that cannot be used, and `LookupsFull`.
 */
export async function provenBy(
  ctx: Context,
  { key, signature, signer }: Proof,
  envelope: Uint8Array,
): Promise<Proven | null> {
  if (!key.verify(envelope, signature, { k256: verifierOf(key) })) return null
  const authority = await signingAuthority(ctx, signer.did)
  if (!authority.ok) throw unknownAuthority(signer.did, authority.fault)
  return authority.keys.includes(signer.key) ? { alsoKnownAs: authority.alsoKnownAs, head: authority.head } : null
}

/** What is wrong with a proof, for the log. Callers get the same refusal for all faults. */
export type ProofFault =
  | 'malformed or untimely proof'
  | 'no such account'
  | 'account not active'
  | 'wrong signature, or not a key of the identity'
  | 'proof used before'

export type CheckedProof =
  { ok: true; proof: Proof; account: Account } | { ok: false; fault: ProofFault; account: Account | null }

/**
 * Check everything about a proof for an account here except its nonce: its form, the account, the signature and the
 * key, in this order. `did` is null if the caller sent none. Throws as `provenBy` does.
 */
export async function checkProof(
  ctx: Context,
  {
    did,
    given,
    envelopeOf,
    isAdmitted,
  }: {
    did: Did | null
    given: unknown
    envelopeOf: (signer: Signer) => Uint8Array
    /** Whether this account may do what the proof is for. */
    isAdmitted: (account: Account) => boolean | Promise<boolean>
  },
): Promise<CheckedProof> {
  const proof = did !== null && Value.Check(givenProof, given) ? parseProof(ctx, did, given) : null
  if (did === null || proof === null) return { ok: false, fault: 'malformed or untimely proof', account: null }
  const account = await accountOf(ctx.db, did)
  if (account === null) return { ok: false, fault: 'no such account', account }
  if (!(await isAdmitted(account))) return { ok: false, fault: 'account not active', account }
  if (await provenBy(ctx, proof, envelopeOf(proof.signer))) return { ok: true, proof, account }
  return { ok: false, fault: 'wrong signature, or not a key of the identity', account }
}

/** Spend the nonce of a proof, in the transaction that acts on it. Returns false if it was spent before. */
export async function spendNonce(ctx: Pick<Context, 'clock'>, tx: Tx, { signer }: Proof): Promise<boolean> {
  if ((await insertProofNonce(tx, signer.did, signer.nonce, ctx.clock.now())) === 0) return false
  await noteWallet(ctx, tx, signer.did)
  return true
}

/** Record that a wallet holds a key of the account. Pages offer wallets once any account has one. */
export const noteWallet = ({ clock }: Pick<Context, 'clock'>, tx: Tx, did: Did): Promise<number> =>
  insertKnownWallet(tx, did, clock.now())

/** Returns the refusal for an identity whose keys could not be determined. */
export function unknownAuthority(did: Did, fault: (SigningAuthority & { ok: false })['fault']): Refusal {
  switch (fault) {
    case 'not-found':
      return new Refusal(404, 'DidNotFound', `Could not resolve DID: ${did}`)
    case 'deactivated':
      return new Refusal(410, 'DidDeactivated', `DID is deactivated: ${did}`)
    case 'unreachable':
      return new Refusal(502, 'PlcDirectoryError', 'The directory of the identity did not respond')
    case 'unreadable':
      return internalError()
  }
}
