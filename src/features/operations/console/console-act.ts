import type { Wording } from '../../../http/html.ts'

/** The text of a field, trimmed; empty if the form has no such field. */
export const textIn = (form: URLSearchParams, name: string): string => form.get(name)?.trim() ?? ''

/** What a form of the console does: it sends a request to an endpoint. */
export interface ConsoleAct {
  path(form: URLSearchParams): string
  /** The path of another endpoint, which supplies what the form leaves out. Null if nothing is left out. */
  lookUp?(form: URLSearchParams): string | null
  /** `found` is the response body of `lookUp`; undefined without one. */
  json(form: URLSearchParams, found: unknown): object
  /** Returns what is wrong with a form that the endpoint would take for something else; null if nothing is. */
  faultOf?(form: URLSearchParams): Wording | null
  /** The form has a field of its own for the reason, such as a note, which the endpoint refuses if it is empty. */
  hasOwnReason?: true
  /** Said once the act is done. */
  done: Wording
  /** Shows this member of the response, which the endpoint returns only once. */
  reveals?: { member: string; label: Wording }
}
