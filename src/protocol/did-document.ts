/**
 * DID documents: parses them, finds what atproto needs in them, and renders them from PLC state.
 *
 * Unknown members are kept, because a document is passed on unchanged.
 *
 * Source: W3C DID Core; atproto "DID".
 */
import { withoutTrailingSlashes } from '../base/trailing.ts'
import { hasMembers } from '../base/members.ts'
import { parseDid, parseHandle, type Did, type Handle } from './identifiers.ts'
import { formatDidKey, parseBareMultibase, parseMultikey, type Curve } from './keys.ts'
import { PDS_SERVICE_NAME, SIGNING_KEY_NAME, type PlcState } from './plc.ts'
import { SPACE_HOST_NAME, SPACE_KEY_NAME } from './space-wire.ts'

export interface VerificationMethod {
  id: string
  type: string
  controller: string
  publicKeyMultibase?: string
}
export interface Service {
  id: string
  type: string
  serviceEndpoint: string | object
}
export interface DidDocument {
  id: Did
  alsoKnownAs?: string[]
  verificationMethod?: VerificationMethod[]
  service?: Service[]
  [member: string]: unknown
}

const isListOf = (value: unknown, holds: (item: unknown) => boolean) =>
  value === undefined || (Array.isArray(value) && value.every(holds))

/** Parses JSON as the document of `did`; null if it is not. */
export function parseDidDocument(value: unknown, did: Did): DidDocument | null {
  if (!hasMembers(value) || value['id'] !== did) return null
  const isAlias = (item: unknown) => typeof item === 'string'
  const isMethod = (item: unknown) =>
    hasMembers(item) &&
    ['id', 'type', 'controller'].every((name) => typeof item[name] === 'string') &&
    ['undefined', 'string'].includes(typeof item['publicKeyMultibase'])
  const isService = (item: unknown) =>
    hasMembers(item) &&
    typeof item['id'] === 'string' &&
    typeof item['type'] === 'string' &&
    ['string', 'object'].includes(typeof item['serviceEndpoint'])
  const fits =
    isListOf(value['alsoKnownAs'], isAlias) &&
    isListOf(value['verificationMethod'], isMethod) &&
    isListOf(value['service'], isService)
  return fits ? (value as DidDocument) : null
}

/** Ids may be written in full or as a bare fragment. */
const hasId = (document: DidDocument, id: string, name: string) => id === `#${name}` || id === `${document.id}#${name}`

/** The first verification method with this name, as a did:key; null if there is none on a supported curve. */
export function verificationKey(document: DidDocument, name: string): string | null {
  const method = document.verificationMethod?.find(({ id }) => hasId(document, id, name))
  return method ? methodKey(method) : null
}

/** Key types from before Multikey. The key is the point alone, compressed or not; the type names its curve. */
const bareKeyCurves: Record<string, Curve> = {
  EcdsaSecp256r1VerificationKey2019: 'p256',
  EcdsaSecp256k1VerificationKey2019: 'k256',
}

function methodKey({ type, publicKeyMultibase }: VerificationMethod): string | null {
  if (!publicKeyMultibase) return null
  const curve = bareKeyCurves[type]
  const key = curve
    ? parseBareMultibase(curve, publicKeyMultibase)
    : type === 'Multikey'
      ? parseMultikey(publicKeyMultibase)
      : null
  return key && formatDidKey(key)
}

/** The names of keys and services for permissioned data that `before` has and `after` lacks. */
export const droppedSpaceNames = (before: DidDocument, after: DidDocument): string[] => {
  const named = (document: DidDocument) => [
    ...(document.verificationMethod?.some(({ id }) => hasId(document, id, SPACE_KEY_NAME)) ? [SPACE_KEY_NAME] : []),
    ...(document.service?.some(({ id }) => hasId(document, id, SPACE_HOST_NAME)) ? [SPACE_HOST_NAME] : []),
  ]
  const kept = new Set(named(after))
  return named(before).filter((name) => !kept.has(name))
}

/** The key that signs the repository, as a did:key. */
export const publishedSigningKey = (document: DidDocument): string | null => verificationKey(document, SIGNING_KEY_NAME)

