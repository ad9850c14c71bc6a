/** One pass of the sweep that gets and renews certificates. Only `tls.mode` acme loads it. */
import { DAY_MILLIS, HOUR_MILLIS, MINUTE_MILLIS } from '../../../base/durations.ts'
import type { Context } from '../../../platform/context.ts'
import { AcmeFault } from '../../../platform/network/acme-client.ts'
import type { SweepReport } from '../../../platform/running/sweep-state.ts'
import { servedDomain } from '../../../protocol/handle-policy.ts'
import { authorityOf, MAX_CERTIFICATES, serveStored } from './acme-authority.ts'
import { continueOrder, isOverdue, newCertificateKey, type Authority } from './acme-orders.ts'
import { withdrawRecords } from './challenge-records.ts'
import {
  deleteCertificate,
  deleteNameOrders,
  deleteOrder,
  dueOrders,
  expiredNames,
  insertNameOrder,
  insertOrder,
  limitedOrders,
  listOrders,
  listRenewals,
  noteOrderFailed,
  ordersPlacedBetween,
  postponeOrder,
  type StoredOrder,
} from './certificate-store.ts'
import { askWhenToRenew } from './renewal.ts'
import { standingCertificates, wantedCertificates, type Wanted, type WantedNames } from './wanted-certificates.ts'

/** Authorities allow about 100. */
const MAX_ORDERS_PER_HOUR = 60
/** Most orders in the table, failed ones included. Further certificates wait until there are fewer. */
const MAX_OPEN_ORDERS = 1000
/**
 * Most names for which an account gets its first certificate in a week. Authorities limit all names under a domain
 * together, and an account could use up that limit by changing its handle.
 */
const MAX_NEW_NAMES = 5
const NEW_NAMES_MILLIS = 7 * DAY_MILLIS
/** Most orders of one pass, each of which may take a minute. */
const MAX_ORDERS_PER_PASS = 20
/** First retry after a failed validation: authorities allow about five of a name in an hour. */
const FIRST_RETRY_MILLIS = 5 * MINUTE_MILLIS
const RETRY_GROWTH = 4
const MAX_RETRY_MILLIS = DAY_MILLIS
/** No order is postponed for longer. A later time was set while the clock was ahead. */
const MAX_PUT_OFF_MILLIS = MAX_RETRY_MILLIS + HOUR_MILLIS
/** Longest wait while the authority is unreachable, which has nothing to do with the name. */
const MAX_AWAY_MILLIS = HOUR_MILLIS
/** Pause for orders of a rank after the authority has refused one for its limits without naming a time. */
const LIMITED_MILLIS = HOUR_MILLIS
/** Least time between two changes of the listener in one pass: each former listener serves for some seconds more. */
const MIN_SERVED_MILLIS = 5000
/** Pause before an order that the authority has not completed is read again. */
const PENDING_MILLIS = MINUTE_MILLIS / 2

export async function getCertificates(ctx: Context, stopping: AbortSignal): Promise<SweepReport> {
  const authority = authorityOf(ctx)
  if (authority === null) return {}
  await askWhenToRenew(ctx, authority.client, stopping)
  const changes = await orderWhatIsWanted(ctx)
  const outcome = await workOff(ctx, authority, stopping)
  await withdrawRecords(ctx)
  await serveStored(ctx)
  return { ...changes, ...outcome }
}

/**
 * Add an order for each certificate that is missing or due. Drop orders that are no longer due, or for names that no
 * account has. Certificates for such names are deleted once they have expired, or when another certificate needs their
 * place. An expired certificate that is still wanted stays, because the clock may be wrong.
 */
async function orderWhatIsWanted(ctx: Context): Promise<{ ordered: number; expired: number }> {
  const { db, clock } = ctx
  const now = clock.now()
  const kept = new Map((await listRenewals(db, now)).map(({ names, renewAt }) => [names, renewAt]))
  const first = standingCertificates(ctx.config)
  const orders = await listOrders(db, { first, limit: MAX_OPEN_ORDERS })
  const open = new Set(orders.map(({ names }) => names))
  const gone = new Set(open)
  const early = new Set(
    orders.flatMap(({ names, url }) => (url === null && (kept.get(names) ?? 0) > now ? [names] : [])),
  )
  const expired = new Set(await expiredNames(db, now))
  const unwanted = new Set(kept.keys())
  /** Certificates that are kept, or will be once their orders are complete. */
  const held = new Set([...kept.keys(), ...open])
  const standing = new Set(first)
  let ordered = 0
  let outside = 0
  for await (const page of wantedCertificates(ctx)) {
    for (const wanted of page) {
      const { names } = wanted
      if (!early.has(names)) gone.delete(names)
      unwanted.delete(names)
      const isKnown = expired.delete(names) || held.has(names)
      if (open.has(names) || (kept.get(names) ?? 0) > now) continue
      if (!isKnown && !standing.has(names) && held.size >= MAX_CERTIFICATES) outside++
      else if (standing.has(names) || open.size < MAX_OPEN_ORDERS) {
        if (!(await order(ctx, wanted, { isKnown, now }))) continue
        ordered++
        open.add(names)
        held.add(names)
      }
    }
  }
  for (const names of gone) await deleteOrder(db, names)
  const places = outside === 0 ? 0 : held.size + outside - MAX_CERTIFICATES
  for (const names of [...expired, ...[...unwanted].slice(0, places)]) await deleteCertificate(db, names)
  await deleteNameOrders(db, now - NEW_NAMES_MILLIS)
  return { ordered, expired: expired.size }
}

