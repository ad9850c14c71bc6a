/**
 * Checks repositories while the server works: first those that were written to since the last pass, then the next ones
 * of a round through all. A pass takes a bounded share of a core, and what a large repository takes beyond that is
 * taken from the following passes.
 */
import { MINUTE_SECS } from '../../../base/durations.ts'
import { throttle, type Throttle } from '../../../base/pace.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { isStorageOutage } from '../../../http/errors.ts'
import { accountOf } from '../../identity/accounts/accounts.ts'
import { headSeq, writtenSince } from '../../data/firehose/firehose.ts'
import { repoHead, repoHeads } from '../../data/repo/repo.ts'
import {
  currentIntegrityRound,
  forgetFindings,
  putFindings,
  putIntegrityRound,
  type IntegrityRound,
} from './integrity-store.ts'
import { faultsOfRepo } from './repo-check.ts'

const PASS_SECS = MINUTE_SECS
const PAGE = 50
/** Events of one pass: the rest are left to the round. */
const MAX_EVENTS = 1000
/** Faults that are kept of one repository. A damaged tree may lack a million records. */
const MAX_FAULTS = 20
const MAX_FAULT_CHARS = 300

/** Time that passes have used beyond their share. */
const debtOf = perContext(() => ({ millis: 0 }))

export const integritySweep: Sweep = {
  name: 'integrity',
  intervalSecs: ({ integrity }) => (integrity.roundSecs === 0 ? 0 : PASS_SECS),
  counts: { repos: 'integrity_repos_checked_total' },
  async run(ctx, stopping) {
    const round = await roundToContinue(ctx)
    const budget = new Budget(ctx, stopping)
    const report = { repos: 0, damaged: 0 }
    const check = async (did: Did) => {
      report.repos++
      const faults = await faultsOfRepo(ctx, did, budget.throttled).catch((error: unknown) =>
        unreadable(error, stopping),
      )
      if (await keepFindings(ctx, did, faults)) report.damaged++
    }
    try {
      const written = await writtenSince(ctx.db, round.seq, MAX_EVENTS)
      for (const did of written.dids) if (!budget.isSpent) await check(did)
      round.seq = written.seq
      for (let page = await nextRepos(ctx, round); round.endedAt === null; page = await nextRepos(ctx, round)) {
        for (const { did } of page) {
          if (budget.isSpent) return report
          await check(did)
          round.after = did
          round.repos++
        }
        if (page.length > 0) continue
        const endedAt = ctx.clock.now()
        Object.assign(round, { endedAt, completedAt: endedAt, completedRepos: round.repos })
      }
      return report
    } finally {
      budget.settle()
      await putIntegrityRound(ctx.db, round)
    }
  },
}

const nextRepos = ({ db }: Context, { after, endedAt }: IntegrityRound) =>
  endedAt === null ? repoHeads(db, after as Did, PAGE) : []

/** The share of a core that one pass may take. */
class Budget {
  #spentMillis = 0
  readonly #allowedMillis: number
  readonly #debt: { millis: number }
  readonly throttled: Throttle

  constructor(ctx: Context, stopping: AbortSignal) {
    this.#debt = debtOf(ctx)
    this.#allowedMillis = (PASS_SECS * 1000 * ctx.config.integrity.cpuPercent) / 100
    const slowed = throttle(stopping)
    this.throttled = (work) =>
      slowed(async () => {
        const began = performance.now()
        try {
          return await work()
        } finally {
          this.#spentMillis += performance.now() - began
        }
      })
  }

  get isSpent(): boolean {
    return this.#debt.millis + this.#spentMillis >= this.#allowedMillis
  }

  /** What was not used is not saved up. */
  settle(): void {
    this.#debt.millis = Math.max(0, this.#debt.millis + this.#spentMillis - this.#allowedMillis)
  }
}

/** Returns the round that is under way or due; the one that has ended until then. */
async function roundToContinue({ db, clock, config }: Context): Promise<IntegrityRound> {
  const round = await currentIntegrityRound(db)
  const now = clock.now()
  if (round !== null && round.endedAt === null) return round
  // A time in the future was written before the clock was set back.
  const isRecent = round !== null && round.beganAt <= now && now < round.beganAt + config.integrity.roundSecs * 1000
  if (isRecent) return round
  const { completedAt = null, completedRepos = null, seq = await headSeq(db) } = round ?? {}
  return { beganAt: now, after: '', repos: 0, endedAt: null, completedAt, completedRepos, seq }
}

/** What cannot be read is damaged, unless the database as a whole is out of reach. */
function unreadable(error: unknown, stopping: AbortSignal): string[] {
  if (stopping.aborted || isStorageOutage(error)) throw error
  return [`it cannot be read (${error instanceof Error ? error.message : String(error)})`]
}

/** Returns whether there are any. */
async function keepFindings({ db, log, clock }: Context, did: Did, found: readonly string[]): Promise<boolean> {
  const faults = found.slice(0, MAX_FAULTS).map((fault) => fault.slice(0, MAX_FAULT_CHARS))
  if (faults.length > 0) log.error('repository is damaged', { did, text: faults.join('; ') })
  await db.transaction(async (tx) => {
    const isThere = (await accountOf(tx, did)) !== null || (await repoHead(tx, did)) !== null
    await (isThere ? putFindings(tx, did, faults, clock.now()) : forgetFindings(tx, did))
  })
  return faults.length > 0
}
