/** What the owner of a did:web decides: whether this server serves its document, and what it says. */
import { Type } from '@sinclair/typebox'
import { route } from '../../http/endpoint.ts'
import { invalidRequest } from '../../http/errors.ts'
import { readJson } from '../../http/json-input.ts'
import { owner } from '../auth/auth.ts'
import { sequenceEvents } from '../firehose/firehose.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { findWebDocument, putWebDocument, setHostedSince } from './web-document-store.ts'

const MAX_DOCUMENT_BYTES = 64 * 1024

function requireWebDid(did: Did): void {
  if (!did.startsWith('did:web:')) throw invalidRequest('Only a did:web has a document that can be served here')
}

export const webDocumentRoutes = [
  route('POST', '/v1/did-web/hosting', {
    auth: owner,
    async handler({ ctx, caller: { did }, body }) {
      const { enabled } = await readJson(body, Type.Object({ enabled: Type.Boolean() }))
      requireWebDid(did)
      const changed = await setHostedSince(ctx.db, did, enabled ? ctx.clock.now() : null)
      if (enabled && changed === 0) throw invalidRequest('There is no document to serve')
      return { enabled }
    },
  }),

  route('POST', '/v1/did-web/document', {
    auth: owner,
    async handler({ ctx, caller: { did }, body }) {
      const { document } = await readJson(body, Type.Object({ document: Type.Object({}) }), 2 * MAX_DOCUMENT_BYTES)
      requireWebDid(did)
      const text = JSON.stringify(document)
      if ((document as { id?: unknown }).id !== did) throw invalidRequest('The id of the document must be the DID of the account')
      if (Buffer.byteLength(text) > MAX_DOCUMENT_BYTES) throw invalidRequest(`The document may have at most ${MAX_DOCUMENT_BYTES} bytes`)
      await ctx.db.transaction(async (tx) => {
        const stored = await findWebDocument(tx, did)
        if (stored === null || stored.hostedSince === null) throw invalidRequest('The document is not served here')
        await putWebDocument(tx, did, text)
        await sequenceEvents(ctx, tx, [{ type: 'identity', did }])
      })
      return {}
    },
  }),
]
