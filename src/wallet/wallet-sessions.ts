/** Signs in with the device key, and calls the server as the owner of the account. */
import { MINUTE_MILLIS } from '../base/durations.ts'
import { parseHandle } from '../protocol/identifiers.ts'
import { decodeJws } from '../protocol/jws.ts'
import { sovereignSessionEnvelope } from '../protocol/signed-envelope.ts'
import type { StoredSession } from './wallet-contents.ts'
import { NoAnswer, ServerRefusal, textOf } from '../base/server-request.ts'
import type { WalletServer } from './wallet-server.ts'
import type { Wallet } from './wallet.ts'

/** An access token that expires sooner than this is no longer used. */
const MARGIN_MILLIS = MINUTE_MILLIS

interface Opened {
  session: StoredSession
  handle: string | null
}

/** Open a session with a proof of the device key. Throws OperatorError if the identity does not name the key. */
export async function openSession(wallet: Wallet): Promise<Opened> {
  const { did: aud } = await wallet.server.need('sovereignSessions', 'signing in with a key')
  const { did } = wallet
  const proof = await wallet.prove(sovereignSessionEnvelope)
  const answer = await wallet.sendProof(() => wallet.server.post('/v1/sessions/sovereign', { json: { did, ...proof } }))
  const session = { accessJwt: textOf(answer, 'accessJwt'), refreshJwt: textOf(answer, 'refreshJwt') }
  for (const token of Object.values(session)) {
    const claims = claimsOf(token)
    if (claims?.sub !== did || (claims.aud !== aud && claims.aud !== wallet.server.url))
      throw new NoAnswer('the server returned a session of another account')
  }
  const named = typeof answer['handle'] === 'string' ? parseHandle(answer['handle']) : null
  return { session, handle: named === null || named === 'handle.invalid' ? wallet.contents.handle : named }
}

/** Open a session and keep it in the wallet. */
export async function signIn(wallet: Wallet): Promise<StoredSession> {
  const opened = await openSession(wallet)
  await wallet.update({ ...opened })
  return opened.session
}

const claimsOf = (token: string) =>
  decodeJws(token)?.payload as { sub?: unknown; aud?: unknown; exp?: unknown } | undefined

/** Run a call with full access: in the stored session, refreshed if necessary, else in a new one. */
export async function withFullAccess<Result>(
  wallet: Wallet,
  call: (token: string) => Promise<Result>,
): Promise<Result> {
  const { session } = wallet.contents
  if (session !== null && isGood(wallet, session)) {
    try {
      return await call(session.accessJwt)
    } catch (error) {
      if (!isSessionOver(error)) throw error
    }
  }
  return call(((await refreshed(wallet)) ?? (await signIn(wallet))).accessJwt)
}

function isGood(wallet: Wallet, { accessJwt }: StoredSession): boolean {
  const exp = claimsOf(accessJwt)?.exp
  return typeof exp === 'number' && exp * 1000 - wallet.now() > MARGIN_MILLIS
}

async function refreshed(wallet: Wallet): Promise<StoredSession | null> {
  const { session: before } = wallet.contents
  const session = before && (await refreshSession(wallet.server, before))
  if (session !== null) await wallet.update({ session })
  return session
}

/** Refresh a session. Returns null if the server has ended it. */
export async function refreshSession(
  server: WalletServer,
  { refreshJwt }: StoredSession,
): Promise<StoredSession | null> {
  try {
    const answer = await server.post('/xrpc/com.atproto.server.refreshSession', { token: refreshJwt })
    return { accessJwt: textOf(answer, 'accessJwt'), refreshJwt: textOf(answer, 'refreshJwt') }
  } catch (error) {
    if (!isSessionOver(error)) throw error
    return null
  }
}

/** Call a route of account owners: with the session of the ceremony while it is valid, else with full access. */
export async function asOwner<Result>(wallet: Wallet, call: (token: string) => Promise<Result>): Promise<Result> {
  const { walletSession } = wallet.contents
  if (walletSession !== null) {
    try {
      return await call(walletSession)
    } catch (error) {
      if (!isSessionOver(error)) throw error
    }
  }
  return withFullAccess(wallet, call)
}

/** XRPC methods answer 400 for an expired or invalid session. */
const isSessionOver = (error: unknown): boolean =>
  error instanceof ServerRefusal && (error.status === 401 || ['ExpiredToken', 'InvalidToken'].includes(error.code))
