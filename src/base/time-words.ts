/** Times as people read them, in mails and on pages. */
import { madeOnce } from './made-once.ts'

/** Returns a time, in milliseconds since 1970, as `22 November 2026 at 12:31 UTC`. */
export const timeInWords = (at: number): string => `${dayAndTime().format(at)} UTC`

/** Made on first use: it takes milliseconds of the start. */
const dayAndTime = madeOnce(
  () => new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' }),
)
