/** Chooses the content codings to request from another service if this server may have to read the response as well. */
import { BoundedCache } from '../../../base/bounded-cache.ts'
import { invalidRequest, Refusal } from '../../../http/errors.ts'
import { isReadableCoding } from './upstream-reply.ts'

interface Acceptable {
  coding: string
  weight: number
}

/** One coding with a weight from 0 to 1, of at most three decimals. RFC 9110, 12.4.2 and 12.5.3. */
const item = /^([!#$%&'*+\-.^_`|~0-9a-z]+)\s*(?:;\s*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?))?$/i

/**
 * Returns the `Accept-Encoding` to send upstream: the codings that the client accepts and that this server can decode,
 * or `identity` if there are none. Null or an empty header from the client stands for `identity`.
 *
 * Throws `NotAcceptable` if there are none and the client refuses `identity`, and `InvalidRequest` if the header is
 * malformed.
 *
 * Source: RFC 9110, 12.5.3.
 */
export function acceptableCodings(acceptEncoding: string | null): string {
  const text = acceptEncoding ?? ''
  const known = answers.get(text)
  if (known !== undefined) return known
  const answer = chosen(text)
  if (text.length <= MAX_KEPT_CHARS) answers.set(text, answer)
  return answer
}

/** Memo: clients send only a handful of different headers. */
const answers = new BoundedCache<string>(100)
const MAX_KEPT_CHARS = 200

function chosen(acceptEncoding: string): string {
  const wanted = acceptEncoding === '' ? [] : acceptEncoding.split(',').map(parseItem)
  const weightOf = (coding: string) =>
    (wanted.find((one) => one.coding === coding) ?? wanted.find((one) => one.coding === '*'))?.weight
  const takesIdentity = weightOf('identity') !== 0
  const common = wanted
    .filter(({ coding, weight }) => weight > 0 && isReadableCoding(coding))
    .map(({ coding, weight }) => `${coding};q=${weight}`)
  if (common.length === 0 && !takesIdentity)
    throw new Refusal(406, 'NotAcceptable', 'this service does not support any of the requested encodings')
  if (!takesIdentity) common.push('identity;q=0')
  return common.length === 0 ? 'identity' : common.join(', ')
}

function parseItem(text: string): Acceptable {
  const [, coding, weight = '1'] = item.exec(text.trim()) ?? []
  if (coding === undefined) throw invalidRequest(`Invalid accept-encoding: "${text}"`)
  return { coding: coding.toLowerCase(), weight: Number(weight) }
}
