/** The continuous backup of a SQLite database: sends every commit to the destination while the server runs. */
import { OperatorError } from '../../../base/operator-error.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { sql } from '../../../platform/database/database.ts'
import { PAGE_BYTES } from '../../../platform/database/page-list.ts'
import type { ContinuousSending, ContinuousState } from './continuous-sending.ts'

const sendingOf = perContext((): { sending: ContinuousSending | null } => ({ sending: null }))

/** Returns null if no continuous backup is configured, or it has not started yet. */
export const continuousState = (ctx: Context): ContinuousState | null =>
  ctx.config.backup.continuous === null ? null : (sendingOf(ctx).sending?.state ?? null)

export async function startContinuous(ctx: Context): Promise<(() => void) | void> {
  const { continuous } = ctx.config.backup
  if (continuous === null) return
  const { logFollowing } = ctx.db
  if (logFollowing === null)
    throw new OperatorError('backup.continuous is for SQLite; PostgreSQL archives its log itself: set archive_command')
  const [{ continueAfterLoss }, { sendContinuously }] = await Promise.all([
    import('./following.ts'),
    import('./continuous-sending.ts'),
  ])
  const { page_size: bytes } = (await ctx.db.get<{ page_size: number }>(sql`PRAGMA page_size`))!
  if (bytes !== PAGE_BYTES)
    throw new OperatorError(
      `backup.continuous needs a database with pages of ${PAGE_BYTES} bytes, but this one has pages of ${bytes}: stop the server, and change that with PRAGMA page_size and VACUUM`,
    )
  await continueAfterLoss(ctx)
  const sending = await sendContinuously(ctx, logFollowing, continuous)
  sendingOf(ctx).sending = sending
  const { metrics } = ctx
  metrics.gauge(
    'holdfast_continuous_backup_lag_seconds',
    'Age of the oldest commit that the continuous backup does not have.',
    () => sending.state.lagMillis / 1000,
  )
  metrics.gauge(
    'holdfast_continuous_backup_spooled_bytes',
    'Bytes that wait for the destination of the continuous backup.',
    () => sending.state.spooledBytes,
  )
  return () => sending.stop()
}

/** Call it once the port is open: from then on, a write that the destination does not take in time is refused. */
export const noteStart = (ctx: Context): void => sendingOf(ctx).sending?.noteStart()
