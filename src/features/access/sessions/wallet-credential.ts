/**
 * The session of a wallet: an opaque token, good for a year, for the routes of account owners under `/v1`. It opens no
 * XRPC method.
 */
import { DAY_SECS } from '../../../base/durations.ts'
import { authenticationRequired } from '../../../http/errors.ts'
import type { Origin } from '../../../http/origin.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import { newToken } from '../../../platform/secrets/new-token.ts'
import { isUseDue } from '../../../platform/running/last-use.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { presentedOpaqueToken } from '../../../http/credential-guards.ts'
import { requireNotTakendown } from '../auth/auth.ts'
import { walletKind, type WalletCaller } from '../callers/callers.ts'
import type { Credential } from '../../../http/credential.ts'
import {
  findWalletSession,
  insertWalletSession,
  makeRoomForWalletSession,
  noteWalletUse,
} from './wallet-session-store.ts'

const WALLET_SESSION_TTL_SECS = 365 * DAY_SECS

/** Open a session in the caller's transaction. Returns its token. */
export async function openWalletSession(
  tx: Tx,
  did: Did,
  { byPassword }: { byPassword: boolean },
  origin: Origin,
): Promise<string> {
  const { token, hash } = newToken()
  await makeRoomForWalletSession(tx, did)
  await insertWalletSession(
    tx,
    { tokenHash: hash, did, byPassword, expiresAt: origin.openedAt + WALLET_SESSION_TTL_SECS * 1000 },
    origin,
  )
  return token
}

async function liveSession(
  { clock }: Context,
  reader: Reader,
  tokenHash: string,
): Promise<{ did: Did; usedAt: Millis | null }> {
  const session = await findWalletSession(reader, tokenHash, clock.now())
  if (session === null) throw authenticationRequired('The session is unknown or has ended')
  return session
}

/** Throws `AuthenticationRequired` if the session is unknown, has ended or has expired. */
export const walletCredential: Credential<WalletCaller> = {
  ...walletKind,
  recognises: presentedOpaqueToken,
  async check({ ctx }, tokenHash) {
    const { did, usedAt } = await liveSession(ctx, ctx.db, tokenHash)
    const now = ctx.clock.now()
    if (isUseDue(usedAt, now))
      ctx.background.run('note of the use of a session', () => noteWalletUse(ctx.db, tokenHash, now))
    return { did, credential: 'wallet', tokenHash }
  },
  async revalidate({ tokenHash }, ctx, reader) {
    await liveSession(ctx, reader, tokenHash)
  },
  may({ did }, { refusesTakendown }, exchange) {
    if (refusesTakendown) return requireNotTakendown(exchange, did)
  },
}
