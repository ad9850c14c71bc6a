/**
 * A problem that only the operator can fix. Its message is a full sentence for that reader, printed without a stack
 * trace.
 */
export class OperatorError extends Error {}

/** A problem and its remedy. */
export interface Explained {
  what: string
  remedy: string
}

export const inWords = ({ what, remedy }: Explained, cause?: unknown): OperatorError =>
  new OperatorError(`${what}: ${remedy}`, { cause })

/** Returns the error itself if there is no explanation. */
export const inWordsIfAny = (found: Explained | null, error: unknown): unknown =>
  found === null ? error : inWords(found, error)
