/**
 * Keys of servers whose accounts have moved here. Refresh tokens that they have issued open the sessions that came
 * along, and are exchanged for ours; until the last of them has expired, 90 days after the move.
 *
 * A key alone opens nothing: a refresh token counts only with the row of its session, which names it.
 */
import { createSecretKey, type KeyObject } from 'node:crypto'
import { perContext, type Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import { findSecrets, putSecret } from '../../../platform/secrets/vault.ts'
import type { Millis } from '../../../protocol/identifiers.ts'

const NAME = 'former-session-tokens'
/** More servers than ever move into one. */
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

/** Keep the key with which another server has signed its session tokens (HS256), until they have expired. */
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

/** Read when the first token arrives that this server has not signed: a move needs a stopped server. */
const loaded = perContext(async (ctx) =>
  (await storedIssuers(ctx.db, ctx)).map(({ key, until }) => ({
    key: createSecretKey(Buffer.from(key, 'base64')),
    until,
  })),
)

/** The keys that still count. */
export async function formerKeys(ctx: Context): Promise<KeyObject[]> {
  const now = ctx.clock.now()
  return (await loaded(ctx)).filter(({ until }) => now < until).map(({ key }) => key)
}
