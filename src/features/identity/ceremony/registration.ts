/** The change of a ceremony once the directory has its identity. */
import type { Context } from '../../../platform/context.ts'
import { setReservedUntil } from '../handles/handles.ts'
import { keptUntil } from './ceremony-state.ts'
import { setRegistered, type Ceremony } from './ceremony-store.ts'

/** Store that the directory has the identity, so that its names are kept for longer. */
export async function noteRegistered(ctx: Context, ceremony: Ceremony): Promise<void> {
  const registeredAt = ctx.clock.now()
  await ctx.db.transaction(async (tx) => {
    await setRegistered(tx, ceremony.id, registeredAt)
    await setReservedUntil(tx, ceremony.id, keptUntil({ ...ceremony, registeredAt }))
  })
}
