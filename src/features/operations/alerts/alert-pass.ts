/**
 * A pass over the alerts: check those that are due, compare the results with what operators were told, and order one
 * message about all news. One transaction stores what was told and the order of the message, so each message is ordered
 * once, wherever the process is killed.
 */
import { DAY_MILLIS, HOUR_MILLIS } from '../../../base/durations.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import type { Cluster } from '../../../platform/database/database.ts'
import type { SweepReport } from '../../../platform/running/sweep-state.ts'
import { MAX_SUBJECTS, PASS_SECS, type Alert } from './alert.ts'
import { orderMessage, type Message, type Told } from './alert-messages.ts'
import { changeOf, type Change } from './alert-state.ts'
import {
  countMessages,
  deleteAlert,
  deleteAlertsOverBefore,
  listAlerts,
  noteMessage,
  putAlert,
  type AlertRow,
} from './alert-store.ts'
import { alerts } from './alert-table.ts'
import { outageOf } from './outage.ts'

/** Most messages in an hour. Further news wait until there are fewer. */
const MAX_MESSAGES_PER_HOUR = 6
/** Alerts that are over stay listed for this long. */
const KEPT_MILLIS = 90 * DAY_MILLIS
const MAX_TEXT_CHARS = 1000

/** The result of checking an alert. */
interface Looked {
  alert: Alert
  /** The facts, by subject. */
  seen: ReadonlyMap<string, string>
  /** Whether this check says something about a row: it leaves those of other nodes alone. */
  covers(subject: string): boolean
}

const ofNodes = alerts.filter(({ ofNode = false }) => ofNode)

/** When this process last checked each alert, by the monotonic clock. */
const lastLooks = perContext(() => new Map<string, number>())

/** Check all alerts. An alert of a node is checked for this node only. */
export async function passOverAlerts(ctx: Context): Promise<SweepReport> {
  if (await outageOf(ctx).look()) return { failing: 1 }
  const looked = await lookAt(ctx, alerts)
  return settle(ctx, [...looked, ...(ctx.db.cluster === null ? [] : await deadNodes(ctx.db.cluster))])
}

/** On a cluster: check the alerts of this node, also while another node makes the passes. */
export async function lookAtNode(ctx: Context): Promise<void> {
  if (!(await outageOf(ctx).look())) await settle(ctx, await lookAt(ctx, ofNodes))
}

/** Ends the alerts of dead nodes, which no longer check themselves. */
async function deadNodes(cluster: Cluster): Promise<Looked[]> {
  const alive = new Set((await cluster.nodes()).filter(({ isAlive }) => isAlive).map(({ name }) => name))
  return ofNodes.map((alert) => ({ alert, seen: new Map(), covers: (subject) => !alive.has(subject) }))
}

async function lookAt(ctx: Context, some: readonly Alert[]): Promise<Looked[]> {
  const looked: Looked[] = []
  for (const alert of some) if (isDue(ctx, alert)) looked.push(...(await lookedAt(ctx, alert)))
  return looked
}

function isDue(ctx: Context, { name, everySecs }: Alert): boolean {
  const now = ctx.clock.monotonic()
  const looks = lastLooks(ctx)
  // A timer may fire a little early.
  if (now - (looks.get(name) ?? -Infinity) < (everySecs - PASS_SECS / 2) * 1000) return false
  looks.set(name, now)
  return true
}

async function lookedAt(ctx: Context, alert: Alert): Promise<Looked[]> {
  const node = alert.ofNode ? (ctx.db.cluster?.node.name ?? '') : null
  try {
    const sightings = await alert.look(ctx)
    if (sightings === null) return []
    const seen = new Map(
      sightings
        .slice(0, MAX_SUBJECTS)
        .map(({ subject = '', text }) => [node ?? subject, text.slice(0, MAX_TEXT_CHARS)]),
    )
    return [{ alert, seen, covers: (subject) => node === null || subject === node }]
  } catch (error) {
    ctx.log.warn('could not check an alert', { alert: alert.name, error })
    return []
  }
}

interface AlertChange extends Change {
  alert: Alert
  subject: string
}

function changesOf(ctx: Context, looked: readonly Looked[], rows: readonly AlertRow[]): AlertChange[] {
  const now = ctx.clock.now()
  const reminderMillis = ctx.config.alerts.reminderSecs * 1000
  const rowsOf = new Map<string, Map<string, AlertRow>>()
  for (const row of rows)
    rowsOf.set(row.name, (rowsOf.get(row.name) ?? new Map<string, AlertRow>()).set(row.subject, row))
  return looked.flatMap(({ alert, seen, covers }) => {
    const known = rowsOf.get(alert.name) ?? new Map<string, AlertRow>()
    const subjects = new Set([...seen.keys(), ...[...known.keys()].filter((subject) => covers(subject))])
    return Array.from(subjects).flatMap((subject) => {
      const before = known.get(subject) ?? null
      const timing = { now, holdMillis: alert.holdsForSecs * 1000, reminderMillis }
      const change = changeOf(before, seen.get(subject) ?? null, timing)
      return change === null ? [] : [{ ...change, alert, subject }]
    })
  })
}

const toldOf = ({ alert, subject, state, news }: AlertChange): Told[] =>
  news === null || state === null
    ? []
    : [
        {
          news,
          subject,
          name: alert.name,
          title: alert.title,
          remedy: alert.remedy,
          text: state.text,
          since: state.since,
          overSince: news === 'over' ? state.clearSince : null,
        },
      ]

/** Store what has changed, and order the message about it. Writes nothing if nothing has changed. */
async function settle(ctx: Context, looked: readonly Looked[]): Promise<SweepReport> {
  const { db, clock } = ctx
  const idle = { looked: looked.length, begun: 0, over: 0, reminded: 0, waiting: 0 }
  if (changesOf(ctx, looked, await listAlerts(db)).length === 0) return idle
  return db.transaction(async (tx) => {
    const now = clock.now()
    const changes = changesOf(ctx, looked, await listAlerts(tx))
    const told = changes.flatMap(toldOf)
    const isHeld =
      told.length > 0 && (await countMessages(tx, { since: now - HOUR_MILLIS, now })) >= MAX_MESSAGES_PER_HOUR
    for (const { alert, subject, state, news } of changes) {
      if (isHeld && news !== null) continue
      if (state === null) await deleteAlert(tx, { name: alert.name, subject })
      else await putAlert(tx, { ...state, name: alert.name, subject })
    }
    await deleteAlertsOverBefore(tx, now - KEPT_MILLIS)
    if (isHeld) return { ...idle, waiting: told.length }
    if (told.length > 0) {
      const message: Message = { id: Bun.randomUUIDv7(), type: 'alerts.changed', at: now, told }
      await noteMessage(tx, message)
      await orderMessage(ctx, tx, message)
    }
    const count = (wanted: Told['news']) => told.filter(({ news }) => news === wanted).length
    return { ...idle, begun: count('begun'), over: count('over'), reminded: count('lasting') }
  })
}
