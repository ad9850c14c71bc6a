/** Fetches the JSON documents that clients publish, with a limit on time and size, from public hosts, without redirects. */
import type { Context } from '../../platform/context.ts'
import { LookupsFull } from '../../platform/network/resolver.ts'

const FETCH_TIMEOUT_MILLIS = 5000
const MAX_DOCUMENT_BYTES = 64 * 1024

export type DocumentOutcome = { ok: true; document: unknown } | { ok: false; reason: string }

/**
 * Returns the parsed document, or the reason to report to the client. Throws only `LookupsFull`, when too many names
 * are being looked up.
 */
export async function fetchDocument({ outbound, log }: Pick<Context, 'outbound' | 'log'>, url: string): Promise<DocumentOutcome> {
  try {
    const response = await outbound.fetch(url, {
      headers: { Accept: 'application/json' },
      signal: AbortSignal.timeout(FETCH_TIMEOUT_MILLIS),
      maxBytes: MAX_DOCUMENT_BYTES,
    })
    const contentType = response.headers.get('content-type')?.split(';')[0]!.trim().toLowerCase()
    if (response.status !== 200 || contentType !== 'application/json') {
      await response.body?.cancel()
      return {
        ok: false,
        reason: `it returned ${response.status} and ${contentType ?? 'no content type'} instead of 200 and application/json`,
      }
    }
    return { ok: true, document: await response.json() }
  } catch (error) {
    if (error instanceof LookupsFull) throw error
    log.debug('client document could not be fetched', { url, error })
    return { ok: false, reason: 'it could not be fetched' }
  }
}
