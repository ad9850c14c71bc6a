/**
 * Failed requests by the id that users read off an error. The server keeps them in memory. The nodes of a cluster also
 * share theirs in a table, so that any node finds the requests of all nodes, some seconds later.
 */
import { route } from '../../../http/endpoint.ts'
import { invalidRequest } from '../../../http/errors.ts'
import { failuresHere, isFailure, takeUnsavedFailures, type FailedRequest } from '../../../http/failure-memory.ts'
import type { Feature } from '../../../http/feature.ts'
import { byPair, pageOf, type Pages } from '../../../http/paged-list.ts'
import type { Context } from '../../../platform/context.ts'
import { wireTime } from '../../../protocol/identifiers.ts'
import { operator } from '../operators/operators.ts'
import { listSavedFailures, saveFailures, type FailureFilter, type FailurePlace } from './failed-request-store.ts'

const pages: Pages<FailurePlace> = { cursor: byPair('at', '|', 'id'), maxRows: 100 }

const idPattern = /^[0-9a-f][0-9a-f-]{3,35}$/

const kinds: Readonly<Record<string, boolean>> = { failed: true, refused: false }

export const failedRequests: Feature = {
  name: 'failed-requests',
  enabled: ({ config }) => config.console.keptFailures > 0,
  routes: [
    /** `id`: the id of a request, or four of its first characters or more. `kind`: `failed` or `refused`. */
    route('GET', '/v1/admin/requests', {
      auth: operator('observe'),
      async handler({ ctx, url: { searchParams } }) {
        const id = searchParams.get('id')?.trim().toLowerCase() || null
        if (id !== null && !idPattern.test(id)) throw invalidRequest('id must be that of a request, or its beginning')
        const kind = searchParams.get('kind') || null
        if (kind !== null && !Object.hasOwn(kinds, kind)) throw invalidRequest('kind must be failed or refused')
        const isFault = kind === null ? null : kinds[kind]!
        const { rows, cursor } = await pageOf(searchParams, pages, (before, limit) =>
          listFailures(ctx, { id, isFault, before }, limit),
        )
        return { requests: rows.map(({ at, ...request }) => ({ ...request, at: wireTime(at) })), cursor }
      },
    }),
  ],
  reclaim: share,
}

/** Shares the failed requests of this node with the others. */
async function share(ctx: Context): Promise<void> {
  const { cluster } = ctx.db
  const unsaved = cluster === null ? [] : takeUnsavedFailures(ctx)
  if (cluster !== null && unsaved.length > 0) await saveFailures(cluster, unsaved, ctx.config.console.keptFailures)
}

async function listFailures(ctx: Context, filter: FailureFilter, limit: number): Promise<FailedRequest[]> {
  if (ctx.db.cluster !== null) {
    await share(ctx)
    return listSavedFailures(ctx.db, filter, limit)
  }
  const { id, isFault, before } = filter
  return failuresHere(ctx)
    .filter(
      (request) =>
        (id === null || request.id.startsWith(id)) &&
        (isFault === null || isFailure(request.status) === isFault) &&
        (before === null || newestFirst(before, request) < 0),
    )
    .toSorted(newestFirst)
    .slice(0, limit)
}

const newestFirst = (a: FailurePlace, b: FailurePlace): number =>
  b.at - a.at || (b.id < a.id ? -1 : b.id > a.id ? 1 : 0)
