/** Signing in with the device key, and calling the server as the owner of the account. */
import { decodeJws } from '../protocol/jws.ts'
import { sovereignSessionEnvelope } from '../protocol/signed-envelope.ts'
import type { StoredSession } from './wallet-contents.ts'
import { NoAnswer, ServerRefusal, textOf } from './wallet-server.ts'
import type { Wallet } from './wallet.ts'

/** An access token that ends sooner than this is not used any more. */
const MARGIN_MILLIS = 60_000

/** Open a session by a proof, and keep it in the wallet. Throws ServerRefusal (401) if the key is not one of the identity's. */
export async function signIn(wallet: Wallet): Promise<StoredSession> {
  const { did: aud } = await wallet.server.need('sovereignSessions', 'signing in with a key')
  const { did } = wallet
  const proof = await wallet.prove(sovereignSessionEnvelope)
  const answer = await wallet.server.post('/v1/sessions/sovereign', { json: { did, ...proof } })
  const session = { accessJwt: textOf(answer, 'accessJwt'), refreshJwt: textOf(answer, 'refreshJwt') }
  for (const token of Object.values(session)) {
    const claims = claimsOf(token)
    if (claims?.sub !== did || (claims.aud !== aud && claims.aud !== wallet.server.url))
      throw new NoAnswer('the server answered with a session that is not one of this account here')
  }
  const handle = typeof answer['handle'] === 'string' && answer['handle'] !== 'handle.invalid' ? answer['handle'] : wallet.contents.handle
  await wallet.update({ session, handle })
  return session
}

const claimsOf = (token: string) => decodeJws(token)?.payload as { sub?: unknown; aud?: unknown; exp?: unknown } | undefined

/** Call with a session of full access: the stored one while it is valid, else a new one. */
export async function withFullAccess<Result>(wallet: Wallet, call: (token: string) => Promise<Result>): Promise<Result> {
  const { session } = wallet.contents
  const exp = session === null ? undefined : claimsOf(session.accessJwt)?.exp
  if (session !== null && typeof exp === 'number' && exp * 1000 - wallet.now() > MARGIN_MILLIS) {
    try {
      return await call(session.accessJwt)
    } catch (error) {
      if (!isSessionOver(error)) throw error
    }
  }
  return call((await signIn(wallet)).accessJwt)
}

/** Call a route of account owners: with the session of the ceremony while it lasts, else with full access. */
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

/** XRPC reports a session that is over as 400. */
const isSessionOver = (error: unknown): boolean =>
  error instanceof ServerRefusal && (error.status === 401 || ['ExpiredToken', 'InvalidToken'].includes(error.code))
