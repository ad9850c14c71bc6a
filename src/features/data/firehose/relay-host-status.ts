/** What a relay says of this server (com.atproto.sync.getHostStatus). */
import { parsedJson } from '../../../base/parsed-json.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import type { Outbound } from '../../../platform/network/outbound.ts'

const TIMEOUT_MILLIS = 8000
const MAX_ANSWER_BYTES = 64 * 1024

export type RelayAnswer =
  | {
      kind: 'known'
      /** `active`, `idle`, `offline`, `throttled` or `banned`; null if it does not say. */
      status: string | null
      /** Number of the last event that it has taken. */
      seq: number | null
      accountCount: number | null
    }
  /** It has never read this server. */
  | { kind: 'not-crawled' }
  | { kind: 'failed'; httpStatus: number }
  | { kind: 'unreachable'; detail: string }

/** Ask the relay at a base URL. Never throws. */
export async function askRelay(
  { config, upstream }: { config: Pick<Config, 'publicUrl'>; upstream: Outbound },
  relay: string,
): Promise<RelayAnswer> {
  const hostname = encodeURIComponent(new URL(config.publicUrl).host)
  try {
    const response = await upstream.fetch(`${relay}/xrpc/com.atproto.sync.getHostStatus?hostname=${hostname}`, {
      headersTimeoutMillis: TIMEOUT_MILLIS,
      bodyTimeoutMillis: TIMEOUT_MILLIS,
      maxBytes: MAX_ANSWER_BYTES,
    })
    const answer = (parsedJson(await response.text()) ?? null) as Record<string, unknown> | null
    if (answer?.['error'] === 'HostNotFound') return { kind: 'not-crawled' }
    if (!response.ok || answer === null) return { kind: 'failed', httpStatus: response.status }
    const { status, seq, accountCount } = answer
    return {
      kind: 'known',
      status: typeof status === 'string' ? status : null,
      seq: integerOrNull(seq),
      accountCount: integerOrNull(accountCount),
    }
  } catch (error) {
    return { kind: 'unreachable', detail: error instanceof Error ? error.message : String(error) }
  }
}

const integerOrNull = (value: unknown) => (typeof value === 'number' && Number.isSafeInteger(value) ? value : null)
