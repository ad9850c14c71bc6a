/** Sessions of apps that come along with an account from the reference implementation. */
import type { Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { opaqueTokenHash } from '../../../protocol/opaque-token.ts'
import type { ClientKey } from './client-keys.ts'
import { lifetimeOf } from './grants.ts'
import { inOwnSpelling, sessionIdOf } from './oauth-refresh-tokens.ts'
import { insertOAuthSession } from './oauth-session-store.ts'

/** A session of an app as the reference implementation had it. */
export interface FormerOAuthSession {
  did: Did
  clientId: string
  /** The scopes that the account holder granted, with permission sets by name. */
  scope: string
  /** Thumbprint of the DPoP key. */
  jkt: string
  /** Null for a public client. */
  clientKey: ClientKey | null
  /** The current refresh token. */
  refreshToken: string
  createdAt: Millis
  refreshedAt: Millis
}

/** When the session ends even if it is refreshed, and when it ends if it is not. */
export function endsOf({ clientKey, createdAt, refreshedAt }: FormerOAuthSession): {
  expiresAt: Millis
  idleExpiresAt: Millis
} {
  const { maxSecs, idleSecs } = lifetimeOf(clientKey)
  const expiresAt = createdAt + maxSecs * 1000
  return { expiresAt, idleExpiresAt: Math.min(expiresAt, refreshedAt + idleSecs * 1000) }
}

/** Whether the text is a refresh token of the reference, which can be exchanged here. */
export const isFormerRefreshToken = (text: string): boolean => sessionIdOf(inOwnSpelling(text)) !== null

/** Keep a session of another server, with its client, keys and ends: its refresh token can be exchanged here. */
export async function keepOAuthSession(tx: Tx, former: FormerOAuthSession): Promise<void> {
  const { refreshToken, ...session } = former
  const text = inOwnSpelling(refreshToken)
  const id = sessionIdOf(text)!
  await insertOAuthSession(
    tx,
    {
      ...session,
      ...endsOf(former),
      id,
      clientName: null,
      scopeIsFixed: false,
      openedWith: null,
      openedFrom: null,
      delegation: null,
      refresh: { tokenHash: opaqueTokenHash(text)!, previousHash: null, rotatedAt: null },
    },
    // Stands for the hash of the authorization code, which is not known here.
    `former ${id}`,
  )
}
