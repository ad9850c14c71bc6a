/**
 * Which of an account's preferences a session may read and replace. Only sessions with the grant may access the birth
 * date. All sessions see the age brackets computed from it, which are never stored.
 */
import { UNREADABLE_NAME } from './data-model.ts'
import type { Millis } from './identifiers.ts'

export interface Preference {
  $type: string
  [member: string]: unknown
}

const NAMESPACE = 'app.bsky'
const PERSONAL_DETAILS = 'app.bsky.actor.defs#personalDetailsPref'
const DECLARED_AGE = 'app.bsky.actor.defs#declaredAgePref'
const declaredAges = [13, 16, 18] as const

export type PutOutcome = { ok: true; stored: Preference[] } | { ok: false; message: string }

/** What to store after a session has replaced the preferences that it sees with `given`. */
export function putPreferences(
  stored: readonly Preference[],
  given: readonly unknown[],
  { personalDetails }: { personalDetails: boolean },
): PutOutcome {
  if (JSON.stringify(given).includes(`"${UNREADABLE_NAME}":`))
    return { ok: false, message: `Invalid key: ${UNREADABLE_NAME}` }
  const wanted: Preference[] = []
  for (const preference of given) {
    if (!isPreference(preference)) return { ok: false, message: 'Preference is missing a $type' }
    if (preference.$type !== NAMESPACE && !preference.$type.startsWith(`${NAMESPACE}.`))
      return { ok: false, message: 'Some preferences are not in the app.bsky namespace' }
    if (isReserved(preference) && !personalDetails)
      return { ok: false, message: `Do not have authorization to set preferences: ${PERSONAL_DETAILS}` }
    if (preference.$type !== DECLARED_AGE) wanted.push(preference)
  }
  const kept = personalDetails ? [] : stored.filter(isReserved)
  return { ok: true, stored: [...kept, ...wanted] }
}

/** What a session sees, including the age computed from the birth date. */
export function visiblePreferences(
  stored: readonly Preference[],
  { personalDetails, now }: { personalDetails: boolean; now: Millis },
): Preference[] {
  const visible = stored.filter((preference) => personalDetails || !isReserved(preference))
  const age = declaredAge(stored, now)
  return age ? [...visible, age] : visible
}

function declaredAge(stored: readonly Preference[], now: Millis): Preference | null {
  const birthDate = stored.find(isReserved)?.['birthDate']
  const born = typeof birthDate === 'string' ? new Date(birthDate) : null
  if (born === null || Number.isNaN(born.getTime())) return null
  const isOver = (years: number) => {
    const day = new Date(born)
    day.setUTCFullYear(day.getUTCFullYear() + years)
    return day.getTime() <= now
  }
  return {
    $type: DECLARED_AGE,
    ...Object.fromEntries(declaredAges.map((years) => [`isOverAge${years}`, isOver(years)])),
  }
}

const isReserved = ({ $type }: Preference) => $type === PERSONAL_DETAILS

export const isPreference = (value: unknown): value is Preference =>
  typeof value === 'object' && value !== null && typeof (value as { $type?: unknown }).$type === 'string'