/** Documents are untrusted, with texts of any length. Names and keys have shorter limits where they are parsed. */
const MAX_ENDPOINT_CHARS = 2048

/**
 * The http(s) endpoint of the service with this fragment, and with this type if one is given, without slashes at its
 * end; null if there is none, or if it is longer than `MAX_ENDPOINT_CHARS`.
 */
export function serviceEndpoint(document: DidDocument, name: string, type?: string): string | null {
  const service = document.service?.find(({ id }) => hasId(document, id, name))
  if (!service || (type !== undefined && service.type !== type) || typeof service.serviceEndpoint !== 'string')
    return null
  const endpoint = service.serviceEndpoint
  const isUsable = endpoint.length <= MAX_ENDPOINT_CHARS && /^https?:\/\//.test(endpoint) && URL.canParse(endpoint)
  return isUsable ? withoutTrailingSlashes(endpoint) : null
}

export const pdsEndpoint = (document: DidDocument): string | null =>
  serviceEndpoint(document, PDS_SERVICE_NAME, 'AtprotoPersonalDataServer')

/** The handle that the document claims; null if none. It is only valid if the handle resolves to the DID. */
export function claimedHandle({ alsoKnownAs }: Pick<DidDocument, 'alsoKnownAs'>): Handle | null {
  const name = alsoKnownAs?.find((alias) => alias.startsWith('at://'))
  return name === undefined ? null : parseHandle(name.slice('at://'.length))
}

/** The names of a document, with these handles in place of its own. Its other names follow. */
export const withHandles = (
  { alsoKnownAs = [] }: Pick<DidDocument, 'alsoKnownAs'>,
  handles: readonly Handle[],
): string[] => [
  ...handles.map((handle) => `at://${handle}`),
  ...alsoKnownAs.filter((name) => !name.startsWith('at://')),
]

/** The entry for a key, a did:key, among the verification methods of a document. */
export const multikeyMethod = (did: string, name: string, key: string) => ({
  id: `${did}#${name}`,
  type: 'Multikey',
  controller: did,
  publicKeyMultibase: key.slice('did:key:'.length),
})

/** Renders the document of a PLC identity: the atproto key and service first, others by name. */
export function renderDidDocument(did: Did, state: PlcState): DidDocument {
  return {
    '@context': ['https://www.w3.org/ns/did/v1'],
    id: did,
    alsoKnownAs: state.alsoKnownAs,
    verificationMethod: ordered(state.verificationMethods, SIGNING_KEY_NAME).map(([name, key]) =>
      multikeyMethod(did, name, key),
    ),
    service: ordered(state.services, PDS_SERVICE_NAME).map(([name, { type, endpoint }]) => ({
      id: `#${name}`,
      type,
      serviceEndpoint: endpoint,
    })),
  }
}

function ordered<Value>(entries: Record<string, Value>, first: string): [string, Value][] {
  const rank = (name: string) => (name === first ? 0 : 1)
  return Object.entries(entries).sort(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1))
}

/**
 * The URL of a did:web document; null for another method, and if the host is not valid.
 *
 * `did:web:{host}` is at `/.well-known/did.json`, `did:web:{host}:a:b` at `/a/b/did.json`; a port's colon is `%3A`.
 */
export function didWebUrl(did: Did): URL | null {
  if (!did.startsWith('did:web:')) return null
  const [host = '', ...path] = did.slice('did:web:'.length).split(':').map(decodeSegment)
  if (
    !/^[a-z0-9.-]+(:[0-9]{1,5})?$/i.test(host) ||
    path.some((segment) => !/^[^/?#\\]+$/.test(segment) || segment === '.' || segment === '..')
  )
    return null
  const scheme = /^localhost(:|$)/.test(host) ? 'http' : 'https'
  return URL.parse(
    `${scheme}://${host}${path.length > 0 ? path.map((segment) => `/${segment}`).join('') : '/.well-known'}/did.json`,
  )
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    return ''
  }
}

/** The did:web of a host, whose port may be part of it. */
export const didWebOfHost = (host: string): Did | null => parseDid(`did:web:${host.toLowerCase().replace(':', '%3A')}`)
