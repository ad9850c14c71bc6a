/** Which content codings to ask another service for, when its answer may have to be read here as well. */
import { invalidRequest, Refusal } from '../../http/errors.ts'
import { isReadableCoding } from './upstream-reply.ts'

interface Acceptable {
  coding: string
  weight: number
}

/** One coding with a weight of 0 or 0.001 to 1. RFC 9110, 12.5.3. */
const item = /^([!#$%&'*+\-.^_`|~0-9a-z]+)\s*(?:;\s*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?))?$/i

/**
 * The header to send for the client's own: codings that it takes and that we can undo. Without any in common the body
 * is asked for as it is, unless the client will not have that.
 */
export function acceptableCodings(acceptEncoding: string | null): string {
  const wanted = acceptEncoding === null || acceptEncoding === '' ? [] : acceptEncoding.split(',').map(parseItem)
  const weightOf = (coding: string) => (wanted.find((one) => one.coding === coding) ?? wanted.find((one) => one.coding === '*'))?.weight
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
