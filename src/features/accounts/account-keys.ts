/** The keys that sign for accounts, unwrapped when they are needed. */
import { perContext, type Context } from '../../platform/context.ts'
import type { Reader } from '../../platform/database.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { signingKey, type SigningKey } from '../../protocol/keys.ts'
import { findSigningKey } from './account-store.ts'

/** Keys kept unwrapped, the oldest dropped first. */
const MAX_SIGNING_KEYS = 10_000

const signingKeys = perContext(() => new Map<string, SigningKey>())

/** The key that signs the account's repository and its service tokens. Null when there is no such account. */
export async function signingKeyOf(ctx: Context, reader: Reader, did: Did): Promise<SigningKey | null> {
  const row = await findSigningKey(reader, did)
  if (!row) return null
  const keys = signingKeys(ctx)
  const kept = keys.get(row.signingKey)
  if (kept) return kept
  const key = signingKey('p256', ctx.vault.unwrap(row.wrapped))
  if (keys.size >= MAX_SIGNING_KEYS) keys.delete(keys.keys().next().value!)
  keys.set(row.signingKey, key)
  return key
}
