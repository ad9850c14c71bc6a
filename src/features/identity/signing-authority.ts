/**
 * Returns the keys that may currently sign for an identity, to check a wallet's proof against. Always fetched; a cached
 * document never grants anything.
 */
import type { Context } from '../../platform/context.ts'
import { PlcDirectoryError } from '../../platform/network/directory-client.ts'
import { didWebUrl, type DidDocument } from '../../protocol/did-document.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { parseMultikey } from '../../protocol/keys.ts'
import { headOf, isPlcDid, stateOf, type AuditEntry } from '../../protocol/plc.ts'
import { fetchWebDocument } from './did-resolution.ts'

export type SigningAuthority =
  /** did:keys, to be compared as exact strings. No key: nobody may. `head` is there for did:plc. */
  { ok: true; keys: string[]; head: AuditEntry | null } | { ok: false; fault: 'not-found' | 'deactivated' | 'unreachable' | 'unreadable' }

const nobody: SigningAuthority = { ok: true, keys: [], head: null }

/**
 * `isHosted`: the document of this did:web is served by us and can be edited with a mere session, so it must not be
 * able to mint sessions.
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

/** Exactly one Multikey named `#device`, under the DID's own control. `#atproto` never counts: we hold that key. */
function deviceKeys({ id, verificationMethod = [] }: DidDocument): string[] {
  const named = verificationMethod.filter(
    (method) => method.id === `${id}#device` && method.type === 'Multikey' && method.controller === id,
  )
  const multikey = named.length === 1 ? named[0]!.publicKeyMultibase : undefined
  return multikey && parseMultikey(multikey) ? [`did:key:${multikey}`] : []
}
