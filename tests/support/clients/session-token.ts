/** Access tokens for accounts that have no password to sign in with. */
import type { SessionCaller, SessionKind } from '../../../src/features/access/callers/callers.ts'
import { sessionCallerOf } from '../../../src/features/access/sessions/session-credential.ts'
import { insertSession } from '../../../src/features/access/sessions/session-store.ts'
import { issueAccessToken } from '../../../src/features/access/sessions/session-tokens.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import type { TestPds } from '../servers/pds.ts'

/** Opens a session that ends with the password. Returns its access token. */
export async function sessionToken(
  { ctx }: Pick<TestPds, 'ctx'>,
  did: Did,
  kind: SessionKind = 'full',
): Promise<string> {
  const id = crypto.randomUUID()
  const openedAt = ctx.clock.now()
  await ctx.db.transaction((tx) =>
    insertSession(
      tx,
      { id, did, appPassword: null, byPassword: true, currentToken: id, expiresAt: openedAt + 86_400_000 },
      { openedAt, openedWith: null, openedFrom: null },
    ),
  )
  return issueAccessToken(ctx, { did, sessionId: id, kind, personalDetails: false })
}

/** Returns a caller with such a session, for functions that take one. */
export async function sessionCaller(pds: Pick<TestPds, 'ctx'>, did: Did): Promise<SessionCaller> {
  const payload = JSON.parse(Buffer.from((await sessionToken(pds, did)).split('.')[1]!, 'base64url').toString()) as {
    sid: string
  }
  return sessionCallerOf({ did, sessionId: payload.sid, kind: 'full', personalDetails: false })
}