/** Returns false if the account has already caused as many orders for new names as it may. */
function order(
  { db, vault }: Context,
  { names, did }: Wanted,
  { isKnown, now }: { isKnown: boolean; now: number },
): Promise<boolean> {
  return db.transaction(async (tx) => {
    const share = { since: now - NEW_NAMES_MILLIS, max: MAX_NEW_NAMES }
    if (did !== null && !isKnown && (await insertNameOrder(tx, { did, names, now }, share)) === 0) return false
    return (await insertOrder(tx, { names, keyWrapped: vault.wrap(newCertificateKey()), nextAt: now })) > 0
  })
}

/**
 * The rank of an order, by how much depends on it. If the authority limits one order, it may limit others of the same
 * rank, so no order of this rank or a lower one is placed until the time that the authority names. A limit for a domain
 * elsewhere, which the holder of that domain may have used up, says nothing about other orders.
 */
type Rank = 'service' | 'renewal' | 'new' | 'elsewhere'
const ranks: readonly Rank[] = ['service', 'renewal', 'new', 'elsewhere']

function rankOf({ config }: Context, standing: ReadonlySet<WantedNames>, { names, renews }: OrderRank): Rank {
  if (standing.has(names)) return 'service'
  if (servedDomain(names, config.availableUserDomains) === null) return 'elsewhere'
  return renews ? 'renewal' : 'new'
}
type OrderRank = Pick<StoredOrder, 'names' | 'renews'>

async function workOff(ctx: Context, authority: Authority, stopping: AbortSignal) {
  const { db, clock } = ctx
  const report = { issued: 0, waiting: 0, failed: 0 }
  const first = standingCertificates(ctx.config)
  const standing = new Set(first)
  const now = clock.now()
  const latest = now + MAX_PUT_OFF_MILLIS
  const levelOf = (each: OrderRank) => ranks.indexOf(rankOf(ctx, standing, each))
  /** Orders of this rank and of lower ones are not placed. */
  let limitedFrom = (await limitedOrders(db, { now, latest }))
    .map(levelOf)
    .filter((level) => ranks[level] !== 'elsewhere')
    .reduce((least, level) => Math.min(least, level), ranks.length)
  let budget = MAX_ORDERS_PER_HOUR - (await ordersPlacedBetween(db, now - HOUR_MILLIS, now))
  let servedAt = -Infinity
  for (const order of await dueOrders(db, { now, latest, first, limit: MAX_ORDERS_PER_PASS })) {
    if (order.url === null && (levelOf(order) >= limitedFrom || budget-- <= 0)) continue
    try {
      const isIssued = await continueOrder(ctx, authority, order, stopping)
      report[isIssued ? 'issued' : 'waiting']++
      if (!isIssued) await postponeOrder(db, order.names, clock.now() + PENDING_MILLIS)
      // The certificates of the service come first, and the orders that follow may take minutes.
      else if (clock.monotonic() - servedAt >= MIN_SERVED_MILLIS) {
        await serveStored(ctx)
        servedAt = clock.monotonic()
      }
    } catch (error) {
      if (!(error instanceof AcmeFault)) throw error
      report.failed++
      await noteFault(ctx, order, error)
      // All other orders would fail in the same way.
      if (error.kind === 'unavailable') break
      if (error.kind === 'limited') limitedFrom = Math.min(limitedFrom, levelOf(order))
    }
  }
  return report
}

async function noteFault(
  ctx: Context,
  { names, failures, url, placedAt }: StoredOrder,
  error: AcmeFault,
): Promise<void> {
  const { db, clock, log } = ctx
  const waitMillis = {
    unavailable: Math.max(error.waitMillis ?? 0, Math.min(MINUTE_MILLIS * 2 ** failures, MAX_AWAY_MILLIS)),
    limited: Math.max(error.waitMillis ?? LIMITED_MILLIS, FIRST_RETRY_MILLIS),
    refused: Math.min(FIRST_RETRY_MILLIS * RETRY_GROWTH ** failures, MAX_RETRY_MILLIS),
  }[error.kind]
  const nextAt = clock.now() + waitMillis
  // If the authority has lost the order, or cannot say anything about it, asking again would never end.
  const isLost = url !== null && isOverdue(ctx, { placedAt })
  await noteOrderFailed(db, names, {
    fault: error.message,
    nextAt,
    ended: error.kind === 'refused' || isLost,
    limited: error.kind === 'limited',
  })
  const secs = Math.round(waitMillis / 1000)
  log.warn('could not get a certificate; will retry', { subject: names, reason: error.message, secs })
}
