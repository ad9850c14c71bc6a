/** What the pages have in common: messages, fields, forms that were sent. */
import type { RouteCall } from '../../http/endpoint.ts'
import { Refusal } from '../../http/errors.ts'
import { html, type Html } from '../../http/html.ts'
import { wireTime, type Millis } from '../../protocol/identifiers.ts'
import { messages } from './sign-in.ts'

export type PageCall = RouteCall<null>

const MAX_FORM_BYTES = 64 * 1024

export async function readForm({ body }: PageCall): Promise<URLSearchParams> {
  if (body.contentType !== 'application/x-www-form-urlencoded') throw new Refusal(415, 'InvalidRequest', 'This form was sent in a way that is not understood.')
  return new URLSearchParams(await body.text(MAX_FORM_BYTES))
}

export const seeOther = (location: string): Response => new Response(null, { status: 303, headers: { Location: location, 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' } })

export const pageRefusal = (message: string): Refusal => new Refusal(400, 'InvalidRequest', message)

export const errorNote = (message: string | null): Html | null => message === null ? null : html`<p class="note error" role="alert" id="fault">${message}</p>`

export const goodNote = (message: string | null): Html | null => message === null ? null : html`<p class="note good" role="status">${message}</p>`

interface Field {
  name: string
  label: string
  type?: 'text' | 'password' | 'email'
  value?: string
  autocomplete?: string
  hint?: string
  required?: boolean
  autofocus?: boolean
  invalid?: boolean
  /** Shown behind the value, as part of it. */
  affix?: string | null
  /** Names a rule of the stylesheet. */
  when?: string
}

export function field({ name, label, type = 'text', value = '', autocomplete = 'off', hint, required = false, autofocus = false, invalid = false, affix = null, when }: Field): Html {
  const input = html`<input id="${name}" name="${name}" type="${type}" value="${value}" autocomplete="${autocomplete}" autocapitalize="none" autocorrect="off" spellcheck="false"${required && html` required`}${autofocus && html` autofocus`}${invalid && html` aria-invalid="true"`}${(hint || invalid) && html` aria-describedby="${[invalid && 'fault', hint && `${name}-hint`].filter(Boolean).join(' ')}"`}>`
  return html`<div class="field${when && ` ${when}`}"><label for="${name}">${label}</label>${affix === null ? input : html`<div class="affix">${input}<span>${affix}</span></div>`}${hint && html`<small id="${name}-hint">${hint}</small>`}</div>`
}

export const identifierField = (options: Partial<Field> = {}): Html =>
  field({ name: 'identifier', label: 'Handle or email address', autocomplete: 'username', ...options })

export const passwordField = (options: Partial<Field> = {}): Html =>
  field({ name: 'password', label: 'Password', type: 'password', autocomplete: 'current-password', ...options })

/** What went wrong, in words for the person, when it is theirs to mend; null when all went well. */
export async function faultOf(work: () => Promise<unknown>): Promise<string | null> {
  try {
    await work()
    return null
  } catch (error) {
    if (error instanceof Refusal && error.status < 500 && error.status !== 429) return error.message
    throw error
  }
}

const days = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeZone: 'UTC' })

export const day = (instant: Millis): Html => html`<time datetime="${wireTime(instant)}">${days.format(instant)}</time>`

/** Whether a message says that what was typed is not right, and not that something is missing or must wait. */
export const isWrong = (message: string | null): boolean => message === messages.wrong
