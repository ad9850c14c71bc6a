const MAX_EDITS = 2

/**
 * Returns the candidate closest to a misspelt name, at most two edits away; null if there is none. Called once, for the
 * hint in an error message, so the plain algorithm will do.
 */
export function nearest(name: string, candidates: readonly string[]): string | null {
  const [best] = candidates
    .map((candidate) => ({ candidate, edits: editDistance(name, candidate) }))
    .filter(({ edits }) => edits <= MAX_EDITS)
    .toSorted((one, other) => one.edits - other.edits)
  return best?.candidate ?? null
}

/** Levenshtein distance: insertions, deletions and substitutions. */
function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (const [row, letter] of [...from].entries()) {
    const current = [row + 1]
    for (const [column, other] of [...to].entries()) {
      const substituted = (previous[column] ?? 0) + (letter === other ? 0 : 1)
      current.push(Math.min(substituted, (previous[column + 1] ?? 0) + 1, (current[column] ?? 0) + 1))
    }
    previous = current
  }
  return previous[to.length] ?? 0
}
