/**
 * Keys of servers whose accounts have moved here. The refresh tokens that these servers issued can be exchanged here,
 * for the sessions that came along, until the last of them has expired, 90 days after the move.
 *
 * A key alone opens nothing, because a refresh token is only valid if a session has a row that names the token.
 */
import { createSecretKey, type KeyObject } from 'node:crypto'
import { perContext, type Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import { findSecrets, putSecret } from '../../../platform/secrets/vault.ts'
import type { Millis } from '../../../protocol/identifiers.ts'

const NAME = 'former-session-tokens'
/** More servers than anyone merges into one. */
const MAX_ISSUERS = 16

interface FormerIssuer {
  /** In base64. */
  key: string
  until: Millis
}

async function storedIssuers(reader: Reader, { vault }: Pick<Context, 'vault'>): Promise<FormerIssuer[]> {
  const stored = (await findSecrets(reader, vault, [NAME])).get(NAME)
  return stored === undefined ? [] : (JSON.parse(Buffer.from(stored).toString()) as FormerIssuer[])
}

/** Store the key with which another server has signed its session tokens (HS256), until these tokens have expired. */
export async function keepFormerIssuer(
  ctx: Context,
  tx: Tx,
  { key, until }: { key: Uint8Array; until: Millis },
): Promise<void> {
  const text = Buffer.from(key).toString('base64')
  const others = (await storedIssuers(tx, ctx)).filter(
    (issuer) => issuer.key !== text && issuer.until > ctx.clock.now(),
  )
  const issuers = [{ key: text, until }, ...others].slice(0, MAX_ISSUERS)
  await putSecret(tx, ctx.vault, NAME, Buffer.from(JSON.stringify(issuers)))
}

/**
 * Read once, when the first token arrives that this server did not sign: accounts can only move here while the server
 * is stopped.
 */
const loaded = perContext(async (ctx) =>
  (await storedIssuers(ctx.db, ctx)).map(({ key, until }) => ({
    key: createSecretKey(Buffer.from(key, 'base64')),
    until,
  })),
)

/** Returns the keys that have not expired. */
export async function formerKeys(ctx: Context): Promise<KeyObject[]> {
  const now = ctx.clock.now()
  return (await loaded(ctx)).filter(({ until }) => now < until).map(({ key }) => key)
}
