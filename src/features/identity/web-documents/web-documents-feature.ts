import type { Feature } from '../../../http/feature.ts'
import { didRoutes } from './did-routes.ts'
import { webDocumentRoutes } from './web-document-routes.ts'
import { deleteWebDocument } from './web-document-store.ts'
import { wellKnownRoutes } from './well-known-routes.ts'

export const webDocuments: Feature = {
  name: 'web-documents',
  capabilities: ['didWebHosting'],
  routes: [...didRoutes, ...webDocumentRoutes, ...wellKnownRoutes],
  async forgetAccount(_, tx, did) {
    await deleteWebDocument(tx, did)
  },
}
