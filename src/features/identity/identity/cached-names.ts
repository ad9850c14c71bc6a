/** The names in cached documents of accounts here. */
import type { Tx } from '../../../platform/database/database.ts'
import { withHandles } from '../../../protocol/did-document.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountOf, furtherHandlesOf } from '../accounts/accounts.ts'
import { findDidDocument, replaceDidDocument } from './did-document-store.ts'

/**
 * Replace the handles in the cached document by those that the account has here. The published document changes only
 * when its owner changes it.
 */
export async function renameCachedDocument(tx: Tx, did: Did): Promise<void> {
  const account = await accountOf(tx, did)
  const cached = await findDidDocument(tx, did)
  if (!account || !cached) return
  const handles = account.handle === null ? [] : [account.handle, ...(await furtherHandlesOf(tx, did))]
  await replaceDidDocument(tx, { ...cached.document, alsoKnownAs: withHandles(cached.document, handles) })
}
