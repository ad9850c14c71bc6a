/**
 * The grammar of atproto "Permissions", as `@atproto/oauth-scopes` implements it. It is loaded with the first scope
 * that is read: the library brings schemas along, which a server without apps and agents never needs.
 */
type Grammar = typeof import('@atproto/oauth-scopes')

let loaded: Grammar | null = null

export const scopeGrammar = (): Grammar => (loaded ??= require('@atproto/oauth-scopes') as Grammar)
