/** Parses the range of a request. Source: RFC 9110, sections 13.1.5 and 14. */

export interface ByteRange {
  /** Both ends are inclusive. */
  first: number
  last: number
}

/**
 * Returns null if the whole body must be sent: without a range, and for multiple ranges, other units and invalid
 * ranges.
 */
export function byteRangeOf(
  headers: Headers,
  { size, etag }: { size: number; etag: string },
): ByteRange | 'unsatisfiable' | null {
  const ifRange = headers.get('if-range')
  if (ifRange !== null && ifRange !== etag) return null
  const match = /^bytes=(\d{1,15})?-(\d{1,15})?$/.exec(headers.get('range') ?? '')
  if (!match || (match[1] === undefined && match[2] === undefined)) return null
  const [, from, to] = match
  const first = from === undefined ? Math.max(0, size - Number(to)) : Number(from)
  const last = from === undefined || to === undefined ? size - 1 : Math.min(Number(to), size - 1)
  if (from !== undefined && to !== undefined && Number(to) < first) return null
  return first > last ? 'unsatisfiable' : { first, last }
}
