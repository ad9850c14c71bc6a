/**
 * Sender keys: the keys with which the server seals push notifications. Devices fetch the public keys, and accept only
 * pushes that one of these keys has sealed. Keys are numbered, and a number is never used again.
 *
 * Keys exist only under a master key that the operator configured. The first key is made when it is needed: for the
 * first push to seal, or for the first device that asks.
 */
import { perContext, type Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { LogRateLimiter } from '../../../platform/running/log-rate-limiter.ts'
import { newSigningSecret, openSigningKey } from '../../../platform/secrets/signing-keys.ts'
import { SecretDoesNotOpen } from '../../../platform/secrets/vault.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { formatDidKey } from '../../../protocol/keys.ts'
import { paddedPlaintext, type PushMessage, type SealedPush } from '../../../protocol/push/push-message.ts'
import { parsePushKey, sealPush, type PushSenderSecret } from '../../../protocol/push/push-sealing.ts'
import {
  findActiveSenderKey,
  findSenderKey,
  insertSenderKey,
  listSenderKeys,
  retireActiveSenderKey,
  type SenderKeyRow,
  type SenderKeyState,
} from './sender-key-store.ts'

export type { PushMessage, SealedPush } from '../../../protocol/push/push-message.ts'

// Sealing

/**
 * Returns the key that seals all pushes of one event, and makes it if there is none. Returns null if nothing can be
 * sealed, because no master key is configured or the stored key cannot be decrypted. Call it only if there is something
 * to seal, in the transaction that queues the pushes. No other transaction may run beside that one, because both might
 * make a key with the same number.
 */
export async function fanOutSender(ctx: Context, tx: Tx): Promise<PushSenderSecret | null> {
  if (ctx.config.signingKeyMasterKey === null) return null
  return opened(ctx, await activeKey(ctx, tx))
}

/**
 * Returns the key with this number, with which an event began to be sealed, or the active key if that was revoked
 * meanwhile. Null as in `fanOutSender`.
 */
export async function senderNumbered(ctx: Context, kid: number): Promise<PushSenderSecret | null> {
  const begun = await findSenderKey(ctx.db, kid)
  if (begun !== null && begun.state !== 'revoked') return opened(ctx, begun)
  return ctx.db.transaction((tx) => fanOutSender(ctx, tx))
}

/**
 * Seal a message for one device, whose key is a did:key of P-256. Returns null if the message is too large and must be
 * dropped. Each call makes a new ephemeral key, so no two sealed messages have anything in common.
 */
export async function sealFor(
  sender: PushSenderSecret,
  recipient: string,
  message: PushMessage,
): Promise<SealedPush | null> {
  const key = parsePushKey(recipient)
  if (key === null) throw new Error('not the key of a device')
  const plaintext = paddedPlaintext(message, sender.kid)
  return plaintext && sealPush(sender, key, plaintext, newSigningSecret('p256'))
}

// Making keys

/** Returns the active key. Makes one if there is none. */
async function activeKey(ctx: Context, tx: Tx): Promise<SenderKeyRow> {
  const known = await findActiveSenderKey(tx)
  if (known !== null) return known
  await addKey(ctx, tx)
  return (await findActiveSenderKey(tx))!
}

const addKey = ({ vault, clock }: Context, tx: Tx): Promise<number> =>
  insertSenderKey(tx, vault.wrap(newSigningSecret('p256')), clock.now())

/** Add a new active key, and retire the previous one. Returns the number of the new key. */
export async function rotateSenderKey(ctx: Context, tx: Tx): Promise<number> {
  await retireActiveSenderKey(tx, ctx.clock.now())
  return (await activeKey(ctx, tx)).kid
}

// Reading

/** A key as it is published. */
export interface PublishedSenderKey {
  kid: number
  /** A did:key. */
  publicKey: Did
}

/**
 * Returns the keys that devices may trust, the newest first. Makes one if none is active. Empty if no key can be
 * decrypted.
 */
export async function publishedSenderKeys(ctx: Context): Promise<PublishedSenderKey[]> {
  if ((await findActiveSenderKey(ctx.db)) === null) await ctx.db.transaction((tx) => activeKey(ctx, tx))
  const keys = await knownSenderKeys(ctx)
  return keys.flatMap(({ kid, publicKey }) => (publicKey === null ? [] : [{ kid, publicKey }]))
}

/** A key as operators see it. */
export interface KnownSenderKey {
  kid: number
  state: SenderKeyState
  /** Null if the key is revoked, or if its secret cannot be decrypted. */
  publicKey: Did | null
  createdAt: Millis
  changedAt: Millis
}

/** Returns all keys, the newest first. */
export const knownSenderKeys = async (ctx: Context): Promise<KnownSenderKey[]> =>
  (await listSenderKeys(ctx.db)).map((row) => {
    const { kid, state, createdAt, changedAt } = row
    const secret = opened(ctx, row)?.secret
    return {
      kid,
      state,
      publicKey: secret ? formatDidKey(openSigningKey('p256', secret).publicKey) : null,
      createdAt,
      changedAt,
    }
  })

/** Returns null if the key is revoked. If its secret cannot be decrypted, logs that and returns null. */
function opened(ctx: Context, { kid, wrapped }: SenderKeyRow): PushSenderSecret | null {
  if (wrapped === null) return null
  try {
    return { kid, secret: ctx.vault.unwrap(wrapped) }
  } catch (error) {
    if (!(error instanceof SecretDoesNotOpen)) throw error
    faultLines(ctx).within(String(kid), (omitted) =>
      ctx.log.error('could not decrypt a push sender key', { kid, detail: error.message, omitted }),
    )
    return null
  }
}

const faultLines = perContext(({ clock }) => new LogRateLimiter(clock))
