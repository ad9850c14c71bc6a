/** The keys, names and services that an identity should have for its account to be hosted here. */
import type { Context } from '../../../platform/context.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { formatDidKey } from '../../../protocol/keys.ts'
import {
  isPlcDid,
  pdsService,
  PDS_SERVICE_NAME,
  SIGNING_KEY_NAME,
  spaceEntries,
  type PlcState,
} from '../../../protocol/plc.ts'
import { type Account, accountNotFound, accountOf } from '../accounts/accounts.ts'
import { settledKeyOf } from '../account-keys/account-keys.ts'
import { isOfWallet, serverRotationKey } from '../identity/identity.ts'
import { suitReturningKey } from './returning-key.ts'

/**
 * Returns what `com.atproto.identity.getRecommendedDidCredentials` answers; `alsoKnownAs` is missing if the account has
 * no handle. Replaces the signing key of a returning account if needed. Throws as `expectedOf`, and
 * `PlcDirectoryError`.
 */
export async function recommendedCredentials(
  ctx: Context,
  did: Did,
): Promise<Omit<PlcState, 'alsoKnownAs'> & Partial<PlcState>> {
  await suitReturningKey(ctx, did)
  const { account, signingKey } = await expectedOf(ctx, did)
  const state = isPlcDid(did) ? await ctx.plc.state(did) : null
  // Another server may build the whole identity from the recommendation, so it includes the entries for permissioned
  // data.
  const kept = state === null ? null : spaceEntries(state)
  return {
    rotationKeys: await recommendedRotationKeys(ctx, did, state, signingKey),
    alsoKnownAs: account.handle === null ? undefined : [`at://${account.handle}`],
    verificationMethods: { [SIGNING_KEY_NAME]: signingKey, ...kept?.verificationMethods },
    services: { [PDS_SERVICE_NAME]: pdsService(ctx.config.publicUrl), ...kept?.services },
  }
}

/** The entries that an identity must have while its account is hosted here. */
export interface Expected {
  account: Account
  /** As a did:key. */
  signingKey: string
}

/** Throws `AccountNotFound` if the account was deleted, and `ServiceUnavailable` while its key is being replaced. */
export async function expectedOf(ctx: Context, did: Did): Promise<Expected> {
  const account = await accountOf(ctx.db, did)
  const key = account && (await settledKeyOf(ctx, ctx.db, did))
  if (!key) throw accountNotFound()
  return { account, signingKey: formatDidKey(key.publicKey) }
}

/**
 * Returns the rotation keys that this service asks for, by rank. A wallet that made the identity itself puts its own
 * keys above them.
 */
async function recommendedRotationKeys(
  ctx: Context,
  did: Did,
  state: PlcState | null,
  signingKey: string,
): Promise<string[]> {
  if (state && (await isOfWallet(ctx, did, state.rotationKeys))) return [signingKey]
  return serverRotationKeys(ctx)
}

/** Returns the rotation keys of this service for identities that name no other key of it, by rank. */
export async function serverRotationKeys(ctx: Context): Promise<string[]> {
  const serverKey = formatDidKey((await serverRotationKey(ctx)).publicKey)
  return ctx.config.recoveryDidKey === null ? [serverKey] : [ctx.config.recoveryDidKey, serverKey]
}
