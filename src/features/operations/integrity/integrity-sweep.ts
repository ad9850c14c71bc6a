/**
 * Checks repositories while the server works: first those that were written to since the last pass or that are damaged,
 * in half of the time, then the next ones of a round through all. A pass takes a bounded share of a core, and what a
 * large repository takes beyond that is taken from the following passes.
 */
import { isDeepStrictEqual } from 'node:util'
import { MINUTE_MILLIS, MINUTE_SECS } from '../../../base/durations.ts'
import { throttle, type Throttle } from '../../../base/pace.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { explainDatabase } from '../../../platform/database/database-words.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { isStorageOutage } from '../../../http/errors.ts'
import { accountOf } from '../../identity/accounts/accounts.ts'
import { headSeq, writtenSince } from '../../data/firehose/firehose.ts'
import { repoHead, repoHeads } from '../../data/repo/repo.ts'
import {
  currentIntegrityRound,
  damagedDids,
  forgetFindings,
  hasFindings,
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

/** After which time a damaged repository is checked again, and how many of them in one pass: they may be mended. */
const RECHECK_MILLIS = 30 * MINUTE_MILLIS
const MAX_RECHECKS = 20

/** Time that passes have used beyond their share, for repositories out of turn and for those of the round. */
const debtsOf = perContext(() => ({ urgent: { millis: 0 }, round: { millis: 0 } }))

export const integritySweep: Sweep = {
  name: 'integrity',
  intervalSecs: ({ integrity }) => (integrity.roundSecs === 0 ? 0 : PASS_SECS),
  counts: { repos: 'integrity_repos_checked_total' },
  async run(ctx, stopping) {
    const { db, clock, config } = ctx
    const round = await roundToContinue(ctx)
    const before = { ...round }
    const debts = debtsOf(ctx)
    const allowedMillis = (PASS_SECS * 1000 * config.integrity.cpuPercent) / 100
    // A large repository that is always written to leaves half of the time to the others.
    const urgent = new Budget(debts.urgent, allowedMillis / 2, stopping)
    const report = { repos: 0, damaged: 0 }
    const check = async (did: Did, budget: Budget) => {
      report.repos++
      const faults = await faultsOfRepo(ctx, did, budget.throttled).catch((error: unknown) =>
        unreadable(ctx, error, stopping),
      )
      if (await budget.throttled(() => keepFindings(ctx, did, faults))) report.damaged++
    }
    const written = await writtenSince(db, round.seq, MAX_EVENTS)
    const damaged = await damagedDids(db, clock.now(), RECHECK_MILLIS, MAX_RECHECKS)
    for (const did of new Set([...written.dids, ...damaged])) if (!urgent.isSpent) await check(did, urgent)
    round.seq = written.seq
    const regular = new Budget(debts.round, allowedMillis - Math.min(urgent.owedMillis, allowedMillis / 2), stopping)
    try {
      for (let page = await nextRepos(ctx, round); round.endedAt === null; page = await nextRepos(ctx, round)) {
        for (const { did } of page) {
          if (regular.isSpent) return report
          await check(did, regular)
          round.after = did
          round.repos++
        }
        if (page.length > 0) continue
        const endedAt = clock.now()
        Object.assign(round, { endedAt, completedAt: endedAt, completedRepos: round.repos })
      }
      return report
    } finally {
      urgent.settle()
      regular.settle()
      if (!isDeepStrictEqual(round, before)) await putIntegrityRound(db, round)
    }
  },
}

const nextRepos = ({ db }: Context, { after, endedAt }: IntegrityRound) =>
  endedAt === null ? repoHeads(db, after as Did, PAGE) : []

/** The time that one pass may take for its repositories. */
class Budget {
  #spentMillis = 0
  readonly throttled: Throttle

  constructor(
    readonly debt: { millis: number },
    readonly allowedMillis: number,
    stopping: AbortSignal,
  ) {
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

  get owedMillis(): number {
    return this.debt.millis + this.#spentMillis
  }

  get isSpent(): boolean {
    return this.owedMillis >= this.allowedMillis
  }

  /** What was not used is not saved up. */
  settle(): void {
    this.debt.millis = Math.max(0, this.owedMillis - this.allowedMillis)
    this.#spentMillis = 0
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
function unreadable({ config }: Context, error: unknown, stopping: AbortSignal): string[] {
  const isDamage = String((error as { code?: unknown }).code) === 'SQLITE_CORRUPT'
  const isOutage = isStorageOutage(error) || (!isDamage && explainDatabase(error, config.databaseUrl) !== null)
  if (stopping.aborted || isOutage) throw error
  return [`it cannot be read (${error instanceof Error ? error.message : String(error)})`]
}

/** Returns whether there are any. */
async function keepFindings({ db, log, clock }: Context, did: Did, found: readonly string[]): Promise<boolean> {
  if (found.length === 0 && !(await hasFindings(db, did))) return false
  const faults = found.slice(0, MAX_FAULTS).map((fault) => fault.slice(0, MAX_FAULT_CHARS))
  if (faults.length > 0) log.error('repository is damaged', { did, text: faults.join('; ') })
  await db.transaction(async (tx) => {
    const isThere = (await accountOf(tx, did)) !== null || (await repoHead(tx, did)) !== null
    await (isThere ? putFindings(tx, did, faults, clock.now()) : forgetFindings(tx, did))
  })
  return faults.length > 0
}
