/** Returns the first entries that have at most `maxBytes` together, and at least one. */
export function withinBytes<Entry extends { bytes: number }>(
  entries: readonly Entry[],
  maxBytes: number,
): readonly Entry[] {
  let bytes = 0
  const first = entries.findIndex((entry, i) => (bytes += entry.bytes) > maxBytes && i > 0)
  return first < 0 ? entries : entries.slice(0, first)
}
