import type { Wording } from '../../../http/html.ts'

/** What a form of the console does: it asks an endpoint. */
export interface ConsoleAct {
  path(form: URLSearchParams): string
  json(form: URLSearchParams): object
  /** The form has a field of its own that says why, such as a note, which the endpoint refuses if it is empty. */
  hasOwnReason?: true
  /** Said once it is done. */
  done: Wording
  /** Shows this member of the answer, which is told only once. */
  reveals?: { member: string; label: Wording }
}
