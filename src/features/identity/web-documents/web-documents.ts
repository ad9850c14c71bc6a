/**
 * The door of web documents: documents of did:web accounts that this server serves for their owners, at the owners'
 * domains.
 *
 * The owner begins and ends hosting. Meanwhile any session of the account can edit the document, so the keys in it
 * cannot open sessions (`signing-authority.ts`).
 */
import { isDeepStrictEqual } from 'node:util'
import { invalidRequest } from '../../../http/errors.ts'
import { parseHost } from '../../../http/host.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { didWebOfHost, didWebUrl, droppedSpaceNames, parseDidDocument } from '../../../protocol/did-document.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountOf, accountStatus, furtherHandlesOf } from '../accounts/accounts.ts'
import { announceIn, revalidate, type By } from '../account-events/account-events.ts'
import { sequenceEvents } from '../../data/firehose/firehose.ts'
import {
  findDidDocument,
  forgetDidDocument,
  HOST_DOCUMENT_PATH,
  resolveDid,
  type DidResolution,
  isServedHandle,
} from '../identity/identity.ts'
import { findWebDocument, hostingStateOf, putWebDocument, setHostedSince } from './web-document-store.ts'

export { findWebDocument, hostingStateOf, putWebDocument } from './web-document-store.ts'

export const MAX_WEB_DOCUMENT_BYTES = 64 * 1024

/**
 * Whether a request to the host of the DID would ask for this DID (`well-known-routes.ts`): the DID has no path, and
 * its host is written as in the DID of a request, in lower case and without the default port.
 */
function isOfHost(did: Did): boolean {
  const url = didWebUrl(did)
  const host = url?.pathname === HOST_DOCUMENT_PATH ? parseHost(url.host) : null
  return host !== null && didWebOfHost(host.name + host.port) === did
}

/**
 * Returns the document to serve for a DID, as JSON; null unless its owner wants it served and the account is active.
 */
export async function hostedDocument({ db }: Pick<Context, 'db'>, did: Did): Promise<string | null> {
  const stored = await findWebDocument(db, did)
  if (stored === null || stored.hostedSince === null) return null
  return (await accountStatus(db, did)) === 'active' ? stored.document : null
}

/**
 * Returns the current document of an account here: a live resolution of its DID, or the stored document if this server
 * hosts it and the account is not active. Throws `LookupsFull`.
 */
export async function documentOfAccount(ctx: Context, did: Did): Promise<DidResolution> {
  const stored = await findWebDocument(ctx.db, did)
  if (stored === null || stored.hostedSince === null || (await accountStatus(ctx.db, did)) === 'active')
    return resolveDid(ctx, did, { live: true })
  const document = parseDidDocument(JSON.parse(stored.document), did)
  return document ? { ok: true, document } : { ok: false, fault: 'unreadable' }
}

/**
 * Serve the document from now on. The document that the owner publishes at this moment replaces the stored one, which
 * may be older. Throws `InvalidRequest` if none is published, or if the DID is not the did:web of a host, and
 * `LookupsFull`.
 */
export async function startHosting(by: By, did: Did): Promise<void> {
  const { ctx } = by
  if (!isOfHost(did))
    throw invalidRequest('Only a did:web without a path can be served here, in lower case and without a usual port')
  const before = await hostingStateOf(ctx.db, did)
  if (before.isHosted) return
  const published = await resolveDid(ctx, did, { live: true })
  await ctx.db.transaction(async (tx) => {
    // The fetch may have taken a while.
    await revalidate(by, tx)
    const { changes, isHosted } = await hostingStateOf(tx, did)
    // Another request has begun hosting, and the document may have been edited since.
    if (isHosted) return
    if (changes !== before.changes) throw invalidRequest('Hosting has begun and ended meanwhile: try again')
    const stored = await findWebDocument(tx, did)
    // An unchanged document keeps its stored text.
    if (published.ok && !(stored && isDeepStrictEqual(JSON.parse(stored.document), published.document)))
      await putWebDocument(tx, did, JSON.stringify(published.document))
    if ((await setHostedSince(tx, did, ctx.clock.now())) === 0) throw invalidRequest('There is no document to serve')
    await announceIn(tx, by, 'hostingBegun', did)
  })
}

