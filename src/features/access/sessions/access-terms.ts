/**
 * The terms on which an app password, or a delegate, has access to an account: scopes, and an end. Both are given in
 * the same form.
 */
import { Type, type Static } from '@sinclair/typebox'
import { invalidRequest } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import { appPasswordScope, scopePresets } from '../../../protocol/app-password-scopes.ts'
import { parseDatetime, type Millis } from '../../../protocol/identifiers.ts'

export interface AccessTerms {
  /** Scopes separated by spaces; empty for what apps usually need, without direct messages. */
  scope: string
  /** Names of presets whose scopes are added. */
  presets: readonly string[]
  /** Null for access that does not end. */
  expiresAt: Millis | null
}

/** The members of a body that has terms. */
export const termMembers = {
  scope: Type.Optional(Type.String()),
  presets: Type.Optional(Type.Array(Type.String(), { maxItems: Object.keys(scopePresets).length })),
  expiresAt: Type.Optional(Type.String()),
}
const body = Type.Object(termMembers)

/** Throws `InvalidRequest` if the end is no datetime. */
export function termsIn({ scope = '', presets = [], expiresAt }: Static<typeof body>): AccessTerms {
  const end = expiresAt === undefined ? null : parseDatetime(expiresAt)
  if (expiresAt !== undefined && end === null)
    throw invalidRequest('expiresAt must be a datetime, such as 2030-01-31T12:00:00.000Z')
  return { scope, presets, expiresAt: end }
}

/**
 * Returns the scopes of the terms, with those of the presets. Throws `InvalidRequest` if one is unknown, or reserved
 * for the account itself, or if the end has passed.
 */
export function scopeOfTerms({ clock }: Pick<Context, 'clock'>, terms: AccessTerms): string {
  const parsed = appPasswordScope(terms)
  if (!parsed.ok) throw invalidRequest(parsed.message)
  if (terms.expiresAt !== null && terms.expiresAt <= clock.now())
    throw invalidRequest('expiresAt must be in the future')
  return parsed.scope
}
