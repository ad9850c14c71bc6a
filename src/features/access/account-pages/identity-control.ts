/** Who may change an identity, for its holder to read. */
import type { Context } from '../../../platform/context.ts'
import { didWebUrl } from '../../../protocol/did-document.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { formatDidKey } from '../../../protocol/keys.ts'
import { signingKeyOf } from '../../identity/account-keys/account-keys.ts'
import { serverRotationKey } from '../../identity/identity/identity.ts'
import { signingAuthority, type SigningAuthority } from '../wallet-proofs/wallet-proofs.ts'
import { findWebDocument } from '../../identity/web-documents/web-documents.ts'

/** A rotation key of a did:plc, and whether this server holds it. */
export interface ControllingKey {
  /** As a did:key. */
  key: string
  isOurs: boolean
}

export type IdentityControl =
  /**
   * The keys in order of rank, highest first; none if the identity has ended. `changedAt` is the time of the last
   * operation.
   */
  | { method: 'plc'; keys: ControllingKey[]; changedAt: Millis | null }
  /** Control of `host` is control of the identity. */
  | { method: 'web'; host: string; hostedSince: Millis | null }
  | { method: 'other' }

/**
 * Returns who may change the identity now, or why that cannot be said. Reads the directory. Throws `LookupsFull` if too
 * many names are being looked up.
 */
export async function controlOf(
  ctx: Context,
  did: Did,
): Promise<{ ok: true; control: IdentityControl } | { ok: false; fault: (SigningAuthority & { ok: false })['fault'] }> {
  const url = didWebUrl(did)
  if (url) {
    const document = await findWebDocument(ctx.db, did)
    return { ok: true, control: { method: 'web', host: url.host, hostedSince: document?.hostedSince ?? null } }
  }
  if (!did.startsWith('did:plc:')) return { ok: true, control: { method: 'other' } }
  const authority = await signingAuthority(ctx, did)
  if (!authority.ok) return { ok: false, fault: authority.fault }
  const held = [await signingKeyOf(ctx, ctx.db, did), await serverRotationKey(ctx)]
  const ours = new Set(held.flatMap((key) => (key ? [formatDidKey(key.publicKey) as string] : [])))
  const keys = authority.keys.map((key) => ({ key, isOurs: ours.has(key) }))
  return {
    ok: true,
    control: { method: 'plc', keys, changedAt: authority.head ? Date.parse(authority.head.createdAt) : null },
  }
}
