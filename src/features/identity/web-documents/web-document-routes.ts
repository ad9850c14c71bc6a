/** Endpoints for the owner of a did:web, who decides whether this server serves the document and what it says. */
import { Type } from '@sinclair/typebox'
import { perAccount, route } from '../../../http/endpoint.ts'
import { invalidRequest, notFound } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { owner } from '../../access/auth/auth.ts'
import { editDocument, endHosting, MAX_WEB_DOCUMENT_BYTES, startHosting, whatToPublish } from './web-documents.ts'

const requireWebDid = (did: Did): void => {
  if (!did.startsWith('did:web:')) throw invalidRequest('Only a did:web has a document that can be served here')
}

/** Shares the limit of handle changes, because each edit is an event for the whole network too. */
const edits = perAccount('updateHandle')

export const webDocumentRoutes = [
  route('POST', '/v1/did-web/hosting', {
    auth: owner,
    async handler(call) {
      const { did } = call.caller
      const { enabled } = await readJson(call.body, Type.Object({ enabled: Type.Boolean() }))
      requireWebDid(did)
      await (enabled ? startHosting(call, did) : endHosting(call, did))
      return { enabled }
    },
  }),

  route('POST', '/v1/did-web/document', {
    auth: owner,
    limit: edits,
    async handler(call) {
      const { did } = call.caller
      const { document } = await readJson(
        call.body,
        Type.Object({ document: Type.Object({}) }),
        2 * MAX_WEB_DOCUMENT_BYTES,
      )
      requireWebDid(did)
      await editDocument(call, did, document)
      return {}
    },
  }),

  /** For an owner whose domain moves to a web server of its own. */
  route('GET', '/v1/did-web/document', {
    auth: owner,
    async handler({ ctx, caller: { did } }) {
      requireWebDid(did)
      const found = await whatToPublish(ctx, did)
      if (found === null) throw notFound('No document of this account is stored here')
      return found
    },
  }),
]
