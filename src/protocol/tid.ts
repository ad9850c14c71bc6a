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
/** The last of them, which are one number of 30 bits. */
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
  return (encodeDigits(high, MICROS_CHARS - LOW_CHARS) +
    encodeDigits(low, LOW_CHARS) +
    encodeDigits(clockId, CLOCK_ID_CHARS)) as Tid
}

/** The time in a TID, in microseconds since the epoch. */
export function tidMicros(tid: Tid): number {
  let micros = 0
  for (let i = 0; i < MICROS_CHARS; i++) micros = micros * 32 + ALPHABET.indexOf(tid.charAt(i))
  return micros
}

/** `value` has at most 31 bits. Longer ones make the engine deoptimize the calling code again and again. */
function encodeDigits(value: number, length: number): string {
  let text = ''
  for (let rest = value, i = 0; i < length; i++) {
    text = ALPHABET.charAt(rest & 31) + text
    rest >>>= 5
  }
  return text
}
