import { expect, test } from 'bun:test'
import { DAY_MILLIS, HOUR_MILLIS, MINUTE_MILLIS } from '../../../base/durations.ts'
import { changeOf, CLEAR_MILLIS, type AlertState, type News, type Timing } from './alert-state.ts'

/** Follows an alert through looks, each with whether its condition holds then. Returns what was told when. */
function toldIn(looks: readonly (readonly [at: number, seen: boolean])[], timing: Omit<Timing, 'now'>) {
  const told: [at: number, news: News][] = []
  let state: AlertState | null = null
  for (const [now, seen] of looks) {
    const change = changeOf(state, seen ? 'so it is' : null, { ...timing, now })
    if (change === null) continue
    state = change.state
    if (change.news !== null) told.push([now, change.news])
  }
  return { told, state: state as AlertState | null }
}

const timing = { holdMillis: 0, reminderMillis: DAY_MILLIS }
const minutes = (count: number) => count * MINUTE_MILLIS

test('an alert is told once, and once that it is over', () => {
  const { told, state } = toldIn(
    [
      [minutes(1), true],
      [minutes(2), true],
      [minutes(3), false],
      [minutes(3) + CLEAR_MILLIS, false],
      [minutes(30), false],
    ],
    timing,
  )
  expect(told).toEqual([
    [minutes(1), 'begun'],
    [minutes(3) + CLEAR_MILLIS, 'over'],
  ])
  expect(state).toMatchObject({ since: minutes(1), clearSince: minutes(3), told: 'over' })
})

test('one that comes and goes is one that lasts', () => {
  const looks = Array.from({ length: 60 }, (_, i) => [minutes(i), i % 2 === 0] as const)
  expect(toldIn(looks, timing).told).toEqual([[0, 'begun']])
})

test('one that has to hold for a while is told after that, and not at all if it is over before', () => {
  const held = { ...timing, holdMillis: HOUR_MILLIS }
  expect(
    toldIn(
      [
        [0, true],
        [minutes(59), true],
        [minutes(60), true],
      ],
      held,
    ).told,
  ).toEqual([[minutes(60), 'begun']])
  const brief = toldIn(
    [
      [0, true],
      [minutes(59), false],
      [minutes(60), true],
      [minutes(61), true],
    ],
    held,
  )
  expect(brief.told).toEqual([])
  expect(brief.state).toMatchObject({ since: minutes(60), told: 'nothing' })
})

test('while one lasts, it is told again after the time of the reminder, or never', () => {
  const looks = Array.from({ length: 49 }, (_, hour) => [hour * HOUR_MILLIS, true] as const)
  expect(toldIn(looks, timing).told.map(([, news]) => news)).toEqual(['begun', 'lasting', 'lasting'])
  expect(toldIn(looks, { ...timing, reminderMillis: 0 }).told.map(([, news]) => news)).toEqual(['begun'])
})

test('after its end, it may begin again', () => {
  const end = minutes(1) + CLEAR_MILLIS
  expect(
    toldIn(
      [
        [0, true],
        [minutes(1), false],
        [end, false],
        [minutes(60), true],
      ],
      timing,
    ).told.map(([, news]) => news),
  ).toEqual(['begun', 'over', 'begun'])
})

test('a clock that is set back delays nothing', () => {
  const ahead: AlertState = { text: '', since: DAY_MILLIS, clearSince: DAY_MILLIS, told: 'begun', toldAt: DAY_MILLIS }
  expect(changeOf(ahead, null, { ...timing, now: 0 })?.news).toBe('over')
  expect(changeOf({ ...ahead, told: 'nothing' }, 'so', { ...timing, holdMillis: DAY_MILLIS, now: 0 })?.news).toBe(
    'begun',
  )
})
