/**
 * Determines the keys that may currently sign for an identity, so that a wallet's proof can be checked against them.
 * The document or log is always fetched, because a cached one must not grant anything.
 *
 * Callers that ask for the same DID at once share one fetch. No caller gets the outcome of a fetch that began before it
 * asked, because a key may have been removed in between.
 */
import { SingleFlight } from '../../../base/single-flight.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { PlcDirectoryError } from '../../../platform/network/directory-client.ts'
import { didWebUrl, type DidDocument } from '../../../protocol/did-document.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { parseMultikey } from '../../../protocol/keys.ts'
import { headOf, isPlcDid, stateOf, type AuditEntry } from '../../../protocol/plc.ts'
import { fetchWebDocument } from '../../identity/identity/identity.ts'
import { hostingStateOf } from '../../identity/web-documents/web-documents.ts'

export type SigningAuthority =
  /**
   * `keys` are did:keys, compared as exact strings; if there are none, no key may sign. `alsoKnownAs` is the identity's
   * list of names. `head` is null unless the DID is a did:plc.
   */
  | { ok: true; keys: string[]; alsoKnownAs: string[]; head: AuditEntry | null }
  | { ok: false; fault: 'not-found' | 'deactivated' | 'unreachable' | 'unreadable' }

const noKeys: SigningAuthority = { ok: true, keys: [], alsoKnownAs: [], head: null }

const reads = perContext(() => new SingleFlight<Did, SigningAuthority>())

/**
 * Returns the keys, or the fault: `unreadable` if the PLC directory sends a log that cannot be used. Throws
 * `LookupsFull` if too many names are being looked up.
 *
 * A did:web whose document this server serves has no keys. Anyone with a session can edit such a document, so its keys
 * must not create sessions.
 */
export const signingAuthority = (ctx: Context, did: Did): Promise<SigningAuthority> =>
  reads(ctx).runAnew(did, () => (isPlcDid(did) ? plcAuthority(ctx, did) : webAuthority(ctx, did)))

async function webAuthority(ctx: Context, did: Did): Promise<SigningAuthority> {
  const url = didWebUrl(did)
  const before = await hostingStateOf(ctx.db, did)
  if (!url || before.isHosted) return noKeys
  const resolution = await fetchWebDocument(ctx, did, url)
  // If hosting has changed meanwhile, this server may have served the fetched document itself.
  if ((await hostingStateOf(ctx.db, did)).changes !== before.changes) return noKeys
  if (resolution.ok) {
    const { document } = resolution
    return { ok: true, keys: deviceKeys(document), alsoKnownAs: document.alsoKnownAs ?? [], head: null }
  }
  return resolution.fault === 'unsupported' || resolution.fault === 'unreadable'
    ? noKeys
    : { ok: false, fault: resolution.fault }
}

async function plcAuthority({ plc }: Context, did: Did): Promise<SigningAuthority> {
  try {
    const log = await plc.auditLog(did)
    const head = log && headOf(log)
    if (!head) return { ok: false, fault: 'not-found' }
    const state = stateOf(head.operation)
    return { ok: true, keys: state?.rotationKeys ?? [], alsoKnownAs: state?.alsoKnownAs ?? [], head }
  } catch (error) {
    if (!(error instanceof PlcDirectoryError)) throw error
    return { ok: false, fault: error.status === 200 ? 'unreadable' : 'unreachable' }
  }
}

/**
 * Returns the Multikey named `#device` if there is exactly one and the DID itself controls it. `#atproto` does not
 * count, because this server holds that key.
 */
function deviceKeys({ id, verificationMethod = [] }: DidDocument): string[] {
  const named = verificationMethod.filter(
    (method) => method.id === `${id}#device` && method.type === 'Multikey' && method.controller === id,
  )
  const multikey = named.length === 1 ? named[0]!.publicKeyMultibase : undefined
  return multikey && parseMultikey(multikey) ? [`did:key:${multikey}`] : []
}
