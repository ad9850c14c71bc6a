import type { Wording } from '../../../http/html.ts'

/** What a form of the console does: it asks an endpoint. */
export interface ConsoleAct {
  path(form: URLSearchParams): string
  /** Reads, from another endpoint, what the form leaves out. Null if it has everything. */
  lookUp?(form: URLSearchParams): string | null
  /** `found` is the body of the answer to `lookUp`; undefined without one. */
  json(form: URLSearchParams, found: unknown): object
  /** What is wrong with the form, if the endpoint would take it for something else; null if nothing is. */
  faultOf?(form: URLSearchParams): Wording | null
  /** The form has a field of its own that says why, such as a note, which the endpoint refuses if it is empty. */
  hasOwnReason?: true
  /** Said once it is done. */
  done: Wording
  /** Shows this member of the answer, which is told only once. */
  reveals?: { member: string; label: Wording }
}
