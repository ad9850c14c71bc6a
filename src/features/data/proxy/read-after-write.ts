/**
 * Read-after-write consistency. An AppView indexes a record some time after this server accepted it. Its response
 * header `Atproto-Repo-Rev` names the last commit of the caller's repository that it has indexed. Newer records are
 * added to the response here.
 *
 * If there is nothing to add, or adding fails, the client gets the response of the AppView unchanged.
 */
import { WholeResponse } from '../../../http/encoding.ts'
import type { Outline, XrpcCall } from '../../../http/endpoint.ts'
import { Refusal, upstreamFailure } from '../../../http/errors.ts'
import { parseTid, recordUri, recordUriParts, type Tid } from '../../../protocol/identifiers.ts'
import { validateOutput } from '../../../protocol/lexicons/lexicons.ts'
import { editionBeside } from '../repo/repo.ts'
import { accountAt } from '../../identity/accounts/accounts.ts'
import { isRecorded } from '../../access/callers/callers.ts'
import { acceptableCodings } from './acceptable-codings.ts'
import type { Munge, Output, Params } from './feed-munging.ts'
import { changesSince, localAuthor, type LocalChanges } from './local-records.ts'
import type { Viewer } from './local-views.ts'
import { ask, askJson, callerSigner } from './proxy.ts'
import type { RpcCaller } from './rpc-guard.ts'
import { mungeThread, threadAround } from './thread-munging.ts'
import { isJson, parseJson, passedOn, picked, readUpTo, relayed } from './upstream-reply.ts'
import { isConfigured } from './upstream-services.ts'

export type MungedMethod =
  | 'app.bsky.actor.getProfile'
  | 'app.bsky.actor.getProfiles'
  | 'app.bsky.feed.getActorLikes'
  | 'app.bsky.feed.getAuthorFeed'
  | 'app.bsky.feed.getPostThread'
  | 'app.bsky.feed.getTimeline'

type Call<N extends MungedMethod> = XrpcCall<RpcCaller, Params<N>, null>

const REV_HEADER = 'atproto-repo-rev'
const LAG_HEADER = 'Atproto-Upstream-Lag'

/**
 * Longer responses are passed on unchanged: parsing, checking and writing one MiB takes up to 50 ms. Large threads and
 * timelines are that long. A service that the caller chose may send whatever takes longest, so less of its responses is
 * read.
 */
const maxMungedBytes = { configured: 2 * 1024 ** 2, chosen: 512 * 1024 }
/** Longest response about a record that a new post quotes. There may be one for each new post. */
const MAX_QUOTED_BYTES = 64 * 1024

/** Headers that remain correct when the response body is changed. */
const keptHeaders = ['content-language', 'atproto-content-labelers']

/**
 * Forward a query and add the caller's newer records to the response. Throws `NotAcceptable` or `InvalidRequest` for
 * the client's `Accept-Encoding`, and `UpstreamFailure` if the response that has to be read is cut off.
 * Otherwise throws as `forward` does.
 */
export async function readAfterWrite<N extends MungedMethod>(
  call: Call<N>,
  nsid: N,
  munge: Munge<N>,
): Promise<Response | Outline> {
  const { ctx, request, caller } = call
  const acceptEncoding = acceptableCodings(request.headers.get('accept-encoding'))
  const signer = await callerSigner<{ rev: Tid | null }>(call, caller, editionBeside)
  const response = await ask(call, { service: caller.service, caller, signer, acceptEncoding })
  const rev = parseTid(response.headers.get(REV_HEADER) ?? '')
  if (response.status >= 400 || rev === null || !isJson(response)) return relayed(request, response)
  // Usually the service has indexed all that was written before the request came.
  const ownRev = signer?.beside.rev ?? null
  if (ownRev === null || ownRev <= rev) return relayed(request, response)
  const changes = await changesSince(ctx, caller.did, rev)
  if (changes === null) return relayed(request, response)
  const maxBytes = maxBytesFor(call)
  const bytes = await readUpTo(response, maxBytes)
  if (bytes === null) throw upstreamFailure()
  if (!(bytes instanceof Uint8Array) || bytes.length > maxBytes) return passedOn(response, bytes)
  const munged = await mungedOutput(
    call,
    nsid,
    munge,
    changes,
    parseJson(bytes, response.headers.get('content-encoding'), maxBytes),
  )
  if (isRecorded(caller)) await call.revalidate(ctx.db)
  if (munged === null) return passedOn(response, bytes)
  return mungedResponse(call, munged, changes, picked(response.headers, keptHeaders))
}

