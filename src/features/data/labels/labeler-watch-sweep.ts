/**
 * Queries the labelers that the operator watches for labels on the accounts hosted here
 * (com.atproto.label.queryLabels).
 *
 * The flags of a labeler change only if it answered every query of a pass, so partial information never deletes a flag.
 * A flag informs the operator, and a new one opens a case; it has no other effect.
 */
import type { Context } from '../../../platform/context.ts'
import { inPieces } from '../../../platform/database/database.ts'
import { OutboundError } from '../../../platform/network/outbound.ts'
import { LookupsFull } from '../../../platform/network/resolver.ts'
import type { Sweep } from '../../../platform/running/sweeps.ts'
import type { WatchedLabeler } from '../../../platform/configuration/watched-labelers.ts'
import { serviceEndpoint } from '../../../protocol/did-document.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { accountSubject, fileReport } from '../../operations/cases/cases.ts'
import { resolveDid } from '../../identity/identity/identity.ts'
import { LabelTally, MAX_VALUES_PER_ACCOUNT, type AccountLabel } from './account-labels.ts'
import {
  accountPage,
  accountsAmong,
  deleteFlag,
  deleteFlagsOfOthers,
  findFlagsBy,
  putFlags,
  type Flag,
} from './flag-store.ts'

const ACCOUNTS_PER_QUESTION = 20
const LABELS_PER_PAGE = 250
const MAX_PAGES = 100
const TIMEOUT_MILLIS = 10_000
const MAX_PAGE_BYTES = 1024 ** 2

/** The reason why a labeler was skipped in this pass. */
class LabelerFault extends Error {}

export const labelerWatchSweep: Sweep = {
  name: 'labeler-watch',
  intervalSecs: ({ labeler }) => labeler.pollIntervalSecs,
  atStart: true,
  counts: { swept: 'labeler_watch_changes_total' },
  async run(ctx, stopping) {
    const { watched } = ctx.config.labeler
    const report = {
      swept: await ctx.db.transaction((tx) =>
        deleteFlagsOfOthers(
          tx,
          watched.map(({ did }) => did),
        ),
      ),
      errors: 0,
    }
    for (const labeler of watched) {
      try {
        report.swept += await reconcileFlags(ctx, labeler.did, await askLabeler(ctx, labeler, stopping))
      } catch (error) {
        if (!(error instanceof LabelerFault || error instanceof OutboundError || error instanceof LookupsFull))
          throw error
        report.errors++
        ctx.log.warn('labeler skipped; its flags are kept until the next pass', {
          labeler: labeler.did,
          reason: error.message,
        })
      }
    }
    return report
  },
}

/** Returns the labels in force on all accounts. Throws `LabelerFault` or an outbound error if any query fails. */
async function askLabeler(
  ctx: Context,
  { did: labeler, labels: values }: WatchedLabeler,
  stopping: AbortSignal,
): Promise<AccountLabel[]> {
  const resolution = await resolveDid(ctx, labeler)
  const endpoint = resolution.ok ? serviceEndpoint(resolution.document, 'atproto_labeler') : null
  if (endpoint === null) throw new LabelerFault('its DID document names no labeler')
  const holding: AccountLabel[] = []
  for await (const dids of accountBatches(ctx)) {
    const tally = new LabelTally({ labeler, values, dids })
    for await (const label of labelsAbout(ctx, { endpoint, labeler, dids }, stopping))
      if (!tally.add(label))
        throw new LabelerFault(`it returned more than ${MAX_VALUES_PER_ACCOUNT} values for an account`)
    holding.push(...tally.holding(ctx.clock.now()))
  }
  return holding
}

async function* accountBatches({ db }: Context): AsyncGenerator<Did[]> {
  let dids = await accountPage(db, '', ACCOUNTS_PER_QUESTION)
  while (dids.length > 0) {
    yield dids
    dids = await accountPage(db, dids.at(-1)!, ACCOUNTS_PER_QUESTION)
  }
}

async function* labelsAbout(
  ctx: Context,
  { endpoint, labeler, dids }: { endpoint: string; labeler: Did; dids: readonly Did[] },
  stopping: AbortSignal,
): AsyncGenerator<unknown> {
  const question = new URLSearchParams({ sources: labeler, limit: String(LABELS_PER_PAGE) })
  for (const did of dids) question.append('uriPatterns', did)
  for (let page = 0; page < MAX_PAGES; page++) {
    const url = `${endpoint}/xrpc/com.atproto.label.queryLabels?${question}`
    const { labels, cursor } = await labelPage(ctx, url, stopping)
    yield* labels
    if (labels.length === 0 || cursor === null) return
    question.set('cursor', cursor)
  }
  throw new LabelerFault(`it returned more than ${MAX_PAGES} pages`)
}

async function labelPage(
  { outbound }: Context,
  url: string,
  stopping: AbortSignal,
): Promise<{ labels: unknown[]; cursor: string | null }> {
  const response = await outbound.fetch(url, {
    signal: stopping,
    headersTimeoutMillis: TIMEOUT_MILLIS,
    bodyTimeoutMillis: TIMEOUT_MILLIS,
    maxBytes: MAX_PAGE_BYTES,
  })
  const text = await response.text()
  if (!response.ok) throw new LabelerFault(`it returned status ${response.status}`)
  const { labels, cursor } = parsed(text)
  if (!Array.isArray(labels)) throw new LabelerFault('its response is not a list of labels')
  return { labels, cursor: typeof cursor === 'string' && cursor !== '' ? cursor : null }
}

function parsed(text: string): { labels?: unknown; cursor?: unknown } {
  try {
    return (JSON.parse(text) as object | null) ?? {}
  } catch (cause) {
    throw new LabelerFault('its response is not JSON', { cause })
  }
}

/**
 * Make the stored flags of a labeler equal to the labels in force, some at a time, so that requests that write do not
 * wait for all of them. Returns how many flags changed or were deleted.
 */
async function reconcileFlags(ctx: Context, labeler: Did, holding: readonly AccountLabel[]): Promise<number> {
  const stored = new Map((await findFlagsBy(ctx.db, labeler)).map((flag) => [keyOf(flag), flag]))
  const wanted = new Map(holding.map((label): [string, Flag] => [keyOf(label), { labeler, ...label }]))
  const changed = [...wanted].filter(([key, flag]) => !isSame(stored.get(key), flag)).map(([, flag]) => flag)
  const gone = [...stored].filter(([key]) => !wanted.has(key)).map(([, flag]) => flag)
  for (const piece of inPieces(changed))
    await ctx.db.transaction(async (tx) => {
      // The labeler may have taken long to answer.
      const here = await accountsAmong(
        tx,
        piece.map(({ did }) => did),
      )
      const flags = piece.filter(({ did }) => here.has(did))
      await putFlags(tx, flags)
      if (!ctx.config.cases.fromLabels) return
      for (const { did, val } of flags.filter((flag) => !stored.has(keyOf(flag))))
        await fileReport(ctx, tx, accountSubject(did), { source: 'label', by: labeler, reason: val, text: '' })
    })
  for (const piece of inPieces(gone))
    await ctx.db.transaction(async (tx) => {
      for (const flag of piece) await deleteFlag(tx, flag)
    })
  return changed.length + gone.length
}

const keyOf = ({ did, val }: AccountLabel) => `${did} ${val}`
const isSame = (a: Flag | undefined, b: Flag) => a?.labelledAt === b.labelledAt && a.expiresAt === b.expiresAt
