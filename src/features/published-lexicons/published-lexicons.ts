/**
 * The door of lexicons that others published: found through DNS and the network, proved by their author's repository,
 * and kept.
 *
 * A document is good for a day, and beyond it as long as its author cannot be reached. What was not found is not
 * looked for again for a minute.
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
/** Fetches at one time; whoever comes on top of them goes without. */
const MAX_FETCHES = 16
/** Documents that one record may lead to, and how long the last of them is begun to be looked for. */
const MAX_DOCUMENTS = 16
const VALIDATION_MILLIS = 10_000

const state = perContext(() => ({
  fetches: new SingleFlight<Nsid, LexiconDocument | null>(),
  /** When to try again, on the monotonic clock, by what was not found. */
  retryAt: new BoundedCache<number>(MAX_REMEMBERED_FAILURES),
}))

/** The document that the authority of `nsid` publishes. Null when there is none or nobody can tell. Never throws for that. */
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

/** Check a record, its key included, against what is published. `unknown` when no lexicon can be found for all of it. */
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
