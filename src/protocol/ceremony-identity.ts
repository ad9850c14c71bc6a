/**
 * Checks the identity that a wallet brings to its ceremony, for both DID methods: it must name the handle, this server,
 * the signing key that the server issued, and the key of the device.
 *
 * Nothing is corrected, because the wallet has already signed or published exactly these bytes.
 */
import { parsedJson } from '../base/parsed-json.ts'
import { withoutTrailingSlashes } from '../base/trailing.ts'
import { parseDidDocument, renderDidDocument, type DidDocument } from './did-document.ts'
import { parseDid, type Did, type Handle } from './identifiers.ts'
import { parseDidKey } from './keys.ts'
import {
  genesisDid,
  MAX_ROTATION_KEYS,
  parseOperation,
  PDS_SERVICE_NAME,
  pdsService,
  SIGNING_KEY_NAME,
  signerOf,
  type Operation,
} from './plc.ts'

/** What the server expects of the identity. `signingKey` is a did:key. */
export interface CeremonyTerms {
  handle: Handle
  signingKey: string
  publicUrl: string
}

export interface CeremonyIdentity {
  did: Did
  document: DidDocument
}

export type CeremonyOutcome<Identity> = { ok: true; identity: Identity } | { ok: false; fault: string }

const refuse = (fault: string): { ok: false; fault: string } => ({ ok: false, fault })

/**
 * Check a genesis operation that a wallet has signed. `deviceKey` and `recoveryKey` are did:keys as the wallet names
 * them; the device key must be the highest rotation key and must have signed the operation. Returns the identity, or
 * the first fault in words.
 */
export function checkCeremonyGenesis(
  operation: unknown,
  { deviceKey, recoveryKey }: { deviceKey: string; recoveryKey: string },
  { handle, signingKey, publicUrl }: CeremonyTerms,
): CeremonyOutcome<CeremonyIdentity & { genesis: Operation }> {
  if (!deviceKey.startsWith('did:key:z')) return refuse('the key of the device must be a did:key')
  const genesis = parseOperation(operation)
  if (genesis?.type !== 'plc_operation' || genesis.prev !== null)
    return refuse('the operation is not a genesis operation')
  if (signerOf(genesis, [deviceKey]) === null) return refuse('the operation is not signed by the key of the device')
  const { rotationKeys, alsoKnownAs, services, verificationMethods } = genesis
  if (rotationKeys[0] !== deviceKey) return refuse('the first rotation key must be that of the device')
  // The directory would refuse these, so refuse them before the ceremony is bound to the DID.
  if (
    rotationKeys.length > MAX_ROTATION_KEYS ||
    new Set(rotationKeys).size < rotationKeys.length ||
    !rotationKeys.every(parseDidKey)
  )
    return refuse(`rotationKeys must be at most ${MAX_ROTATION_KEYS} different keys of supported curves`)
  if (alsoKnownAs[0] !== `at://${handle}`) return refuse('the first name in alsoKnownAs must be the handle')
  const { type, endpoint } = services[PDS_SERVICE_NAME] ?? {}
  if (type !== pdsService(publicUrl).type || endpoint !== publicUrl)
    return refuse(`services.${PDS_SERVICE_NAME} must be this server`)
  if (verificationMethods[SIGNING_KEY_NAME] !== signingKey)
    return refuse('verificationMethods.atproto must be the issued signing key')
  if (!rotationKeys.includes(recoveryKey)) return refuse('recoveryKey must be one of the rotation keys')
  const did = genesisDid(genesis)
  return { ok: true, identity: { did, genesis, document: renderDidDocument(did, genesis) } }
}

/**
 * Check a genesis operation that a client brings along, signed with its highest rotation key. `recoveryKey` is a
 * did:key that the operation must name; null if the client wants none. Returns the identity and its signing key, a
 * did:key, or the first fault in words.
 */
export function checkBroughtGenesis(
  operation: unknown,
  recoveryKey: string | null,
  site: Omit<CeremonyTerms, 'signingKey'>,
): CeremonyOutcome<CeremonyIdentity & { genesis: Operation; signingKey: string }> {
  const parsed = parseOperation(operation)
  const highest = parsed?.type === 'plc_operation' ? parsed.rotationKeys[0] : undefined
  const signingKey = parsed?.type === 'plc_operation' ? parsed.verificationMethods[SIGNING_KEY_NAME] : undefined
  if (highest === undefined || signingKey === undefined)
    return refuse('plcOp is not an operation with a rotation key and a signing key')
  const keys = { deviceKey: highest, recoveryKey: recoveryKey ?? highest }
  const outcome = checkCeremonyGenesis(operation, keys, { ...site, signingKey })
  return outcome.ok ? { ok: true, identity: { ...outcome.identity, signingKey } } : outcome
}

/**
 * Check a did:web document that a wallet says it has published. `deviceKey` is a did:key. Ids must be written in full.
 * Returns the identity, or the first fault in words. The caller compares the text with the published document.
 */
export function checkCeremonyDocument(
  text: string,
  deviceKey: string,
  { handle, signingKey, publicUrl }: CeremonyTerms,
): CeremonyOutcome<CeremonyIdentity> {
  const value = parsedJson(text)
  if (value === undefined) return refuse('didWebDocument is not JSON')
  const id = (value as { id?: unknown } | null)?.id
  const did = typeof id === 'string' && id.startsWith('did:web:') ? parseDid(id) : null
  const document = did && parseDidDocument(value, did)
  if (!document) return refuse('didWebDocument is not a document of a did:web')
  const { alsoKnownAs = [], verificationMethod = [], service = [] } = document
  if (!alsoKnownAs.includes(`at://${handle}`)) return refuse('alsoKnownAs must name the handle')
  // Exactly one key of each name: with two, readers of the document would disagree about which of them counts.
  const hasKey = (name: string, key: string) => {
    const [method, ...others] = verificationMethod.filter(({ id }) => id === `${did}#${name}`)
    if (!method || others.length > 0) return false
    return method.type === 'Multikey' && method.controller === did && `did:key:${method.publicKeyMultibase}` === key
  }
  if (!hasKey('device', deviceKey)) return refuse('verificationMethod must have the key of the device alone as #device')
  if (!hasKey(SIGNING_KEY_NAME, signingKey))
    return refuse('verificationMethod must have the issued signing key alone as #atproto')
  const [pds, ...others] = service.filter(({ id }) => id === `${did}#${PDS_SERVICE_NAME}`)
  const isHere =
    others.length === 0 &&
    pds?.type === pdsService(publicUrl).type &&
    typeof pds.serviceEndpoint === 'string' &&
    withoutTrailingSlashes(pds.serviceEndpoint) === withoutTrailingSlashes(publicUrl)
  return isHere
    ? { ok: true, identity: { did: document.id, document } }
    : refuse(`service must name this server as #${PDS_SERVICE_NAME}`)
}
