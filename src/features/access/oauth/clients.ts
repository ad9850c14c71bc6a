/**
 * The metadata of clients. A client's document is fetched again when it is older than ten minutes. If it cannot be
 * fetched, the stored document is used for up to a day, so that an outage of the client does not sign people out.
 *
 * Source: OAuth Client ID Metadata Document; atproto "OAuth", "Clients".
 */
import { DAY_MILLIS, MINUTE_MILLIS } from '../../../base/durations.ts'
import { OAuthError } from '../../../http/errors.ts'
import { ageOf } from '../../../platform/running/clock.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { cachedDocuments, type CachedDocument } from '../../../platform/database/cached-documents.ts'
import { sql } from '../../../platform/database/database.ts'
import { SingleFlight } from '../../../base/single-flight.ts'
import { BoundedCache } from '../../../base/bounded-cache.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import { isLoopbackClientId, type ClientMetadata, type ClientOutcome } from '../../../protocol/client-metadata.ts'
import { fetchDocument } from '../../../platform/network/json-document.ts'
import { hasSessionOfClient } from './oauth-session-store.ts'

const FRESH_MILLIS = 10 * MINUTE_MILLIS
/** How long a stored document may be used while the client cannot be reached. */
export const STALE_MILLIS = DAY_MILLIS
/** How long to wait after a failed fetch before the next one. */
const FAULT_MILLIS = MINUTE_MILLIS
const MAX_FAULTS = 1024
const MAX_REASON_CHARS = 2500

export const clientDocuments = cachedDocuments(sql`oauth_client`, sql`client_id`)

/** A document that was recently refused or unreachable. */
interface ClientFault {
  reason: string
  /** Whether the stored document may be used: the client could not be reached, and has not published an invalid one. */
  isOutage: boolean
  /** On the monotonic clock. */
  until: number
}

const state = perContext(({ db }) => ({
  keepBounded: clientDocuments.bounded(db),
  fetches: new SingleFlight<string, ClientOutcome>(),
  /** By the id of the client. */
  faults: new BoundedCache<ClientFault>(MAX_FAULTS),
}))

const validation = () => import('../../../protocol/client-validation.ts')

export const invalidClient = (reason: string) => new OAuthError(400, 'invalid_client', reason)

/**
 * Returns the metadata of a client. `mayFetch`: whether to fetch the document of a client that is neither stored here
 * nor has a session, instead of refusing the client. A stored document is renewed either way.
 *
 * Throws `invalid_client` if the id or the metadata is refused or cannot be fetched, and `LookupsFull` when too many
 * names are being looked up.
 */
export async function clientOf(
  ctx: Context,
  clientId: string,
  { mayFetch }: { mayFetch: boolean },
): Promise<ClientMetadata> {
  const outcome = isLoopbackClientId(clientId)
    ? (await validation()).loopbackClient(clientId)
    : await discovered(ctx, clientId, mayFetch)
  if (!outcome.ok) throw invalidClient(`invalid_client_metadata: ${outcome.reason}`)
  return outcome.client
}

async function discovered(ctx: Context, clientId: string, mayFetch: boolean): Promise<ClientOutcome> {
  const { clientDocumentUrl, discoverableClient } = await validation()
  if (clientDocumentUrl(clientId) === null)
    return { ok: false, reason: 'client_id must be an https URL of a document, or of the form http://localhost' }
  // Users recognise an app by the host of its id. A document on this host could only be one that a user has uploaded.
  if (isOwnHost(ctx.config, new URL(clientId).hostname))
    return { ok: false, reason: 'an app cannot be on the host of this server' }
  const now = ctx.clock.now()
  const { fetches, faults } = state(ctx)
  const kept = await clientDocuments.find(ctx.db, clientId)
  if (kept && ageOf(kept.fetchedAt, now) < FRESH_MILLIS) return discoverableClient(clientId, JSON.parse(kept.text))
  if (!kept && !mayFetch && !(await hasSessionOfClient(ctx.db, clientId)))
    return { ok: false, reason: 'this server does not know the client yet' }
  const fault = faults.get(clientId)
  if (fault && fault.until > ctx.clock.monotonic()) return outcomeOf(fault, clientId, kept, now)
  return fetches.run(clientId, () => refetched(ctx, clientId, kept))
}

/** Whether the host is this server, by its present or a former name. A fully qualified name may end in a dot. */
const isOwnHost = ({ publicUrl, formerUrls }: Context['config'], hostname: string): boolean =>
  [publicUrl, ...formerUrls].some((url) => new URL(url).hostname === hostname.replace(/\.$/, ''))

async function refetched(ctx: Context, clientId: string, kept: CachedDocument | null): Promise<ClientOutcome> {
  const fetched = await fetchDocument(ctx, clientId)
  if (!fetched.ok)
    return failed(ctx, clientId, kept, { reason: `the document at ${clientId}: ${fetched.reason}`, isOutage: true })
  const { discoverableClient } = await validation()
  const read = discoverableClient(clientId, fetched.document)
  if (!read.ok) return failed(ctx, clientId, kept, { reason: read.reason, isOutage: false })
  await clientDocuments.put(ctx.db, clientId, JSON.stringify(fetched.document), ctx.clock.now())
  await state(ctx).keepBounded()
  return read
}

async function failed(
  ctx: Context,
  clientId: string,
  kept: CachedDocument | null,
  { reason, isOutage }: Omit<ClientFault, 'until'>,
): Promise<ClientOutcome> {
  const fault = { reason: reason.slice(0, MAX_REASON_CHARS), isOutage, until: ctx.clock.monotonic() + FAULT_MILLIS }
  state(ctx).faults.set(clientId, fault)
  return outcomeOf(fault, clientId, kept, ctx.clock.now())
}

/**
 * A client that publishes an invalid document is refused at once. If the document cannot be fetched, the stored one is
 * used.
 */
const outcomeOf = async (
  { reason, isOutage }: ClientFault,
  clientId: string,
  kept: CachedDocument | null,
  now: Millis,
): Promise<ClientOutcome> => (isOutage ? await lastGood(clientId, kept, now) : null) ?? { ok: false, reason }

/** Returns the outcome of the stored document; null if there is none or it is too old. */
async function lastGood(clientId: string, kept: CachedDocument | null, now: Millis): Promise<ClientOutcome | null> {
  if (!kept || now - kept.fetchedAt >= STALE_MILLIS) return null
  const { discoverableClient } = await validation()
  return discoverableClient(clientId, JSON.parse(kept.text))
}
