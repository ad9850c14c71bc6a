/** Something only the operator can put right. Its message is a whole sentence for that reader, and no stack is shown. */
export class OperatorError extends Error {}

/** What is wrong, and what puts it right. */
export interface Explained {
  what: string
  remedy: string
}

export const inWords = ({ what, remedy }: Explained, cause?: unknown): OperatorError => new OperatorError(`${what}: ${remedy}`, { cause })
