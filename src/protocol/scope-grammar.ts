/**
 * The grammar of atproto "Permissions", as `@atproto/oauth-scopes` implements it. It is loaded with the first scope
 * that is read: the library brings schemas along, which a server without apps and agents never needs.
 */
import { madeOnce } from '../base/made-once.ts'

export const scopeGrammar = madeOnce(() => require('@atproto/oauth-scopes') as typeof import('@atproto/oauth-scopes'))
