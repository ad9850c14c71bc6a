/** Health of the service as raw numbers, for operators and their alerts. The report draws no conclusions from them. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { DAY_MILLIS } from '../../../base/durations.ts'
import { SingleFlight } from '../../../base/single-flight.ts'
import { route } from '../../../http/endpoint.ts'
import { invalidRequest, notFound } from '../../../http/errors.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { inPages, type Reader } from '../../../platform/database/database.ts'
import { VERSION } from '../../../base/version.ts'
import type { Stall } from '../../../platform/running/loop-watch.ts'
import type { StepSummary } from '../../../platform/running/step-store.ts'
import { freeBytesOf } from '../../../platform/files/free-space.ts'
import { wireTime, wireTimeOrNull, type Did, type Millis } from '../../../protocol/identifiers.ts'
import { askCrawlers, askRelay, firehoseStatus, headSeq, sequencedAt } from '../../data/firehose/firehose.ts'
import { irohStatus } from '../../push/iroh/iroh.ts'
import { relayStatus } from '../../push/notifications/notifications.ts'
import { countFlaggedAccounts } from '../../data/labels/labels.ts'
import { actorOf, logOperator, operator, recordAudit } from '../operators/operators.ts'
import {
  countAccounts,
  countActive,
  countBlocks,
  countGrowth,
  listOwnedBlobs,
  type Activity,
  type GrowthDay,
  type OwnedBlobs,
} from './account-report-store.ts'

/** Convert the name of a sweep to its member name in the health report: `blob-gc` becomes `blobGc`. */
const camelCase = (name: string) => name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())

/** How long a count serves. */
const KEPT_MILLIS = 600_000

/** A count that scans whole tables or indices. Reports that are requested during a count share it. */
class KeptCount<Count> {
  #last: { at: number; count: Count } | null = null
  readonly #counting = new SingleFlight<null, Count>()

  /** `isKept`: whether a count serves other reports too. */
  constructor(
    readonly ctx: Context,
    readonly count: (ctx: Context) => Promise<Count>,
    readonly isKept: (count: Count) => boolean = () => true,
  ) {}

  async get(): Promise<Count> {
    const at = this.ctx.clock.monotonic()
    const last = this.#last
    if (last !== null && this.isKept(last.count) && at - last.at < KEPT_MILLIS) return last.count
    return this.#counting.run(null, async () => {
      const count = await this.count(this.ctx)
      this.#last = { at, count }
      return count
    })
  }
}

const blockCount = perContext((ctx: Context) => new KeptCount(ctx, ({ db }) => countBlocks(db)))

/** DIDs whose blobs are summed up in one turn of the event loop. */
const TURN_DIDS = 200

/**
 * Sum up the blob rows. The key of a blob row names its account, so an unowned blob is a row whose account no longer
 * exists.
 */
async function storageTotals(reader: Reader) {
  const totals = { blobCount: 0, blobBytes: 0, blobUnownedCount: 0, blobUnownedBytes: 0 }
  for await (const page of inPages<Pick<OwnedBlobs, 'did'>, OwnedBlobs>(TURN_DIDS, noDid, ({ did }, limit) =>
    listOwnedBlobs(reader, did, limit),
  )) {
    for (const { count, bytes, isOwned } of page) {
      totals.blobCount += count
      totals.blobBytes += bytes
      if (isOwned === 1) continue
      totals.blobUnownedCount += count
      totals.blobUnownedBytes += bytes
    }
    await nextTurn()
  }
  return totals
}

const noDid = { did: '' as Did }

/** Up to these numbers, each report counts the accounts and blobs again. */
const FEW_ACCOUNTS = 10_000
const FEW_BLOBS = 50_000

interface Totals {
  countedAt: Millis
  accounts: Awaited<ReturnType<typeof countAccounts>>
  storage: Awaited<ReturnType<typeof storageTotals>>
}

const areMany = ({ accounts, storage }: Totals): boolean =>
  accounts.total > FEW_ACCOUNTS || storage.blobCount > FEW_BLOBS

/** How many accounts and blobs there are. */
const serviceTotals = perContext((ctx: Context) => new KeptCount(ctx, countTotals, areMany))

async function countTotals({ clock, db }: Context): Promise<Totals> {
  const countedAt = clock.now()
  return { countedAt, accounts: await countAccounts(db), storage: await storageTotals(db) }
}

interface RelayView {
  reachable: boolean
  relayStatus: string | null
  relaySeq: number | null
  accountCount: number | null
  detail: string | null
}

const unknownTo = (reachable: boolean, detail: string): RelayView => ({
  reachable,
  relayStatus: null,
  relaySeq: null,
  accountCount: null,
  detail,
})

async function relayView(ctx: Context, relay: string): Promise<RelayView> {
  const answer = await askRelay(ctx, relay)
  if (answer.kind === 'not-crawled') return unknownTo(true, 'the relay has not crawled this host')
  if (answer.kind === 'failed') return unknownTo(true, `the relay returned status ${answer.httpStatus}`)
  if (answer.kind === 'known')
    return {
      reachable: true,
      relayStatus: answer.status,
      relaySeq: answer.seq,
      accountCount: answer.accountCount,
      detail: null,
    }
  ctx.log.info('relay unreachable', { relay, detail: answer.detail })
  return unknownTo(false, 'the relay could not be reached')
}

const GROWTH_DAYS = 30

