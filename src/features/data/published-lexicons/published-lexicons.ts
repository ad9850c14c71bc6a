/**
 * The door of published lexicons: documents of other authorities, found through DNS, proved by the repository of the
 * authority, and cached in the database.
 *
 * A document is fresh for a day. An older one is still used while its authority cannot be reached. After a failed
 * fetch, the document is not fetched again for a minute.
 */
import { DAY_MILLIS, MINUTE_MILLIS } from '../../../base/durations.ts'
import { ageOf } from '../../../platform/running/clock.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { clientHere } from '../../../platform/running/request-scope.ts'
import { SingleFlight } from '../../../base/single-flight.ts'
import { BoundedCache } from '../../../base/bounded-cache.ts'
import { NoPlace, Places, type PlaceBounds } from '../../../base/places.ts'
import { parseNsid, type Millis, type Nsid } from '../../../protocol/identifiers.ts'
import {
  lexiconExcess,
  parseLexiconDocument,
  type LexiconDocument,
} from '../../../protocol/lexicons/lexicon-document.ts'
import type { RecordOutcome } from '../../../protocol/lexicons/lexicons.ts'
import { PublishedValidation, type PublishedRecord } from '../../../protocol/lexicons/published-record.ts'
import { fetchLexicon } from './lexicon-fetch.ts'
import { findLexicon, publishedLexicons, trimLexicons } from './published-lexicon-store.ts'

const FRESH_MILLIS = DAY_MILLIS
const RETRY_MILLIS = MINUTE_MILLIS
const MAX_KEPT = 1000
const MAX_KEPT_BYTES = 32 * 1024 ** 2
/** Memory for parsed and compiled documents, and the estimated bytes for each character of a document. */
const MAX_COMPILED_BYTES = 32 * 1024 ** 2
const BYTES_PER_CHAR = 25
const MAX_REMEMBERED_FAILURES = 10_000
/**
 * Bounds on concurrent fetches. A caller beyond them gets the stored document. If there is none, it waits for its turn,
 * and after too long a wait it gets no document. An authority may take a while to answer, so no single network gets all
 * places.
 */
const fetchBounds: PlaceBounds = { size: 16, ofNetwork: 4, maxWaiting: 256, waitMillis: 5000 }
/**
 * Bounds on validating one record: the most documents that are resolved, and the time after which no further document
 * is.
 */
const MAX_DOCUMENTS = 16
const VALIDATION_MILLIS = 10_000

interface ParsedLexicon {
  document: LexiconDocument
  fetchedAt: Millis
  chars: number
}

const state = perContext(() => ({
  /**
   * Parsed documents, which are compiled on first use. One is current if the stored row has the same time of fetching.
   */
  parsed: new BoundedCache<ParsedLexicon>(
    MAX_COMPILED_BYTES,
    (nsid, { chars }) => (nsid.length + chars) * BYTES_PER_CHAR,
  ),
  fetches: new SingleFlight<Nsid, LexiconResolution>(),
  places: new Places(fetchBounds),
  /** Fetches that failed, by NSID. */
  failures: new BoundedCache<Failure>(MAX_REMEMBERED_FAILURES),
}))

/** `excess`: the limit that the published document exceeds; null if there is none, or if it cannot be fetched. */
export type LexiconResolution = { ok: true; document: LexiconDocument } | { ok: false; excess: string | null }

interface Failure {
  excess: string | null
  /** On the monotonic clock. */
  retryAt: number
}

/** Returns the document that the authority of `nsid` publishes. */
export async function resolveLexicon(ctx: Context, nsid: Nsid): Promise<LexiconResolution> {
  const { fetches, failures, places } = state(ctx)
  const kept = await keptLexicon(ctx, nsid)
  if (kept && ageOf(kept.fetchedAt, ctx.clock.now()) < FRESH_MILLIS) return { ok: true, document: kept.document }
  const underWay = fetches.running(nsid)
  if (underWay !== undefined) return underWay
  const failure = failures.get(nsid)
  const mayFetch = (failure?.retryAt ?? 0) <= ctx.clock.monotonic()
  const leave = mayFetch ? (places.takeFree(clientHere()) ?? (kept ? null : await turnOf(places))) : null
  if (leave === null)
    return kept ? { ok: true, document: kept.document } : { ok: false, excess: failure?.excess ?? null }
  try {
    return await fetches.run(nsid, () => renew(ctx, nsid, kept))
  } finally {
    leave()
  }
}

