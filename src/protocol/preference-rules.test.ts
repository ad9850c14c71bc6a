import { expect, test } from 'bun:test'
import { putPreferences, visiblePreferences, type Preference } from './preference-rules.ts'

const born: Preference = { $type: 'app.bsky.actor.defs#personalDetailsPref', birthDate: '2008-02-29T00:00:00.000Z' }
const adult: Preference = { $type: 'app.bsky.actor.defs#adultContentPref', enabled: true }
const at = (instant: string) => Date.parse(instant)

test('a session without the grant replaces what it sees and keeps the birth date, in front', () => {
  expect(putPreferences([adult, born], [{ ...adult, enabled: false }], { personalDetails: false })).toEqual({
    ok: true,
    stored: [born, { ...adult, enabled: false }],
  })
  expect(putPreferences([adult, born], [adult], { personalDetails: true })).toEqual({ ok: true, stored: [adult] })
})

test('what may not be put is refused as a whole', () => {
  const refused = (given: unknown[], personalDetails = true) =>
    putPreferences([], [adult, ...given], { personalDetails })
  expect(refused([{ enabled: true }])).toEqual({ ok: false, message: 'Preference is missing a $type' })
  for (const $type of ['com.example.pref', 'app.bskyx.pref', 'app'])
    expect(refused([{ $type }])).toEqual({ ok: false, message: 'Some preferences are not in the app.bsky namespace' })
  const unreadable = JSON.parse('{"$type":"app.bsky.pref","list":[{"__proto__":1}]}') as unknown
  expect(refused([unreadable])).toEqual({ ok: false, message: 'Invalid key: __proto__' })
  expect(refused([{ $type: 'app.bsky.pref', text: '"__proto__":' }])).toMatchObject({ ok: true })
  expect(refused([born], false)).toEqual({
    ok: false,
    message: 'Do not have authorization to set preferences: app.bsky.actor.defs#personalDetailsPref',
  })
})

test('the declared age is computed for everybody, to the day, and never stored', () => {
  const seen = (now: string, personalDetails = false) =>
    visiblePreferences([born, adult], { personalDetails, now: at(now) })
  const age = (over13: boolean, over16: boolean, over18: boolean) => ({
    $type: 'app.bsky.actor.defs#declaredAgePref',
    isOverAge13: over13,
    isOverAge16: over16,
    isOverAge18: over18,
  })
  expect(seen('2024-02-28T23:00:00Z')).toEqual([adult, age(true, false, false)])
  expect(seen('2024-02-29T00:00:00Z')).toEqual([adult, age(true, true, false)])
  expect(seen('2026-03-01T00:00:00Z', true)).toEqual([born, adult, age(true, true, true)])
  expect(putPreferences([], [age(true, true, true)], { personalDetails: true })).toEqual({ ok: true, stored: [] })
})

test('a birth date that is none makes no age', () => {
  expect(visiblePreferences([{ ...born, birthDate: 'soon' }], { personalDetails: true, now: 0 })).toEqual([
    { ...born, birthDate: 'soon' },
  ])
})