interface Growth {
  days: GrowthDay[]
  active: Activity
}

const growth = perContext((ctx: Context) => new KeptCount(ctx, countRecentGrowth))

async function countRecentGrowth({ clock, db }: Context): Promise<Growth> {
  const at = clock.now()
  const today = Math.floor(at / DAY_MILLIS)
  return { days: await countGrowth(db, today - GROWTH_DAYS + 1, today), active: await countActive(db, at) }
}

async function stepTotals({ steps, clock }: Context) {
  const summaries = await steps.summaries()
  const total = (count: (summary: StepSummary) => number) => summaries.reduce((sum, summary) => sum + count(summary), 0)
  const oldestAt = Math.min(...summaries.map((summary) => summary.oldestAt ?? Infinity))
  return {
    waiting: total(({ waiting }) => waiting),
    failed: total(({ failed }) => failed),
    oldestAgeSeconds: oldestAt === Infinity ? null : Math.max(0, Math.floor((clock.now() - oldestAt) / 1000)),
  }
}

const stallView = (stall: Stall | null) =>
  stall && { seconds: stall.durationMillis / 1000, cause: stall.cause, route: stall.route, at: wireTime(stall.at) }

export const serviceReportRoutes = [
  route('GET', '/v1/admin/health', {
    auth: operator('observe'),
    async handler({ ctx }) {
      const { db, clock, sweeps } = ctx
      const now = clock.now()
      const passes = await sweeps.lastPasses()
      const { backfillWindowSecs: backfillWindowSeconds, ...firehose } = await firehoseStatus(ctx)
      const pushes = await relayStatus(ctx)
      const { countedAt, accounts, storage } = await serviceTotals(ctx).get()
      return {
        version: VERSION,
        uptimeSeconds: Math.floor((clock.monotonic() - ctx.startedAt) / 1000),
        countedAt: wireTime(countedAt),
        accounts: { ...accounts, flagged: await countFlaggedAccounts(db, now) },
        storage: { ...storage, blockCount: await blockCount(ctx).get() },
        disk: { freeBytes: await freeBytesOf(ctx.config.dataDir) },
        firehose: { ...firehose, backfillWindowSeconds },
        sweeps: Object.fromEntries(
          sweeps.sweeps.map(({ name }) => {
            const last = passes.get(name)
            return [camelCase(name), last ? { completedAt: Math.floor(last.completedAt / 1000), ...last.report } : null]
          }),
        ),
        sweepsUnderWay: sweeps
          .underWay()
          .map(({ name, since, isStuck }) => ({ name, since: wireTime(since), isStuck })),
        steps: await stepTotals(ctx),
        eventLoop: { longestStall: stallView(ctx.loop.longest) },
        iroh: irohStatus(ctx),
        notifications: pushes,
        notifyQueueDepth: pushes && pushes.queue.depth,
      }
    },
  }),

  /**
   * For each day of UTC, oldest first: how many accounts were created, and how many blobs were uploaded that still
   * exist. Also how many accounts wrote in the last day, week and month.
   */
  route('GET', '/v1/admin/growth', { auth: operator('observe'), handler: ({ ctx }) => growth(ctx).get() }),

  route('GET', '/v1/admin/relay-status', {
    auth: operator('observe'),
    async handler({ ctx }) {
      const { config, db, clock } = ctx
      const [relay] = config.crawlers.urls
      const pdsHeadSeq = await headSeq(db)
      const checkedAt = wireTime(clock.now())
      const view = relay === undefined ? unknownTo(false, 'no crawler is configured') : await relayView(ctx, relay)
      const relayCursorAt = view.relaySeq === null ? null : await sequencedAt(db, view.relaySeq)
      return {
        relayHost: relay === undefined ? null : new URL(relay).host,
        ...view,
        pdsHeadSeq,
        gap: view.relaySeq === null ? null : pdsHeadSeq - view.relaySeq,
        relayCursorAt: wireTimeOrNull(relayCursorAt),
        checkedAt,
      }
    },
  }),

  route('POST', '/v1/admin/sweeps/:name/run', {
    auth: operator(),
    long: true,
    async handler(call) {
      const { caller, path } = call
      const { config, db, sweeps } = call.ctx
      const { name = '' } = path
      const sweep = sweeps.sweeps.find((one) => one.name === name)
      if (sweep === undefined)
        throw notFound(`There is no such sweep; the sweeps are ${sweeps.sweeps.map((one) => one.name).join(', ')}`)
      const lack = sweep.lacks?.(config) ?? null
      if (lack !== null) throw invalidRequest(lack)
      const act = { actor: actorOf(caller), action: 'sweep_run', subject: name } as const
      // On a full disk, run the sweep without an audit entry: the sweep may be what makes room.
      if (db.writeFault === null) await db.transaction((tx) => recordAudit(call, tx, act))
      else logOperator(call, act)
      return sweeps.run(name)
    },
  }),

  route('POST', '/v1/admin/request-crawl', {
    auth: operator(),
    async handler(call) {
      const { ctx, caller } = call
      const relays = await askCrawlers(ctx)
      if (relays.length === 0) throw invalidRequest('no crawler is configured, or none could reach this host')
      await ctx.db.transaction((tx) => recordAudit(call, tx, { actor: actorOf(caller), action: 'request_crawl' }))
      return { requested: relays.length, accepted: relays.filter(({ accepted }) => accepted).length, relays }
    },
  }),
]
