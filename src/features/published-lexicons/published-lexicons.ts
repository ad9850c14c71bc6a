/**
 * The door of published lexicons: documents of other authorities, found through DNS, proved by the repository of the
 * authority, and cached in the database.
 *
 * A document is fresh for a day. An older one is still used while its authority cannot be reached. After a failed
 * fetch, the document is not fetched again for a minute.
 */
import { ageOf } from '../../platform/running/clock.ts'
import { perContext, type Context } from '../../platform/context.ts'
import { SingleFlight } from '../../base/single-flight.ts'
import { BoundedCache } from '../../base/bounded-cache.ts'
import { parseNsid, type Nsid } from '../../protocol/identifiers.ts'
import { compilable, type LexiconDocument } from '../../protocol/lexicons/lexicon-document.ts'
import type { RecordOutcome } from '../../protocol/lexicons/lexicons.ts'
import { MissingLexicon, validatePublishedRecord, type PublishedRecord } from '../../protocol/lexicons/published-record.ts'
import type { Document } from '../../protocol/lexicons/schema.ts'
import { fetchLexicon } from './lexicon-fetch.ts'
import { deleteLexicon, findLexicon, putLexicon, trimLexicons } from './published-lexicon-store.ts'

const FRESH_MILLIS = 24 * 60 * 60 * 1000
const RETRY_MILLIS = 60 * 1000
const MAX_KEPT = 1000
const MAX_REMEMBERED_FAILURES = 10_000
/** Concurrent fetches. A caller that exceeds them gets the stored document, or none. */
const MAX_FETCHES = 16
/** Bounds on validating one record: documents that are resolved, and the time after which no further one is. */
const MAX_DOCUMENTS = 16
const VALIDATION_MILLIS = 10_000

const state = perContext(() => ({
  fetches: new SingleFlight<Nsid, LexiconDocument | null>(),
  /** Monotonic time of the next attempt, by the NSID whose fetch failed. */
  retryAt: new BoundedCache<number>(MAX_REMEMBERED_FAILURES),
}))

/** Returns the document that the authority of `nsid` publishes, or null if there is none or it cannot be fetched. */
export async function resolveLexicon(ctx: Context, nsid: Nsid): Promise<LexiconDocument | null> {
  const { fetches, retryAt } = state(ctx)
  const kept = await findLexicon(ctx.db, nsid)
  if (kept && ageOf(kept.fetchedAt, ctx.clock.now()) < FRESH_MILLIS) return kept.document
  const mayFetch = (retryAt.get(nsid) ?? 0) <= ctx.clock.monotonic() && fetches.size < MAX_FETCHES
  if (!fetches.running(nsid) && !mayFetch) return kept?.document ?? null
  return fetches.run(nsid, () => renew(ctx, nsid, kept?.document ?? null))
}

async function renew(ctx: Context, nsid: Nsid, kept: LexiconDocument | null): Promise<LexiconDocument | null> {
  const fetched = await fetchLexicon(ctx, nsid)
  if (!fetched.ok) {
    state(ctx).retryAt.set(nsid, ctx.clock.monotonic() + RETRY_MILLIS)
    if (fetched.fault === 'unreachable') return kept
    if (kept) await ctx.db.transaction((tx) => deleteLexicon(tx, nsid))
    return null
  }
  await ctx.db.transaction(async (tx) => {
    await putLexicon(tx, fetched.document, ctx.clock.now())
    await trimLexicons(tx, MAX_KEPT)
  })
  return fetched.document
}

/** Validate a record and its key against published lexicons. The outcome is `unknown` if a lexicon that it needs cannot be found. */
export async function validateAsPublished(ctx: Context, record: PublishedRecord): Promise<RecordOutcome> {
  const documents = new Map<string, Document>()
  const deadline = performance.now() + VALIDATION_MILLIS
  for (;;) {
    try {
      return validatePublishedRecord(documents, record)
    } catch (error) {
      if (!(error instanceof MissingLexicon)) throw error
      const nsid = parseNsid(error.nsid)
      const mayAsk = documents.size < MAX_DOCUMENTS && performance.now() < deadline
      const document = nsid && mayAsk ? await resolveLexicon(ctx, nsid) : null
      if (!document) return { status: 'unknown' }
      documents.set(document.id, compilable(document))
    }
  }
}
