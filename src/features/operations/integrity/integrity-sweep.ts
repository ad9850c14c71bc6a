/**
 * Checks repositories while the server runs. Half of a pass is for repositories that were written to since the last
 * pass, or that are damaged; a quarter is for events of the log; the rest is for the next repositories in a round
 * through all. A pass takes a bounded share of a core. What a large repository takes beyond that is deducted from the
 * following passes.
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
import { blobHealth } from '../../data/blobs/blobs.ts'
import {
  accountsWithoutRepo,
  countLogFindings,
  currentIntegrityRound,
  damagedDids,
  forgetFindings,
  forgetLogFindings,
  hasFindings,
  isOfBlobs,
  putFindings,
  putIntegrityRound,
  putLogFindings,
  type IntegrityRound,
} from './integrity-store.ts'
import { checkEvents } from './log-check.ts'
import { faultsOfRepo } from './repo-check.ts'

const PASS_SECS = MINUTE_SECS
const PAGE = 50
/** Most events of one pass: the round covers the rest. */
const MAX_EVENTS = 1000
/** Most faults that are kept of one repository. A damaged tree may lack a million records. */
const MAX_FAULTS = 20
const MAX_FAULT_CHARS = 300
/** Most faults of events that are kept of all accounts together. */
const MAX_LOG_FINDINGS = 1000
/** Most accounts with faulty blobs, as found by a scrub, in one pass. */
const MAX_OWNERS = 100

/** When to check a damaged repository again, and how many of them in one pass: they may have been repaired. */
const RECHECK_MILLIS = 30 * MINUTE_MILLIS
const MAX_RECHECKS = 20

/** Time that earlier passes have used beyond their shares. */
const debtsOf = perContext(() => ({ urgent: { millis: 0 }, log: { millis: 0 }, round: { millis: 0 } }))
/** When the last pass asked which blobs a scrub had found faulty. */
const askedOf = perContext(() => ({ at: 0 }))

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
    const urgent = new Budget(debts.urgent, allowedMillis / 2, ctx, stopping)
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
    const asked = askedOf(ctx)
    const faulty = await blobHealth.ownersOfFaulty(db, asked.at, MAX_OWNERS)
    asked.at = clock.now()
    for (const did of new Set([...written.dids, ...faulty, ...damaged])) if (!urgent.isSpent) await check(did, urgent)
    round.seq = written.seq
    const log = new Budget(debts.log, allowedMillis / 4, ctx, stopping)
    const used = (budget: Budget, share: number) => Math.min(budget.owedMillis, allowedMillis * share)
    let regular: Budget | null = null
    try {
      await checkLog(ctx, round, log)
      regular = new Budget(debts.round, allowedMillis - used(urgent, 1 / 2) - used(log, 1 / 4), ctx, stopping)
      await continueRound(ctx, round, regular, check)
      return report
    } finally {
      urgent.settle()
      log.settle()
      regular?.settle()
      if (!isDeepStrictEqual(round, before)) await putIntegrityRound(db, round)
    }
  },
}

/** Check the accounts that the round has not reached, in order, while the budget lasts. */
async function continueRound(
  ctx: Context,
  round: IntegrityRound,
  budget: Budget,
  check: (did: Did, budget: Budget) => Promise<void>,
): Promise<void> {
  while (round.endedAt === null) {
    const page = await nextAccounts(ctx, round)
    for (const did of page) {
      if (budget.isSpent) return
      await check(did, budget)
      round.after = did
      round.repos++
    }
    if (page.length > 0) continue
    const endedAt = ctx.clock.now()
    Object.assign(round, { endedAt, completedAt: endedAt, completedRepos: round.repos })
  }
}

/** The next accounts that have a repository, and those in between that should have one. */
async function nextAccounts({ db }: Context, { after }: IntegrityRound): Promise<Did[]> {
  const repos = (await repoHeads(db, after as Did, PAGE)).map(({ did }) => did)
  const upTo = repos.length < PAGE ? null : repos.at(-1)!
  const bare = await accountsWithoutRepo(db, after, upTo, PAGE)
  return [...repos, ...bare].sort().slice(0, PAGE)
}

