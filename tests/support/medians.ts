/** Medians of measurements, and how far they can be relied on. */

const ordered = (values: readonly number[]): number[] => values.toSorted((a, b) => a - b)

export function medianOf(values: readonly number[]): number {
  const sorted = ordered(values)
  return (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2
}

/** In standard deviations of a normal distribution: what 19 of 20 measurements are within. */
const NINETEEN_OF_TWENTY = 1.96

/** Where the true median is, in 19 of 20 measurements, whatever the distribution: [least, most]. */
export function medianRange(values: readonly number[]): [number, number] {
  const sorted = ordered(values)
  const reach = (NINETEEN_OF_TWENTY / 2) * Math.sqrt(sorted.length)
  const at = (place: number) => sorted[Math.min(sorted.length - 1, Math.max(0, Math.round(place)))]!
  return [at(sorted.length / 2 - reach), at(sorted.length / 2 + reach)]
}
