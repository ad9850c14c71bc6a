/** The old server of a move, called with the session that the move has there. */
import type { Context } from '../../../platform/context.ts'
import type { Vault } from '../../../platform/secrets/vault.ts'
import { updateMoveSession, type Move, type PlannedMove } from './move-store.ts'
import { OldHost, type OldSession } from './old-host.ts'

export const sealSession = (vault: Vault, { accessJwt, refreshJwt }: OldSession): string =>
  vault.wrap(Buffer.from(JSON.stringify({ accessJwt, refreshJwt })))

const openedSession = (vault: Vault, wrapped: string): OldSession =>
  JSON.parse(Buffer.from(vault.unwrap(wrapped)).toString()) as OldSession

/** Returns the old server of a plan. A plan lives so short that its tokens need not be renewed. */
export const plannedHost = (ctx: Context, { host, sessionWrapped }: PlannedMove): OldHost =>
  new OldHost(ctx, host, openedSession(ctx.vault, sessionWrapped))

/** Returns null if the move has no old server. */
export function oldHostOf(ctx: Context, { did, host, sessionWrapped }: Move): OldHost | null {
  if (host === null) return null
  const session = sessionWrapped === null ? null : openedSession(ctx.vault, sessionWrapped)
  return new OldHost(ctx, host, session, async (renewed) => {
    await updateMoveSession(ctx.db, did, sealSession(ctx.vault, renewed))
  })
}
