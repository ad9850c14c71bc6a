/**
 * The identity that a client brings to its sign-up: a genesis operation which the client has signed, and which names a
 * signing key that was reserved here. The server signs nothing, so it can neither change the identity nor end it.
 */
import { Refusal } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import { checkBroughtGenesis } from '../../../protocol/ceremony-identity.ts'
import type { Did, Handle } from '../../../protocol/identifiers.ts'
import type { Operation } from '../../../protocol/plc.ts'
import { accountOf } from '../accounts/accounts.ts'
import type { WrappedKey } from '../../../platform/secrets/signing-keys.ts'
import { bindReservedKey, reservedKeyNamed } from '../reserved-keys/reserved-keys.ts'

export interface BroughtIdentity {
  did: Did
  genesis: Operation
  key: WrappedKey
}

const incompatible = (message: string) => new Refusal(400, 'IncompatibleDidDoc', message)
const notReserved = () =>
  incompatible('verificationMethods.atproto must be a key from com.atproto.server.reserveSigningKey')

/**
 * Returns the identity that the operation creates; its highest rotation key must have signed the operation.
 * `recoveryKey` is null if the client names none.
 *
 * Throws `IncompatibleDidDoc` if the operation does not fit this server, the handle or the keys, and `DidAlreadyExists`
 * (409) if the identity has an account here.
 */
export async function checkBroughtIdentity(
  ctx: Context,
  operation: unknown,
  handle: Handle,
  recoveryKey: string | null,
): Promise<BroughtIdentity> {
  const outcome = checkBroughtGenesis(operation, recoveryKey, { handle, publicUrl: ctx.config.publicUrl })
  if (!outcome.ok) throw incompatible(outcome.fault)
  const { did, genesis, signingKey } = outcome.identity
  await requireNoAccount(ctx.db, did)
  const key = await reservedKeyNamed(ctx.db, signingKey, did)
  if (key === null) throw notReserved()
  return { did, genesis, key }
}

/**
 * Bind the reserved key to this identity and to the email address of the sign-up. The operation becomes public, so the
 * address ensures that a repeated request after an interruption comes from the same person. Throws `IncompatibleDidDoc`
 * if the key is bound to something else, and `DidAlreadyExists`.
 */
export async function bindBroughtKey(tx: Tx, { did, key }: BroughtIdentity, email: string): Promise<void> {
  await requireNoAccount(tx, did)
  if ((await bindReservedKey(tx, { signingKey: key.signingKey, did, boundTo: email })) === 0) throw notReserved()
}

/** Throws `DidAlreadyExists` (409) if the identity has an account here. */
export async function requireNoAccount(reader: Reader, did: Did): Promise<void> {
  if (await accountOf(reader, did)) throw new Refusal(409, 'DidAlreadyExists', 'The DID has an account here')
}
