/** The parts that pages share: messages, fields, and reading submitted forms. */
import type { RouteCall } from '../../../http/endpoint.ts'
import { Refusal } from '../../../http/errors.ts'
import { html, type Html, type Value, type Wording } from '../../../http/html.ts'
import { dayPhrase } from '../../../http/texts.ts'
import { wireTime, type Millis } from '../../../protocol/identifiers.ts'
import { MIN_PASSWORD_CHARS } from '../../identity/passwords/passwords.ts'
import type { Fault } from './faults.ts'
import { fieldTexts } from './field-texts.ts'

export type PageCall = RouteCall<null>

/** Field of the second step of a sign-in: the id of the first step. */
export const PENDING_ID = 'factor_step'

const MAX_FORM_BYTES = 64 * 1024

export async function readForm({ body }: PageCall): Promise<URLSearchParams> {
  if (body.contentType !== 'application/x-www-form-urlencoded')
    throw new Refusal(415, 'InvalidRequest', 'This form was sent in an unsupported format.')
  return new URLSearchParams(await body.text(MAX_FORM_BYTES))
}

export const seeOther = (location: string): Response =>
  new Response(null, {
    status: 303,
    headers: { Location: location, 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' },
  })

export const pageRefusal = (message: string): Refusal => new Refusal(400, 'InvalidRequest', message)

/**
 * At most one per page, because fields refer to its id. If no field is at fault, the note itself is focused: screen
 * readers do not announce an alert that a page already has when it is loaded.
 */
export const errorNote = (fault: { message: Value; field?: string | null } | null): Html | null =>
  fault &&
  html`<p class="note error" role="alert" id="fault"${fault.field === null && html` tabindex="-1"`}${fault.field === null && html` autofocus`}>${fault.message}</p>`

export const goodNote = (message: Html | Wording | null): Html | null =>
  message === null ? null : html`<p class="note good" role="status">${message}</p>`

export interface Field {
  name: string
  label: Wording
  /** An id that is unique in the page; `name` if omitted. */
  id?: string
  type?: 'text' | 'password' | 'email' | 'date'
  value?: string
  autocomplete?: string
  hint?: Wording
  required?: boolean
  autofocus?: boolean
  maxLength?: number
  /**
   * A pattern of digits that the input must match, and the message of the browser if it does not. Phones show a
   * keyboard of digits.
   */
  digits?: { pattern: string; says: Wording }
  /** If the fault names this field, the field is marked, described and focused. */
  fault?: Fault | null
  /** What is part of the value after the input, with the id `<id>-affix`. */
  affix?: Html | null
  /** A class of the stylesheet that decides when the field is shown. */
  when?: string
}

export function field({
  name,
  label,
  id = name,
  type = 'text',
  value = '',
  autocomplete = 'off',
  hint,
  required = false,
  autofocus = false,
  maxLength,
  digits,
  fault = null,
  affix = null,
  when,
}: Field): Html {
  const isWrong = fault?.field === name
  const described = [isWrong && 'fault', affix !== null && `${id}-affix`, hint && `${id}-hint`]
    .filter(Boolean)
    .join(' ')
  const input = html`<input
    id="${id}" name="${name}" type="${type}" value="${value}" autocomplete="${autocomplete}"
    autocapitalize="none" autocorrect="off" spellcheck="false"
    ${required && html`required`} ${(autofocus || isWrong) && html`autofocus`} ${maxLength && html`maxlength="${maxLength}"`}
    ${digits && html`inputmode="numeric" pattern="${digits.pattern}" title="${digits.says}"`}
    ${isWrong && html`aria-invalid="true"`} ${described && html`aria-describedby="${described}"`}>`
  return html`
<div class="field${when && ` ${when}`}">
  <label for="${id}">${label}</label>
  ${affix === null ? input : html`<div class="affix">${input}${affix}</div>`}
  ${hint && html`<small id="${id}-hint">${hint}</small>`}
</div>`
}

export interface FileField {
  label: Wording
  /** Which files the browser offers: the `accept` attribute. */
  accept: string
  hint: Wording
  fault?: Fault | null
}

/** The file field of a form, which must be its last field. */
export function fileField({ label, accept, hint, fault = null }: FileField): Html {
  const isWrong = fault?.field === 'file'
  return html`
<div class="field">
  <label for="file">${label}</label>
  <input id="file" name="file" type="file" accept="${accept}" required${isWrong && html` aria-invalid="true"`}${isWrong && html` autofocus`} aria-describedby="${isWrong && 'fault '}file-hint">
  <small id="file-hint">${hint}</small>
</div>`
}

export const identifierField = (options: Partial<Field> = {}): Html =>
  field({ name: 'identifier', label: fieldTexts.identifier, autocomplete: 'username', ...options })

export const passwordField = (options: Partial<Field> = {}): Html =>
  field({
    name: 'password',
    label: fieldTexts.password,
    type: 'password',
    autocomplete: 'current-password',
    ...options,
  })

export const newPasswordField = (options: Partial<Field> = {}): Html =>
  passwordField({
    label: fieldTexts.newPassword,
    autocomplete: 'new-password',
    required: true,
    hint: fieldTexts.newPasswordHint({ chars: MIN_PASSWORD_CHARS }),
    ...options,
  })

export const codeField = (options: Partial<Field> = {}): Html =>
  field({ name: 'code', label: fieldTexts.code, autocomplete: 'one-time-code', required: true, ...options })

/**
 * A box that keeps the person signed in. On a page whose question needs the space, `when` says when the box is shown,
 * and it has no explanation.
 */
export const rememberField = (isTicked = false, when = ''): Html => html`
<label class="check ${when}">
  <input type="checkbox" name="remember" value="yes"${isTicked && html` checked`}>
  <span>${fieldTexts.remember}${when === '' && html`<small>${fieldTexts.rememberHint}</small>`}</span>
</label>`

export const hidden = (fields: Record<string, string>): Html[] =>
  Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)

/** How pages name an account: `@alice.example.com`, or its DID if it has no handle. */
export const accountName = ({ handle, did }: { handle: string | null; did: string }): string =>
  handle === null ? did : `@${handle}`

export const day = (instant: Millis): Html =>
  html`<time class="whole" datetime="${wireTime(instant)}">${dayPhrase(instant)}</time>`
