/**
 * The hook that checks a blob before it becomes public: a program of the operator, at `blob_hook.url`. The bytes sent
 * to it, the wait for its response and the number of concurrent requests are bounded.
 *
 * It runs before the blob has a row, so a blob without a verdict does not exist. Loaded on first use.
 */
import { Places, NoPlace } from '../../../base/places.ts'
import { parsedJson } from '../../../base/parsed-json.ts'
import { membersOf } from '../../../base/members.ts'
import { serviceUnavailable } from '../../../http/errors.ts'
import { plainName } from '../../../http/html.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { OutboundError } from '../../../platform/network/outbound.ts'
import { LookupsFull } from '../../../platform/network/resolver.ts'
import { LogRateLimiter } from '../../../platform/running/log-rate-limiter.ts'
import { wireTime } from '../../../protocol/identifiers.ts'
import { parseWebhookSecret, webhookHeaders } from '../../../protocol/webhook-signature.ts'
import type { IncomingBlob } from './blob-storage.ts'
import type { BlobRow } from './blob-store.ts'

const MAX_ANSWER_BYTES = 16 * 1024
const MAX_REASON_CHARS = 200
/** Blobs that may wait, per request in progress. */
const WAITING_PER_PLACE = 16

const decisions = ['allow', 'quarantine', 'refuse'] as const

export interface Verdict {
  decision: (typeof decisions)[number]
  /** For moderators. Empty if the hook gives none. */
  reason: string
}

/** The hook did not respond, or not with a verdict. */
class HookFault extends Error {}

const places = perContext(
  ({ config: { blobHook } }) =>
    new Places({
      size: blobHook.parallel,
      maxWaiting: blobHook.parallel * WAITING_PER_PLACE,
      waitMillis: blobHook.timeoutSecs * 1000,
    }),
)
const faultLines = perContext(({ clock }) => new LogRateLimiter(clock))

/**
 * Ask the hook about a blob. If it does not respond, `blob_hook.on_failure` decides: the verdict is `allow`, or
 * `ServiceUnavailable` is thrown.
 */
export async function askBlobHook(ctx: Context, blob: BlobRow, incoming: IncomingBlob): Promise<Verdict> {
  const { did } = blob
  try {
    // Accounts take turns, whichever addresses they use.
    return await places(ctx).run({ address: did, network: did, provider: did }, () => ask(ctx, blob, incoming))
  } catch (error) {
    const isFault = [HookFault, OutboundError, LookupsFull, NoPlace].some((kind) => error instanceof kind)
    if (!isFault) throw error
    faultLines(ctx).within('hook', (omitted) =>
      ctx.log.warn('no valid response from the blob hook', { did, reason: (error as Error).message, omitted }),
    )
    // Uploaders can cause a crowd themselves, so a crowd must not make the hook fail open.
    const isCrowded = error instanceof NoPlace || error instanceof LookupsFull
    if (ctx.config.blobHook.onFailure === 'open' && !isCrowded) return { decision: 'allow', reason: '' }
    throw serviceUnavailable('Uploads cannot be checked at the moment. Please try again later.')
  }
}

async function ask({ config, clock, upstream }: Context, blob: BlobRow, incoming: IncomingBlob): Promise<Verdict> {
  const { url, secret, maxBytes, timeoutSecs } = config.blobHook
  const key = secret && parseWebhookSecret(secret.reveal())
  if (url === null || key === null) throw new HookFault('it has no address or no secret')
  const start = await incoming.start(maxBytes)
  const now = clock.now()
  const body = JSON.stringify({
    type: 'blob.check',
    timestamp: wireTime(now),
    data: {
      server: config.publicUrl,
      did: blob.did,
      cid: blob.cid,
      mimeType: blob.mimeType,
      size: blob.size,
      bytes: Buffer.from(start).toString('base64'),
      isWhole: start.byteLength === blob.size,
    },
  })
  const timeoutMillis = timeoutSecs * 1000
  const response = await upstream.fetch(url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...webhookHeaders({ id: crypto.randomUUID(), timestampSecs: Math.floor(now / 1000), body }, key),
    },
    body,
    headersTimeoutMillis: timeoutMillis,
    bodyTimeoutMillis: timeoutMillis,
    maxBytes: MAX_ANSWER_BYTES,
  })
  const text = await response.text()
  if (!response.ok) throw new HookFault(`it returned ${response.status}`)
  return verdictIn(text)
}

function verdictIn(text: string): Verdict {
  const { decision: said, reason } = membersOf(parsedJson(text))
  const decision = decisions.find((one) => one === said)
  if (decision === undefined) throw new HookFault('its response has no decision')
  return { decision, reason: typeof reason === 'string' ? plainName(reason, MAX_REASON_CHARS) : '' }
}