/** Returns the function that gives the place back; null if there was none for too long. */
async function turnOf(places: Places): Promise<(() => void) | null> {
  try {
    return await places.enter(clientHere())
  } catch (error) {
    if (error instanceof NoPlace) return null
    throw error
  }
}

/**
 * Returns the stored document; null if there is none, or one that was stored before today's bounds and exceeds them.
 */
async function keptLexicon(ctx: Context, nsid: Nsid): Promise<ParsedLexicon | null> {
  const { parsed } = state(ctx)
  const known = parsed.get(nsid)
  const row = await findLexicon(ctx.db, nsid, known?.fetchedAt ?? null)
  if (row?.text == null) return row && known ? known : null
  const json: unknown = JSON.parse(row.text)
  const document = lexiconExcess(json) === null ? parseLexiconDocument(json, nsid) : null
  return document && remember(ctx, document, row.text, row.fetchedAt)
}

function remember(ctx: Context, document: LexiconDocument, text: string, fetchedAt: Millis): ParsedLexicon {
  const lexicon = { document, fetchedAt, chars: text.length }
  state(ctx).parsed.set(document.id, lexicon)
  return lexicon
}

async function renew(ctx: Context, nsid: Nsid, kept: ParsedLexicon | null): Promise<LexiconResolution> {
  const fetched = await fetchLexicon(ctx, nsid)
  if (!fetched.ok) {
    const excess = fetched.fault === 'too-large' ? fetched.excess : null
    state(ctx).failures.set(nsid, { excess, retryAt: ctx.clock.monotonic() + RETRY_MILLIS })
    if (fetched.fault === 'unreachable' && kept) return { ok: true, document: kept.document }
    if (kept) await ctx.db.transaction((tx) => publishedLexicons.forget(tx, nsid))
    return { ok: false, excess }
  }
  const { document } = fetched
  const text = JSON.stringify(document)
  const fetchedAt = ctx.clock.now()
  await ctx.db.transaction(async (tx) => {
    await publishedLexicons.put(tx, nsid, text, fetchedAt)
    await trimLexicons(tx, MAX_KEPT, MAX_KEPT_BYTES)
  })
  remember(ctx, document, text, fetchedAt)
  return { ok: true, document }
}

/** Message about a document that is larger than this server accepts. */
export const tooLarge = (nsid: string, excess: string): string =>
  `the lexicon ${nsid} is larger than this server accepts: it has ${excess}`

/**
 * Validate a record and its key against published lexicons. The outcome is `unknown` if a lexicon that it needs cannot
 * be found.
 */
export async function validateAsPublished(ctx: Context, record: PublishedRecord): Promise<RecordOutcome> {
  const validation = new PublishedValidation(record)
  const documents = new Map<string, LexiconDocument>()
  const deadline = performance.now() + VALIDATION_MILLIS
  for (;;) {
    const outcome = validation.pass(documents)
    if (outcome.status !== 'incomplete') return outcome
    for (const missing of outcome.missing) {
      const nsid = parseNsid(missing)
      const mayAsk = documents.size < MAX_DOCUMENTS && performance.now() < deadline
      const resolution: LexiconResolution =
        nsid && mayAsk ? await resolveLexicon(ctx, nsid) : { ok: false, excess: null }
      if (!resolution.ok) return undescribed(record, missing, resolution.excess)
      documents.set(missing, resolution.document)
    }
  }
}

const undescribed = ({ collection }: PublishedRecord, nsid: string, excess: string | null): RecordOutcome =>
  excess === null
    ? { status: 'unknown' }
    : { status: 'invalid', message: `Invalid ${collection} record: ${tooLarge(nsid, excess)}` }
