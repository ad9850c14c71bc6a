/**
 * Signatures of requests for permissioned data, with the key that a credential is bound to. They cover the token and,
 * in a request with a credential, the DID whose data is requested; they cover neither method, URL nor time.
 *
 * A small part of RFC 9421: one label, two lists of components, P-256. The label's member in `Signature-Input` must be
 * in its serialised form, so that the received text is the signed text. Other labels are skipped.
 *
 * Source: atproto proposal 0016, as changed in October 2026; RFC 9421, 2.5 and 3.2; RFC 8941, 3.2 (dictionaries).
 */
import { unpaddedBase64 } from './base64url.ts'
import { parseDid, type Did } from './identifiers.ts'
import { parseDidKey } from './keys.ts'
import { SPACE_AUDIENCE_HEADER, SPACE_SCHEME } from './space-wire.ts'

/** Values of header fields; repeated fields are joined by commas. Null: absent. */
export interface SignedFields {
  authorization: string | null
  /** `Atproto-Space-Audience`. */
  audience: string | null
  signatureInput: string | null
  signature: string | null
}

/** A request whose signature has not been verified. */
export interface SpaceRequest {
  /** The delegation in an exchange; the credential in any later request. */
  token: string
  /** The key that the signature names. */
  keyId: string | null
  /** The signed bytes. */
  base: Uint8Array
  signature: Uint8Array
}

export type SignatureOutcome<Request> =
  { ok: true; request: Request } | { ok: false; fault: 'MissingJwt' | 'BadSpaceAudience' | 'BadSpaceSignature' }

const LABEL = 'atproto-space'
const ALGORITHM = 'ecdsa-p256-sha256'
const SIGNATURE_BYTES = 64
/** Longest value of each field. */
const MAX_FIELD_CHARS = 8192

const refuse = (fault: 'MissingJwt' | 'BadSpaceAudience' | 'BadSpaceSignature') => ({ ok: false, fault }) as const

/** Reads the request that exchanges a delegation for a credential, which will be bound to the key that it names. */
export function readSpaceExchange(fields: SignedFields): SignatureOutcome<SpaceRequest & { keyId: string }> {
  const authorization = tokenField(fields.authorization, 'Bearer')
  if (authorization === null) return refuse('MissingJwt')
  const request = readSigned(fields, authorization.token, [['authorization', authorization.text]])
  return request?.keyId == null
    ? refuse('BadSpaceSignature')
    : { ok: true, request: { ...request, keyId: request.keyId } }
}

/** Reads a request with a credential. `audience` is the DID of the account or authority whose data is asked for. */
export function readSpaceUse(fields: SignedFields): SignatureOutcome<SpaceRequest & { audience: Did }> {
  const authorization = tokenField(fields.authorization, SPACE_SCHEME)
  if (authorization === null) return refuse('MissingJwt')
  const audience = parseDid(fields.audience?.trim() ?? '')
  if (audience === null) return refuse('BadSpaceAudience')
  const request = readSigned(fields, authorization.token, [
    ['authorization', authorization.text],
    [SPACE_AUDIENCE_HEADER, audience],
  ])
  return request === null ? refuse('BadSpaceSignature') : { ok: true, request: { ...request, audience } }
}

/**
 * Whether `holder`, a did:key of P-256, signed the request. If the signature names a key, it must be that one. The `s`
 * of the signature may be high.
 */
export function verifySpaceRequest({ keyId, base, signature }: SpaceRequest, holder: string): boolean {
  if (keyId !== null && keyId !== holder) return false
  const key = parseDidKey(holder)
  return key?.curve === 'p256' && key.verify(base, signature, { allowHighS: true })
}

const tokenPattern = /^([A-Za-z-]+) +([A-Za-z0-9._-]+)$/

/**
 * The field's value as it is signed, and its token. Null if there are several tokens, or if the scheme is another one.
 */
function tokenField(value: string | null, scheme: string): { text: string; token: string } | null {
  const text = value?.trim() ?? ''
  const [, given, token] = (text.length <= MAX_FIELD_CHARS && tokenPattern.exec(text)) || []
  return given?.toLowerCase() === scheme.toLowerCase() ? { text, token: token! } : null
}

function readSigned(
  fields: SignedFields,
  token: string,
  components: readonly (readonly [name: string, value: string])[],
): SpaceRequest | null {
  const input = ownMember(fields.signatureInput)
  const signature = signatureBytes(ownMember(fields.signature))
  const covered = `(${components.map(([name]) => `"${name}"`).join(' ')})`
  if (signature === null || !input?.startsWith(covered)) return null
  const parameters = parametersOf(input.slice(covered.length))
  if (parameters === null || (parameters.get('alg') ?? ALGORITHM) !== ALGORITHM) return null
  const lines = [...components, ['@signature-params', input] as const].map(([name, value]) => `"${name}": ${value}`)
  return { token, keyId: parameters.get('keyid') ?? null, base: Buffer.from(lines.join('\n')), signature }
}

/** Returns the value of the member with our label, as it was sent. Null if there are none or several. */
function ownMember(field: string | null): string | null {
  if (field === null || field.length > MAX_FIELD_CHARS) return null
  let own: string | null = null
  for (const member of membersOf(field)) {
    const [name] = /^[a-z*][a-z0-9_.*-]*/.exec(member) ?? []
    if (name !== LABEL) continue
    if (own !== null || member[LABEL.length] !== '=') return null
    own = member.slice(LABEL.length + 1)
  }
  return own
}

/** The members of a dictionary: the parts between commas, except for commas in quotes. */
function membersOf(field: string): string[] {
  const members: string[] = []
  let isQuoted = false
  let start = 0
  for (let i = 0; i < field.length; i++) {
    const character = field[i]
    if (isQuoted && character === '\\') i++
    else if (character === '"') isQuoted = !isQuoted
    else if (character === ',' && !isQuoted) {
      members.push(field.slice(start, i).trim())
      start = i + 1
    }
  }
  return [...members, field.slice(start).trim()]
}

/** A parameter: a name, and unless it is true, a string, an integer, a token or false. RFC 8941, 4.1. */
const parameterPattern =
  /;([a-z*][a-z0-9_.*-]*)(?:=("(?:[ !#-[\]-~]|\\["\\])*"|-?[1-9][0-9]{0,14}|0|\?0|[A-Za-z*][A-Za-z0-9!#$%&'*+.^_`|~:/-]*))?/y

/** The parameters that have a meaning here, which are strings; null if the text is not a list of parameters. */
function parametersOf(text: string): Map<'keyid' | 'alg', string> | null {
  const known = new Map<'keyid' | 'alg', string>()
  const names = new Set<string>()
  parameterPattern.lastIndex = 0
  while (parameterPattern.lastIndex < text.length) {
    const [, name, value] = parameterPattern.exec(text) ?? []
    if (name === undefined || names.size === names.add(name).size) return null
    if (name !== 'keyid' && name !== 'alg') continue
    if (!value?.startsWith('"')) return null
    known.set(name, value.slice(1, -1))
  }
  return known
}

/** A sequence of bytes in base64, padded or not. */
const bytesPattern = /^:([A-Za-z0-9+/]+)(?:==)?:$/

function signatureBytes(value: string | null): Uint8Array | null {
  const [, text] = bytesPattern.exec(value ?? '') ?? []
  const bytes = Buffer.from(text ?? '', 'base64')
  return bytes.length === SIGNATURE_BYTES && unpaddedBase64(bytes) === text ? new Uint8Array(bytes) : null
}
