/**
 * Names of permissioned data on the wire: spaces, to which few people have access, and the repositories in them.
 *
 * Source: atproto proposal 0016, with the changes announced until October 2026.
 */

/** The form of tokens, signatures and methods that this version speaks. It is a draft, and has changed before. */
export const SPACE_WIRE = 'october-2026'

/** The first segment of the path of a space's URI. It has no dot, so it is never a collection. */
export const SPACE_SEGMENT = 'space'

/**
 * Names of the key and the service for spaces in a DID document. If one is absent, the account's own key or server
 * takes its place.
 */
export const SPACE_KEY_NAME = 'atproto_space'
export const SPACE_HOST_NAME = 'atproto_space_host'

/** Scheme of the `Authorization` header, and the header that names the DID whose data is asked for. */
export const SPACE_SCHEME = 'Atproto-Space'
export const SPACE_AUDIENCE_HEADER = 'atproto-space-audience'