/** Stop serving the document. From then on, the document on the owner's own web server counts. */
export async function endHosting(by: By, did: Did): Promise<void> {
  await by.ctx.db.transaction(async (tx) => {
    await revalidate(by, tx)
    if (!(await hostingStateOf(tx, did)).isHosted) return
    await setHostedSince(tx, did, null)
    await forgetDidDocument(tx, did)
    await announceIn(tx, by, 'hostingEnded', did)
  })
}

/**
 * Replace the document that is served, and tell the network. Throws `InvalidRequest` if the id is not the DID, if the
 * document is too large, lacks an entry for permissioned data that it had, or is not served here.
 */
export async function editDocument(by: By, did: Did, document: { id?: unknown }): Promise<void> {
  const { ctx } = by
  const text = JSON.stringify(document)
  if (document.id !== did) throw invalidRequest('The id of the document must be the DID of the account')
  if (Buffer.byteLength(text) > MAX_WEB_DOCUMENT_BYTES)
    throw invalidRequest(`The document may have at most ${MAX_WEB_DOCUMENT_BYTES} bytes`)
  await ctx.db.transaction(async (tx) => {
    await revalidate(by, tx)
    const stored = await findWebDocument(tx, did)
    if (stored === null || stored.hostedSince === null) throw invalidRequest('The document is not served here')
    refuseDropped(did, stored.document, document)
    await putWebDocument(tx, did, text)
    await forgetDidDocument(tx, did)
    await sequenceEvents(ctx, tx, [{ type: 'identity', did }])
    await announceIn(tx, by, 'documentEdited', did)
  })
  // Fetch the document again, because a fetch that began before the edit may put the old document into the cache.
  ctx.background.run('fetch of an edited document', () => resolveDid(ctx, did, { live: true }))
}

/** Throws `InvalidRequest` if the edited document lacks an entry for permissioned data that the old one has. */
function refuseDropped(did: Did, before: string, after: unknown): void {
  const [old, edited] = [parseDidDocument(JSON.parse(before), did), parseDidDocument(after, did)]
  if (old === null) return
  const [dropped] = droppedSpaceNames(old, edited ?? { id: did })
  if (dropped !== undefined) throw invalidRequest(`The document lacks ${dropped}, which the identity names`)
}

/**
 * Store the document that proved who owns an arriving did:web, so that it can be served here once its domain points
 * here.
 */
export async function keepArrivingDocument(tx: Tx, did: Did): Promise<void> {
  const proven = isOfHost(did) ? await findDidDocument(tx, did) : null
  if (proven !== null) await putWebDocument(tx, did, JSON.stringify(proven.document))
}

interface FileToPublish {
  url: string
  contentType: string
  content: string
}

/**
 * Returns the stored document, and the files that the owner's own web server must publish when this one no longer does.
 * Returns null if no document is stored.
 */
export async function whatToPublish(
  ctx: Context,
  did: Did,
): Promise<{ did: Did; hosted: boolean; document: unknown; publish: FileToPublish[] } | null> {
  const stored = await findWebDocument(ctx.db, did)
  const url = didWebUrl(did)
  const account = await accountOf(ctx.db, did)
  if (stored === null || url === null || account === null) return null
  const handles = [account.handle ?? [], await furtherHandlesOf(ctx.db, did)].flat()
  return {
    did,
    hosted: stored.hostedSince !== null,
    document: JSON.parse(stored.document),
    publish: [
      { url: url.href, contentType: 'application/did+json', content: stored.document },
      ...handles
        .filter((handle) => !isServedHandle(ctx, handle))
        .map((handle) => ({
          url: `https://${handle}/.well-known/atproto-did`,
          contentType: 'text/plain',
          content: did,
        })),
    ],
  }
}
