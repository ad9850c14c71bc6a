/**
 * Resolves a DID to its document, through a cache. Code that checks a wallet's proof does not use it and always fetches
 * (`signing-authority.ts`).
 *
 * A document is fresh for an hour. An older one is served until it is a day old, while a newer one is fetched in the
 * background. Requests for the same DID share one fetch.
 *
 * Source: atproto "DID"; did:plc and did:web method specifications.
 */
import { HOUR_MILLIS } from '../../../base/durations.ts'
import { Elsewhere } from '../../../base/elsewhere.ts'
import { ageOf } from '../../../platform/running/clock.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { PlcDirectoryError } from '../../../platform/network/directory-client.ts'
import { OutboundError } from '../../../platform/network/outbound.ts'
import { LookupsFull } from '../../../platform/network/resolver.ts'
import { parsedJson } from '../../../base/parsed-json.ts'
import { SingleFlight } from '../../../base/single-flight.ts'
import { didWebUrl, parseDidDocument, type DidDocument } from '../../../protocol/did-document.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { isPlcDid } from '../../../protocol/plc.ts'
import { accountOf } from '../accounts/accounts.ts'
import { didDocuments, findDidDocument, forgetDidDocument, putDidDocument } from './did-document-store.ts'

export type ResolutionFault =
  | 'not-found'
  | 'deactivated' // the DID was ended
  | 'unsupported' // an unknown DID method, or a did:web with a path that has no account here
  | 'unreachable' // no response, or an error
  | 'unreadable' // a response that is not a document of this DID

export type DidResolution = { ok: true; document: DidDocument } | { ok: false; fault: ResolutionFault }

const FRESH_MILLIS = HOUR_MILLIS
export const DOCUMENT_KEPT_MILLIS = 24 * FRESH_MILLIS
const DID_WEB_TIMEOUT_MILLIS = 3000
const MAX_DOCUMENT_BYTES = 64 * 1024

const keepBounded = perContext(({ db }) => didDocuments.bounded(db))

/** Callers that ask for the same DID while it is being fetched share that fetch. */
const fetches = perContext(() => new SingleFlight<Did, DidResolution>())

/**
 * Returns the document of a DID, or why there is none. `live` ignores the cached document and fetches the published
 * one, which is then cached. Throws `LookupsFull` if too many names are being looked up.
 */
export async function resolveDid(ctx: Context, did: Did, { live = false } = {}): Promise<DidResolution> {
  if (live) return fetches(ctx).runAnew(did, () => fetchAndKeep(ctx, did))
  const cached = await findDidDocument(ctx.db, did)
  const ageMillis = cached ? ageOf(cached.fetchedAt, ctx.clock.now()) : Infinity
  if (!cached || ageMillis >= DOCUMENT_KEPT_MILLIS) return fetches(ctx).run(did, () => fetchAndKeep(ctx, did))
  // A failed refresh is ignored: the next request tries again.
  if (ageMillis >= FRESH_MILLIS)
    void fetches(ctx)
      .run(did, () => fetchAndKeep(ctx, did))
      .catch(() => null)
  return { ok: true, document: cached.document }
}

/** Throws only `LookupsFull`, and `Elsewhere`. */
async function fetchAndKeep(ctx: Context, did: Did): Promise<DidResolution> {
  const askedAt = ctx.clock.now()
  try {
    const resolution = await fetchDocument(ctx, did)
    await keep(ctx, did, resolution, askedAt)
    return resolution
  } catch (error) {
    if (error instanceof LookupsFull || error instanceof Elsewhere) throw error
    ctx.log.error('could not fetch a DID document', { did, error })
    return { ok: false, fault: 'unreachable' }
  }
}

/** Cache a document. If that fails, because the disk is full, the document is still returned to the caller. */
async function keep(ctx: Context, did: Did, resolution: DidResolution, askedAt: Millis): Promise<void> {
  try {
    if (resolution.ok) {
      await putDidDocument(ctx.db, resolution.document, askedAt, ctx.clock.now())
      await keepBounded(ctx)()
    } else if (resolution.fault !== 'unreachable') await forgetDidDocument(ctx.db, did)
  } catch (error) {
    ctx.log.error('could not cache a DID document', { did, error })
  }
}

async function fetchDocument(ctx: Context, did: Did): Promise<DidResolution> {
  if (isPlcDid(did)) return fetchPlcDocument(ctx, did)
  const url = didWebUrl(did)
  return url !== null && (url.pathname === HOST_DOCUMENT_PATH || (await accountOf(ctx.db, did)) !== null)
    ? fetchWebDocument(ctx, did, url)
    : { ok: false, fault: 'unsupported' }
}

/**
 * atproto supports did:web for whole hosts only. But a wallet may bring a did:web with a path to its ceremony, and such
 * an account must be able to change its handle and to become active again.
 */
export const HOST_DOCUMENT_PATH = '/.well-known/did.json'

async function fetchPlcDocument({ plc, log }: Context, did: Did): Promise<DidResolution> {
  try {
    const document = await plc.document(did)
    if (document) return { ok: true, document }
    return { ok: false, fault: (await plc.auditLog(did)) ? 'deactivated' : 'not-found' }
  } catch (error) {
    if (!(error instanceof PlcDirectoryError)) throw error
    log.warn('PLC directory did not respond', { did, status: error.status })
    return { ok: false, fault: 'unreachable' }
  }
}

/**
 * Fetches the document of a did:web, with or without a path, from its URL. Nothing is cached. Status 404 is
 * `not-found`, 410 is `deactivated`, a response that is not a document of the DID is `unreadable`, and every other
 * failure is `unreachable`. Throws `LookupsFull` if too many names are being looked up.
 */
export async function fetchWebDocument(ctx: Pick<Context, 'outbound'>, did: Did, url: URL): Promise<DidResolution> {
  const published = await fetchPublished(ctx, url)
  if (!published.ok) return published
  const document = parseDidDocument(parsedJson(new TextDecoder().decode(published.bytes)), did)
  return document ? { ok: true, document } : { ok: false, fault: 'unreadable' }
}

export type PublishedBytes =
  { ok: true; bytes: Uint8Array } | { ok: false; fault: 'not-found' | 'deactivated' | 'unreachable' }

/**
 * Fetches the bytes that are published at the URL of a did:web, without parsing them. Faults are as for
 * `fetchWebDocument`. Throws `LookupsFull`.
 */
export async function fetchPublished({ outbound }: Pick<Context, 'outbound'>, url: URL): Promise<PublishedBytes> {
  try {
    const response = await outbound.fetch(url, {
      headers: { accept: 'application/did+ld+json, application/json' },
      headersTimeoutMillis: DID_WEB_TIMEOUT_MILLIS,
      bodyTimeoutMillis: DID_WEB_TIMEOUT_MILLIS,
      maxBytes: MAX_DOCUMENT_BYTES,
      fresh: true,
    })
    const fault = webFaults[response.status]
    if (!response.ok) {
      await response.body?.cancel()
      return { ok: false, fault: fault ?? 'unreachable' }
    }
    return { ok: true, bytes: new Uint8Array(await response.arrayBuffer()) }
  } catch (error) {
    if (error instanceof OutboundError) return { ok: false, fault: 'unreachable' }
    throw error
  }
}

const webFaults: Record<number, 'not-found' | 'deactivated'> = { 404: 'not-found', 410: 'deactivated' }
