/**
 * Tokens of permissioned data. In a delegation, a user's server lets an app ask the host of a space for access. In a
 * credential, the authority of the space grants this access to the holder of a key. In an attestation, an app proves
 * which client it is.
 *
 * `read…` checks all but the signature, so that the caller can find out the key that the token names; nothing in a
 * token counts before `verifySpaceToken`. The caller remembers the `jti` of a token that may be used only once.
 *
 * Source: atproto proposal 0016, "Access"; RFC 7519; the faults are the error names of the methods.
 */
import { base64url } from './base64url.ts'
import { parseDid, type Did, type Millis } from './identifiers.ts'
import { decodeJws, signJws, verifyJws, type Jws } from './jws.ts'
import { formatDidKey, parseDidKey, type K256, type PublicKey, type SigningKey } from './keys.ts'
import { SIGNING_KEY_NAME } from './plc.ts'
import { parseSpaceUri, type SpaceAddress } from './space-address.ts'
import { SPACE_HOST_NAME, SPACE_KEY_NAME } from './space-wire.ts'

export type SpaceTokenFault =
  | 'BadJwt'
  | 'BadJwtType'
  | 'BadJwtIss'
  | 'BadJwtSub'
  | 'BadJwtAudience'
  | 'BadJwtCnf'
  | 'BadJwtSignature'
  | 'JwtExpired'

interface TokenKind {
  typ: string
  /** Lifetime of tokens that this server makes, and the longest lifetime that it accepts. */
  ttlSecs: number
  maxTtlSecs: number
}

const spaceTokenKinds = {
  delegation: { typ: 'atproto-space-delegation+jwt', ttlSecs: 60, maxTtlSecs: 300 },
  credential: { typ: 'atproto-space-credential+jwt', ttlSecs: 600, maxTtlSecs: 3600 },
  attestation: { typ: 'atproto-client-attestation+jwt', ttlSecs: 60, maxTtlSecs: 300 },
} as const satisfies Record<string, TokenKind>

/** Tolerated difference between the clocks of issuer and server. */
const SKEW_SECS = 5
const MAX_TOKEN_CHARS = 8192
const jtiPattern = /^[ -~]{1,128}$/

/** A token whose signature has not been verified. */
interface Unverified {
  jws: Jws
  jti: string
  /** The first second in which the token has expired, before the tolerance is added. */
  exp: number
}

export interface SpaceDelegation extends Unverified {
  /** The user, whose key with the name `atproto` must have signed. */
  iss: Did
  space: SpaceAddress
}

export interface SpaceCredential extends Unverified {
  /** Its authority is the issuer of the credential. */
  space: SpaceAddress
  /** The name of the authority's key that must have signed. */
  keyName: typeof SIGNING_KEY_NAME | typeof SPACE_KEY_NAME
  /** The key that signs the requests with this credential, a did:key of P-256. */
  holder: Did
}

export interface ClientAttestation extends Unverified {
  /** The `client_id`. */
  client: string
  /** Names the key in the set of the client. */
  keyId: string
}

export type SpaceTokenOutcome<Token> = { ok: true; token: Token } | { ok: false; fault: SpaceTokenFault }

const refused = (fault: SpaceTokenFault) => ({ ok: false, fault }) as const

/** The audience of delegations and attestations: the host of the authority's spaces. */
export const spaceHostAudience = (authority: Did): string => `${authority}#${SPACE_HOST_NAME}`

// Making

interface TokenTerms {
  now: Millis
  /** Random, 16 bytes in hex. */
  jti: string
}

/** `key` is the signing key of the account. */
export const formatDelegation = (key: SigningKey, iss: Did, space: SpaceAddress, terms: TokenTerms): string =>
  formatToken(key, 'delegation', SIGNING_KEY_NAME, terms, {
    iss,
    sub: space.uri,
    aud: spaceHostAudience(space.authority),
  })

/** `key` is the authority's, published with `keyName`; `holder` is a did:key of P-256. */
export const formatSpaceCredential = (
  key: SigningKey,
  keyName: SpaceCredential['keyName'],
  space: SpaceAddress,
  holder: Did,
  terms: TokenTerms,
): string =>
  formatToken(key, 'credential', keyName, terms, { iss: space.authority, sub: space.uri, cnf: { kid: holder } })

function formatToken(
  key: SigningKey,
  kind: keyof typeof spaceTokenKinds,
  keyName: string,
  { now, jti }: TokenTerms,
  claims: object,
): string {
  const { typ, ttlSecs } = spaceTokenKinds[kind]
  const iat = Math.floor(now / 1000)
  return signJws(key, { typ, kid: `#${keyName}` }, { ...claims, iat, exp: iat + ttlSecs, jti })
}

// Reading

