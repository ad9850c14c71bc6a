/**
 * Determines the keys that may currently sign for an identity, so that a wallet's proof can be checked against them.
 * The document or log is always fetched, because a cached one must not grant anything.
 */
import type { Context } from '../../platform/context.ts'
import { PlcDirectoryError } from '../../platform/network/directory-client.ts'
import { didWebUrl, type DidDocument } from '../../protocol/did-document.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { parseMultikey } from '../../protocol/keys.ts'
import { headOf, isPlcDid, stateOf, type AuditEntry } from '../../protocol/plc.ts'
import { fetchWebDocument } from './did-resolution.ts'

export type SigningAuthority =
  /** `keys` are did:keys, compared as exact strings; if there are none, nobody may sign. `head` is null unless the DID is a did:plc. */
  { ok: true; keys: string[]; head: AuditEntry | null } | { ok: false; fault: 'not-found' | 'deactivated' | 'unreachable' | 'unreadable' }

const nobody: SigningAuthority = { ok: true, keys: [], head: null }

/**
 * Returns the keys, or the fault: `unreadable` if the PLC directory sends a log that cannot be used. Throws
 * `LookupsFull` if too many names are being looked up.
 *
 * `isHosted` says that this server serves the document of the did:web. Anyone with a session can edit such a document,
 * so its keys must not create sessions and none are returned.
 */
export async function signingAuthority(ctx: Context, did: Did, { isHosted = false } = {}): Promise<SigningAuthority> {
  if (isPlcDid(did)) return plcAuthority(ctx, did)
  const url = isHosted ? null : didWebUrl(did)
  if (!url) return nobody
  const resolution = await fetchWebDocument(ctx, did, url)
  if (resolution.ok) return { ok: true, keys: deviceKeys(resolution.document), head: null }
  return resolution.fault === 'unsupported' ? nobody : { ok: false, fault: resolution.fault }
}

async function plcAuthority({ plc }: Context, did: Did): Promise<SigningAuthority> {
  try {
    const log = await plc.auditLog(did)
    const head = log && headOf(log)
    return head ? { ok: true, keys: stateOf(head.operation)?.rotationKeys ?? [], head } : { ok: false, fault: 'not-found' }
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
