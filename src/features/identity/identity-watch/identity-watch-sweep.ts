/**
 * Compares the identities of accounts with the directory, a share of them in each pass, one after another. A round
 * covers all accounts; the next pass continues one that ended early.
 */
import { MINUTE_SECS } from '../../../base/durations.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { PlcDirectoryError } from '../../../platform/network/directory-client.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { isPlcDid } from '../../../protocol/plc.ts'
import { accountsAfter } from '../accounts/accounts.ts'
import { isWatching } from '../identity/identity.ts'
import { lookAt } from './identity-look.ts'
import { countAccounts, currentRound, putRound, type Round } from './watched-identity-store.ts'

const PASS_SECS = MINUTE_SECS
/** Fewest identities in a pass. With few accounts, a round then ends early; the additional requests do not matter. */
const LEAST_PER_PASS = 20
/**
 * Passes in a row that may end at the same identity, because the directory does not answer, before the identity is
 * skipped.
 */
const MAX_TRIES = 3

/** The identity at which the last pass ended early, and how many passes in a row have ended there. */
const stops = perContext(() => ({ did: '', passes: 0 }))

export const identityWatchSweep: Sweep = {
  name: 'identity-watch',
  intervalSecs: (config) => (isWatching(config) ? PASS_SECS : 0),
  counts: { changed: 'identities_changed_elsewhere_total' },
  async run(ctx, stopping) {
    const round = await dueRound(ctx)
    const report = { seen: 0, changed: 0, failed: 0 }
    if (round === null) return report
    const passes = ctx.config.identityWatch.intervalSecs / PASS_SECS
    const page = await accountsAfter(ctx.db, round.after, Math.max(LEAST_PER_PASS, Math.ceil(round.accounts / passes)))
    let { after } = round
    try {
      for (const { did, createdAt } of page) {
        stopping.throwIfAborted()
        if (isPlcDid(did)) {
          report.seen++
          const outcome = await lookAt(ctx, did).catch((error: unknown) => passedOver(ctx, did, error))
          if (outcome !== 'same') report[outcome]++
        }
        after = { did, createdAt }
      }
      if (page.length === 0) await putRound(ctx.db, { ...round, endedAt: ctx.clock.now() })
    } catch (error) {
      // The next pass asks again. If the directory stays unreachable, the alert `directory-silent` is raised.
      if (!(error instanceof PlcDirectoryError)) throw error
      ctx.log.warn('identities not compared: the directory does not respond', { error })
    } finally {
      if (after !== round.after) await putRound(ctx.db, { ...round, after })
    }
    return report
  },
}

/**
 * Rethrows the error, which ends the pass, until the same identity has ended several passes: then the directory may be
 * failing for this identity only, and the identity is skipped.
 */
function passedOver(ctx: Context, did: Did, error: unknown): 'failed' {
  const stop = stops(ctx)
  Object.assign(stop, { did, passes: stop.did === did ? stop.passes + 1 : 1 })
  if (stop.passes < MAX_TRIES || !(error instanceof PlcDirectoryError)) throw error
  ctx.log.warn('identity skipped', { did, error })
  return 'failed'
}

/** Returns the round to continue; null until the next one is due. */
async function dueRound({ db, clock, config }: Context): Promise<Round | null> {
  const round = await currentRound(db)
  if (round !== null && round.endedAt === null) return round
  const now = clock.now()
  const dueAt = round === null ? 0 : round.beganAt + config.identityWatch.intervalSecs * 1000
  // A time in the future was written before the clock was set back.
  if (round !== null && now < dueAt && round.beganAt <= now) return null
  return { beganAt: now, accounts: await countAccounts(db), after: null, endedAt: null }
}
