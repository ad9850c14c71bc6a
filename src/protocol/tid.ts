/**
 * Timestamp identifiers: 53 bits of microseconds and 10 bits of clock id, in 13 sortable characters.
 *
 * The clock is an argument. Each TID is made from the previous one: if the clock stops or steps back, TIDs still
 * neither repeat nor go backwards.
 *
 * Source: atproto "Timestamp Identifiers (TIDs)".
 */
import type { Tid } from './identifiers.ts'

const ALPHABET = '234567abcdefghijklmnopqrstuvwxyz'
const MICROS_CHARS = 11
/** The last characters, which encode one number of 30 bits. */
const LOW_CHARS = 6
const CLOCK_ID_CHARS = 2

/** A clock id is 0 to 1023. */
export const CLOCK_IDS = 1024

/**
 * Returns a TID after `previous`: at `nowMicros` if that is later, otherwise one microsecond after `previous`.
 * Microseconds count from the epoch. `previous` may come from any clock id.
 */
export function nextTid(previous: Tid | null, nowMicros: number, clockId: number): Tid {
  const micros = previous === null ? nowMicros : Math.max(nowMicros, tidMicros(previous) + 1)
  const high = Math.floor(micros / 32 ** LOW_CHARS)
  const low = micros % 32 ** LOW_CHARS
  writeDigits(high, 0, MICROS_CHARS - LOW_CHARS)
  writeDigits(low, MICROS_CHARS - LOW_CHARS, LOW_CHARS)
  writeDigits(clockId, MICROS_CHARS, CLOCK_ID_CHARS)
  return letters.toString('latin1') as Tid
}

/** The time in a TID, in microseconds since the epoch. */
export function tidMicros(tid: Tid): number {
  let micros = 0
  for (let i = 0; i < MICROS_CHARS; i++) micros = micros * 32 + ALPHABET.indexOf(tid.charAt(i))
  return micros
}

const letters = Buffer.alloc(MICROS_CHARS + CLOCK_ID_CHARS)

/** `value` has at most 31 bits. Longer ones make the engine deoptimize the calling code again and again. */
function writeDigits(value: number, start: number, length: number): void {
  for (let rest = value, at = start + length - 1; at >= start; at--) {
    letters[at] = ALPHABET.charCodeAt(rest & 31)
    rest >>>= 5
  }
}
