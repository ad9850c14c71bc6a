/**
 * Challenges that passkeys sign. A challenge contains its expiry and a MAC by this server over expiry and purpose.
 * Nothing is stored before the response, so strangers who open pages fill no table. A used challenge is stored until it
 * expires, so that it can be used only once.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { DAY_MILLIS, MINUTE_MILLIS } from '../../../base/durations.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { serverSecret } from '../../../platform/secrets/vault.ts'
import { base64url, parseBase64url } from '../../../protocol/base64url.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { deleteUsedChallengesBefore, insertUsedChallenge } from './passkey-store.ts'

/** As long as a sign-in waits for its second factor. */
const TTL_MILLIS = 10 * MINUTE_MILLIS
/** Used challenges are remembered this long after they expire, so that they stay used if the clock is set back. */
const KEPT_MILLIS = DAY_MILLIS
const RANDOM_BYTES = 16
const EXPIRY_BYTES = 6
const MAC_BYTES = 32

/** What a passkey is asked for. A response to the challenge is of no other use. */
export interface PasskeyUse {
  /** `add` a passkey, `enter` an account without its password, `prove` who asks, or `operate` the server. */
  purpose: 'add' | 'enter' | 'prove' | 'operate'
  /** Null if the passkey itself says to which account it belongs. */
  did: Did | null
  /** A secret, or its hash, that binds the challenge to one browser, session or pending sign-in. */
  binding: string
}

/** Loaded when a page shows the first challenge. */
const macKey = perContext(({ db, vault }) => serverSecret(db, vault, 'passkey-challenge'))

async function macOf(ctx: Context, head: Uint8Array, { purpose, did, binding }: PasskeyUse): Promise<Buffer> {
  return createHmac('sha256', await macKey(ctx))
    .update(head)
    .update(JSON.stringify([purpose, did, binding]))
    .digest()
}

/** Returns a new challenge, in base64url. */
export async function newChallenge(ctx: Context, use: PasskeyUse): Promise<string> {
  const head = Buffer.alloc(RANDOM_BYTES + EXPIRY_BYTES)
  randomBytes(RANDOM_BYTES).copy(head)
  head.writeUIntBE(ctx.clock.now() + TTL_MILLIS, RANDOM_BYTES, EXPIRY_BYTES)
  return base64url(Buffer.concat([head, await macOf(ctx, head, use)]))
}

/** Returns when the challenge expires. Null if it has, or was not made here for this use. */
export async function expiryOf(ctx: Context, challenge: string, use: PasskeyUse): Promise<Millis | null> {
  const bytes = parseBase64url(challenge)
  if (bytes?.byteLength !== RANDOM_BYTES + EXPIRY_BYTES + MAC_BYTES) return null
  const head = Buffer.from(bytes.subarray(0, -MAC_BYTES))
  if (!timingSafeEqual(bytes.subarray(-MAC_BYTES), await macOf(ctx, head, use))) return null
  const expiresAt = head.readUIntBE(RANDOM_BYTES, EXPIRY_BYTES)
  const now = ctx.clock.now()
  // A later expiry means that the clock was wrong when the challenge was made.
  return expiresAt > now && expiresAt <= now + TTL_MILLIS ? expiresAt : null
}

/** Use up a challenge. Returns false if it was answered before. */
export async function spendChallenge(tx: Tx, challenge: string, expiresAt: Millis, now: Millis): Promise<boolean> {
  await deleteUsedChallengesBefore(tx, now - KEPT_MILLIS)
  return (await insertUsedChallenge(tx, challenge, expiresAt)) > 0
}