/** Check the next events of the log. At the end of the log, forget faults that were not found again in this round. */
async function checkLog(ctx: Context, round: IntegrityRound, budget: Budget): Promise<void> {
  const { db, log, clock } = ctx
  while (!budget.isSpent) {
    const checked = await checkEvents(ctx, round.logSeq, budget.throttled)
    if (checked === null) {
      if ((await countLogFindings(db)) > 0) await forgetLogFindings(db, round.beganAt)
      return
    }
    round.logSeq = checked.seq
    const found = checked.found.map(({ did, fault }) => ({ did, fault: fault.slice(0, MAX_FAULT_CHARS) }))
    const room = MAX_LOG_FINDINGS - (found.length === 0 ? 0 : await countLogFindings(db))
    for (const { did, fault: text } of found) log.error('an event in the event log is damaged', { did, text })
    if (found.length > 0 && room > 0) await putLogFindings(db, found.slice(0, room), clock.now())
  }
}

/** The time that one pass may take for its repositories. */
class Budget {
  #spentMillis = 0
  readonly throttled: Throttle

  constructor(
    readonly debt: { millis: number },
    readonly allowedMillis: number,
    { busyShare }: Context,
    stopping: AbortSignal,
  ) {
    const slowed = throttle(stopping, busyShare)
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

  /** Time that was not used is not saved up. */
  settle(): void {
    this.debt.millis = Math.max(0, this.owedMillis - this.allowedMillis)
    this.#spentMillis = 0
  }
}

/** Returns the round in progress, or a new one if it is due. Until it is due, returns the one that has ended. */
async function roundToContinue({ db, clock, config }: Context): Promise<IntegrityRound> {
  const round = await currentIntegrityRound(db)
  const now = clock.now()
  if (round !== null && round.endedAt === null) return round
  // A time in the future was written before the clock was set back.
  const isRecent = round !== null && round.beganAt <= now && now < round.beganAt + config.integrity.roundSecs * 1000
  if (isRecent) return round
  const { completedAt = null, completedRepos = null, seq = await headSeq(db) } = round ?? {}
  return { beganAt: now, after: '', repos: 0, endedAt: null, completedAt, completedRepos, seq, logSeq: 0 }
}

/** What cannot be read is damaged, unless the database as a whole is out of reach. */
function unreadable({ config }: Context, error: unknown, stopping: AbortSignal): string[] {
  const isDamage = String((error as { code?: unknown }).code) === 'SQLITE_CORRUPT'
  const isOutage = isStorageOutage(error) || (!isDamage && explainDatabase(error, config.databaseUrl) !== null)
  if (stopping.aborted || isOutage) throw error
  return [`it cannot be read (${error instanceof Error ? error.message : String(error)})`]
}

/** Check the repository of an account now, and replace what is known to be wrong with it. Returns the faults. */
export async function refreshFindings(ctx: Context, did: Did): Promise<string[]> {
  const faults = await faultsOfRepo(ctx, did)
  await keepFindings(ctx, did, faults)
  return faults
}

/** Store the findings about a repository. Returns whether there are any. */
async function keepFindings({ db, log, clock }: Context, did: Did, found: readonly string[]): Promise<boolean> {
  if (found.length === 0 && !(await hasFindings(db, did))) return false
  // Keep faults first that may mean lost records: the blobs of such an account are not deleted.
  const inOrder = found.toSorted((one, other) => Number(isOfBlobs(one)) - Number(isOfBlobs(other)))
  const faults = inOrder.slice(0, MAX_FAULTS).map((fault) => fault.slice(0, MAX_FAULT_CHARS))
  if (faults.length > 0) log.error('repository is damaged', { did, text: faults.join('; ') })
  await db.transaction(async (tx) => {
    const isThere = (await accountOf(tx, did)) !== null || (await repoHead(tx, did)) !== null
    await (isThere ? putFindings(tx, did, faults, clock.now()) : forgetFindings(tx, did))
  })
  return faults.length > 0
}
