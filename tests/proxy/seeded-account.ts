/** An account with a token of each kind, put there without the sign-up. */
import { randomBytes } from 'node:crypto'
import { insertAccount } from '../../src/features/accounts/account-store.ts'
import { issueAccessToken, type SessionKind } from '../../src/features/auth/session-tokens.ts'
import type { Context } from '../../src/platform/context.ts'
import type { Did, Handle } from '../../src/protocol/identifiers.ts'
import { formatDidKey, signingKey } from '../../src/protocol/keys.ts'

export interface Seeded {
  did: Did
  /** As a did:key. */
  signingKey: string
  tokens: Record<SessionKind, string>
}

export async function seedAccount(ctx: Context, name: string): Promise<Seeded> {
  const secret = randomBytes(32)
  const didKey = formatDidKey(signingKey('p256', secret).publicKey)
  const did = `did:plc:${name.padEnd(24, 'a')}` as Did
  await ctx.db.transaction((tx) =>
    insertAccount(tx, { did, handle: `${name}.test` as Handle, email: null, passwordHash: null, signingKey: didKey, signingKeyWrapped: ctx.vault.wrap(secret), createdAt: 0, deactivatedAt: null, deleteAfter: null }),
  )
  const token = (kind: SessionKind) => issueAccessToken(ctx, { did, kind, personalDetails: false })
  return { did, signingKey: didKey, tokens: { full: await token('full'), privileged: await token('privileged'), app: await token('app'), takendown: await token('takendown') } }
}