const maxBytesFor = ({ ctx, caller }: Call<MungedMethod>): number =>
  maxMungedBytes[isConfigured(ctx.config, caller.service) ? 'configured' : 'chosen']

/** Returns null if the response does not match the lexicon, if nothing is to be added, or if that fails. */
async function mungedOutput<N extends MungedMethod>(
  call: Call<N>,
  nsid: N,
  munge: Munge<N>,
  changes: LocalChanges,
  body: unknown,
): Promise<Output<N> | null> {
  const checked = validateOutput(nsid, body)
  if (!checked.ok) return null
  return attempt(call, async () => munge(await viewerOf(call), checked.value as Output<N>, changes, call.params))
}

/** Returns null if `make` fails, and logs the error. */
async function attempt<T>({ ctx, nsid }: Call<MungedMethod>, make: () => Promise<T>): Promise<T | null> {
  try {
    return await make()
  } catch (error) {
    ctx.log.warn('could not add recent records; response passed on unchanged', { route: nsid, error })
    return null
  }
}

function mungedResponse(
  { ctx }: Call<MungedMethod>,
  output: unknown,
  { oldestAt }: LocalChanges,
  headers: Record<string, string>,
): Response {
  const lag: Record<string, string> =
    oldestAt === null ? {} : { [LAG_HEADER]: String(Math.max(0, ctx.clock.now() - oldestAt)) }
  const text = JSON.stringify(output)
  const own = { 'Content-Type': 'application/json; charset=utf-8', 'Content-Length': String(Buffer.byteLength(text)) }
  return new WholeResponse(text, { headers: { ...headers, ...lag, ...own } })
}

async function viewerOf(call: Call<MungedMethod>): Promise<Viewer> {
  const { ctx, caller } = call
  return {
    author: await localAuthor(ctx, caller.did),
    cdnUrl: ctx.config.appview.cdnUrl,
    ask: (lxm, params) =>
      askJson(call, {
        service: caller.service,
        caller,
        lxm,
        path: `/xrpc/${lxm}?${new URLSearchParams(params)}`,
        maxBytes: lxm === call.nsid ? maxBytesFor(call) : MAX_QUOTED_BYTES, // the same method: ancestors of a thread
      }),
  }
}

/**
 * As `readAfterWrite`, but if the AppView does not know the caller's new post yet, returns a thread that is built here.
 */
export async function readThread(call: Call<'app.bsky.feed.getPostThread'>): Promise<Response | Outline> {
  try {
    return await readAfterWrite(call, 'app.bsky.feed.getPostThread', mungeThread)
  } catch (error) {
    const rev =
      error instanceof Refusal && error.name === 'NotFound' ? parseTid(error.options.headers?.[REV_HEADER] ?? '') : null
    const own = rev && (await ownThread(call, rev))
    if (!own) throw error
    return own
  }
}

async function ownThread(call: Call<'app.bsky.feed.getPostThread'>, rev: Tid): Promise<Response | null> {
  const { ctx, caller, params } = call
  const { authority, collection, rkey } = recordUriParts(params.uri)
  const owner = await accountAt(ctx.db, authority)
  const changes = owner?.did === caller.did ? await changesSince(ctx, caller.did, rev) : null
  if (!changes) return null
  const thread = await attempt(call, async () =>
    threadAround(await viewerOf(call), recordUri(caller.did, `${collection}/${rkey}`), changes, params),
  )
  if (isRecorded(caller)) await call.revalidate(ctx.db)
  return thread && mungedResponse(call, thread, changes, {})
}