/** Reads a delegation for one of the spaces of the authority that it names. */
export function readDelegation(text: string, now: Millis): SpaceTokenOutcome<SpaceDelegation> {
  const read = readToken(text, 'delegation', now)
  if (!read.ok) return read
  const { header, payload } = read.token.jws
  if (header.kid !== `#${SIGNING_KEY_NAME}` || Object.hasOwn(payload, 'lxm')) return refused('BadJwt')
  const iss = didOf(payload.iss)
  if (iss === null) return refused('BadJwtIss')
  const space = spaceOf(payload.sub)
  if (space === null) return refused('BadJwtSub')
  if (payload.aud !== spaceHostAudience(space.authority)) return refused('BadJwtAudience')
  return { ok: true, token: { ...read.token, iss, space } }
}

const credentialKeys = new Map<unknown, SpaceCredential['keyName']>([
  [`#${SIGNING_KEY_NAME}`, SIGNING_KEY_NAME],
  [`#${SPACE_KEY_NAME}`, SPACE_KEY_NAME],
])

/** Reads a credential. Its issuer is the authority of its space: no other may grant access to it. */
export function readSpaceCredential(text: string, now: Millis): SpaceTokenOutcome<SpaceCredential> {
  const read = readToken(text, 'credential', now)
  if (!read.ok) return read
  const { header, payload } = read.token.jws
  const keyName = credentialKeys.get(header.kid)
  if (keyName === undefined) return refused('BadJwt')
  const space = spaceOf(payload.sub)
  if (space === null) return refused('BadJwtSub')
  if (payload.iss !== space.authority) return refused('BadJwtIss')
  if (Object.hasOwn(payload, 'aud')) return refused('BadJwtAudience')
  const holder = holderOf(payload.cnf)
  return holder === null ? refused('BadJwtCnf') : { ok: true, token: { ...read.token, space, keyName, holder } }
}

const MAX_NAME_CHARS = 2048

/** Reads the attestation of a client for the host of an authority. */
export function readClientAttestation(text: string, authority: Did, now: Millis): SpaceTokenOutcome<ClientAttestation> {
  const read = readToken(text, 'attestation', now)
  if (!read.ok) return read
  const { header, payload } = read.token.jws
  if (!isName(header.kid)) return refused('BadJwt')
  if (!isName(payload.iss)) return refused('BadJwtIss')
  if (payload.sub !== payload.iss) return refused('BadJwtSub')
  if (payload.aud !== spaceHostAudience(authority)) return refused('BadJwtAudience')
  return { ok: true, token: { ...read.token, client: payload.iss, keyId: header.kid } }
}

const isName = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && value.length <= MAX_NAME_CHARS

/** Whether the key, which the token names, signed it. A signature with a high `s` is refused. */
export const verifySpaceToken = ({ jws }: Pick<Unverified, 'jws'>, key: PublicKey, k256?: K256): boolean =>
  verifyJws(jws, key, k256, { allowHighS: false })

function readToken(text: string, kind: keyof typeof spaceTokenKinds, now: Millis): SpaceTokenOutcome<Unverified> {
  const jws = text.length <= MAX_TOKEN_CHARS ? decodeJws(text) : null
  if (jws === null || Object.hasOwn(jws.header, 'crit')) return refused('BadJwt')
  const { typ, maxTtlSecs } = spaceTokenKinds[kind]
  if (jws.header.typ !== typ) return refused('BadJwtType')
  const { iat, exp, jti } = jws.payload
  if (!isSecs(iat) || !isSecs(exp) || typeof jti !== 'string' || !jtiPattern.test(jti)) return refused('BadJwt')
  const nowSecs = Math.floor(now / 1000)
  if (exp <= iat || exp - iat > maxTtlSecs || iat > nowSecs + SKEW_SECS) return refused('BadJwt')
  if (exp <= nowSecs - SKEW_SECS) return refused('JwtExpired')
  // Decoding ignores stray trailing bits of the signature, so without this check several texts would be valid as one
  // token.
  if (!text.endsWith(`.${base64url(jws.signature)}`)) return refused('BadJwtSignature')
  return { ok: true, token: { jws, jti, exp } }
}

const isSecs = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0

const didOf = (value: unknown): Did | null => (typeof value === 'string' ? parseDid(value) : null)
const spaceOf = (value: unknown): SpaceAddress | null => (typeof value === 'string' ? parseSpaceUri(value) : null)

function holderOf(cnf: unknown): Did | null {
  const kid: unknown = typeof cnf === 'object' && cnf !== null ? (cnf as { kid?: unknown }).kid : null
  const key = typeof kid === 'string' ? parseDidKey(kid) : null
  return key?.curve === 'p256' ? formatDidKey(key) : null
}
