/**
 * When to tell operators of an alert: once when it has held for long enough, again as a reminder while it lasts, and
 * once when it has been over for a while. An alert that stops and returns within that while counts as lasting.
 */
import { MINUTE_MILLIS } from '../../../base/durations.ts'
import { ageOf } from '../../../platform/running/clock.ts'
import type { Millis } from '../../../protocol/identifiers.ts'

/** How long the condition must not hold before the alert is over. */
export const CLEAR_MILLIS = 15 * MINUTE_MILLIS

export interface AlertState {
  text: string
  /** When the condition was first seen to hold. */
  since: Millis
  /** Since when it has not held; null while it holds. */
  clearSince: Millis | null
  /** What the operator knows. `nothing`: it has not held for long enough. */
  told: 'nothing' | 'begun' | 'over'
  toldAt: Millis | null
}

export type News = 'begun' | 'lasting' | 'over'

export interface Timing {
  now: Millis
  /** How long the condition has to hold before operators are told. */
  holdMillis: number
  /** Time between two reminders; 0 for none. */
  reminderMillis: number
}

export interface Change {
  /** Null: forget the alert. */
  state: AlertState | null
  /** What to tell; null if there is nothing to tell yet. */
  news: News | null
}

/**
 * Returns what becomes of an alert, or null if nothing changes. `before`: what is known of it, or null. `seen`: the
 * fact if the condition holds now, or null.
 */
export function changeOf(before: AlertState | null, seen: string | null, timing: Timing): Change | null {
  return seen === null ? whenClear(before, timing) : whenSeen(before, seen, timing)
}

function whenSeen(before: AlertState | null, text: string, { now, holdMillis, reminderMillis }: Timing): Change | null {
  const isOpen = before !== null && before.told !== 'over'
  const since = isOpen ? before.since : now
  if (isOpen && before.told === 'begun') {
    const state: AlertState = { ...before, clearSince: null }
    if (reminderMillis > 0 && ageOf(before.toldAt ?? now, now) >= reminderMillis)
      return { state: { ...state, text, toldAt: now }, news: 'lasting' }
    return before.clearSince === null ? null : { state, news: null }
  }
  if (ageOf(since, now) >= holdMillis)
    return { state: { text, since, clearSince: null, told: 'begun', toldAt: now }, news: 'begun' }
  return isOpen ? null : { state: { text, since, clearSince: null, told: 'nothing', toldAt: null }, news: null }
}

function whenClear(before: AlertState | null, { now }: Timing): Change | null {
  if (before === null || before.told === 'over') return null
  if (before.told === 'nothing') return { state: null, news: null }
  if (before.clearSince === null) return { state: { ...before, clearSince: now }, news: null }
  if (ageOf(before.clearSince, now) < CLEAR_MILLIS) return null
  return { state: { ...before, told: 'over', toldAt: now }, news: 'over' }
}
