/** The document of a DID, for wallets. */
import { route } from '../../../http/endpoint.ts'
import { notFound, Refusal } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import type { DidDocument } from '../../../protocol/did-document.ts'
import { parseDid } from '../../../protocol/identifiers.ts'
import { isPlcDid } from '../../../protocol/plc.ts'
import { findDidDocument } from '../identity/identity.ts'
import { findWebDocument } from './web-document-store.ts'

/**
 * Returns the document that this server has, else the directory's, which is not stored. Returns null if there is none.
 */
async function documentOf({ db, plc }: Context, text: string): Promise<DidDocument | null> {
  const did = parseDid(text)
  if (did === null) return null
  const cached = await findDidDocument(db, did)
  if (cached !== null) return cached.document
  if (isPlcDid(did)) return plc.document(did)
  const stored = await findWebDocument(db, did)
  return stored && (JSON.parse(stored.document) as DidDocument)
}

export const didRoutes = [
  route('GET', '/v1/dids/:did', {
    async handler({ ctx, path }) {
      const text = path['did'] ?? ''
      if (!text.startsWith('did:')) throw new Refusal(400, 'InvalidClaim', 'Not a DID')
      const document = await documentOf(ctx, text)
      if (document === null) throw notFound('No document of this DID is known')
      return document
    },
  }),
]
