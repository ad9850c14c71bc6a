/** The continuous backup of a SQLite database: everything that commits write is sent on while the server runs. */
import { OperatorError } from '../../../base/operator-error.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import type { ContinuousState } from './continuous-state.ts'

const sendingOf = perContext((): { state: (() => ContinuousState) | null } => ({ state: null }))

/** Returns null if none is configured. */
export const continuousState = (ctx: Context): ContinuousState | null =>
  ctx.config.backup.continuous === null ? null : (sendingOf(ctx).state?.() ?? null)

export async function startContinuous(ctx: Context): Promise<(() => void) | void> {
  const { continuous } = ctx.config.backup
  if (continuous === null) return
  const { logFollowing } = ctx.db
  if (logFollowing === null)
    throw new OperatorError('backup.continuous is for SQLite; PostgreSQL archives its log itself: set archive_command')
  const { sendContinuously } = await import('./continuous-sending.ts')
  const sending = await sendContinuously(ctx, logFollowing, continuous)
  sendingOf(ctx).state = () => sending.state
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
