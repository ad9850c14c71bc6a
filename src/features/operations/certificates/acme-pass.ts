/** One pass of the sweep that gets and renews certificates: the work of it, which only `tls.mode` acme loads. */
import { DAY_MILLIS, HOUR_MILLIS, MINUTE_MILLIS } from '../../../base/durations.ts'
import type { Context } from '../../../platform/context.ts'
import { AcmeFault } from '../../../platform/network/acme-client.ts'
import type { SweepReport } from '../../../platform/running/sweep-state.ts'
import { authorityOf, MAX_CERTIFICATES, serveStored } from './acme-authority.ts'
import { continueOrder, newCertificateKey, type Authority } from './acme-orders.ts'
import { withdrawRecords } from './challenge-records.ts'
import {
  arePlacingsLimited,
  deleteExpiredCertificates,
  deleteOrder,
  dueOrders,
  insertOrder,
  listOrders,
  listRenewals,
  noteOrderFailed,
  ordersPlacedSince,
  postponeOrder,
  type StoredOrder,
} from './certificate-store.ts'
import { askWhenToRenew } from './renewal.ts'
import { standingCertificates, wantedCertificates } from './wanted-certificates.ts'

/** Authorities allow about 100. */
const MAX_ORDERS_PER_HOUR = 60
/** Orders in the table, failed ones included. Further certificates wait until there are fewer. */
const MAX_OPEN_ORDERS = 1000
/** Orders of one pass, each of which may take a minute. */
const MAX_ORDERS_PER_PASS = 20
/** Authorities allow about five failed validations of a name in an hour. */
const FIRST_RETRY_MILLIS = 5 * MINUTE_MILLIS
const RETRY_GROWTH = 4
const MAX_RETRY_MILLIS = DAY_MILLIS
/** While the authority is away, which has nothing to do with the name. */
const MAX_AWAY_MILLIS = HOUR_MILLIS
/** How long no order is placed after the authority has refused one for its limits and named no time. */
const LIMITED_MILLIS = HOUR_MILLIS
/** Between changes of the listener in one pass: each former one serves for some seconds more. */
const MIN_SERVED_MILLIS = 5000
/** Until an order is read again that the authority has not completed. */
const PENDING_MILLIS = MINUTE_MILLIS / 2

export async function getCertificates(ctx: Context, stopping: AbortSignal): Promise<SweepReport> {
  const authority = authorityOf(ctx)
  if (authority === null) return {}
  const { db, clock } = ctx
  const expired = await deleteExpiredCertificates(db, clock.now())
  await askWhenToRenew(ctx, authority.client, stopping)
  const ordered = await orderWhatIsWanted(ctx)
  const outcome = await workOff(ctx, authority, stopping)
  await withdrawRecords(ctx)
  await serveStored(ctx)
  return { expired, ordered, ...outcome }
}

/** Add an order for each certificate that is missing or due, and drop those for names that no account has. */
async function orderWhatIsWanted(ctx: Context): Promise<number> {
  const { db, clock, vault } = ctx
  const now = clock.now()
  const kept = new Map((await listRenewals(db, now)).map(({ names, renewAt }) => [names, renewAt]))
  const first = standingCertificates(ctx.config)
  const open = new Set((await listOrders(db, { first, limit: MAX_OPEN_ORDERS })).map(({ names }) => names))
  const gone = new Set(open)
  /** Those that are kept, or will be once their orders are complete. */
  const held = new Set([...kept.keys(), ...open])
  const standing = new Set(first)
  let ordered = 0
  for await (const page of wantedCertificates(ctx)) {
    for (const names of page) {
      gone.delete(names)
      const renewAt = kept.get(names)
      const hasRoom =
        standing.has(names) || (open.size < MAX_OPEN_ORDERS && (held.has(names) || held.size < MAX_CERTIFICATES))
      if (open.has(names) || (renewAt ?? 0) > now || !hasRoom) continue
      open.add(names)
      held.add(names)
      ordered += await insertOrder(db, { names, keyWrapped: vault.wrap(newCertificateKey()), nextAt: now })
    }
  }
  for (const names of gone) await deleteOrder(db, names)
  return ordered
}

async function workOff(ctx: Context, authority: Authority, stopping: AbortSignal) {
  const { db, clock } = ctx
  const report = { issued: 0, waiting: 0, failed: 0 }
  const isLimited = await arePlacingsLimited(db, clock.now())
  let budget = isLimited ? 0 : MAX_ORDERS_PER_HOUR - (await ordersPlacedSince(db, clock.now() - HOUR_MILLIS))
  const first = standingCertificates(ctx.config)
  let servedAt = -Infinity
  for (const order of await dueOrders(db, { now: clock.now(), first, limit: MAX_ORDERS_PER_PASS })) {
    if (order.url === null && budget-- <= 0) continue
    try {
      const isIssued = await continueOrder(ctx, authority, order, stopping)
      report[isIssued ? 'issued' : 'waiting']++
      if (!isIssued) await postponeOrder(db, order.names, clock.now() + PENDING_MILLIS)
      // Those of the service come first, and what follows may take minutes.
      else if (clock.monotonic() - servedAt >= MIN_SERVED_MILLIS) {
        await serveStored(ctx)
        servedAt = clock.monotonic()
      }
    } catch (error) {
      if (!(error instanceof AcmeFault)) throw error
      report.failed++
      await noteFault(ctx, order, error)
      // It would be the same for all others.
      if (error.kind !== 'refused') break
    }
  }
  return report
}

async function noteFault(ctx: Context, { names, failures }: StoredOrder, error: AcmeFault): Promise<void> {
  const { db, clock, log } = ctx
  const waitMillis = {
    unavailable: Math.max(error.waitMillis ?? 0, Math.min(MINUTE_MILLIS * 2 ** failures, MAX_AWAY_MILLIS)),
    limited: error.waitMillis ?? LIMITED_MILLIS,
    refused: Math.min(FIRST_RETRY_MILLIS * RETRY_GROWTH ** failures, MAX_RETRY_MILLIS),
  }[error.kind]
  const nextAt = clock.now() + waitMillis
  await noteOrderFailed(db, names, {
    fault: error.message,
    nextAt,
    ended: error.kind === 'refused',
    limited: error.kind === 'limited',
  })
  const secs = Math.round(waitMillis / 1000)
  log.warn('could not get a certificate; will retry', { subject: names, reason: error.message, secs })
}
