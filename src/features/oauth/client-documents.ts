/** Fetching what a client publishes: small JSON, quickly, from public hosts, without following anybody elsewhere. */
import type { Context } from '../../platform/context.ts'
import { LookupsFull } from '../../platform/network/resolver.ts'

const FETCH_TIMEOUT_MILLIS = 5000
const MAX_DOCUMENT_BYTES = 64 * 1024

export type DocumentOutcome = { ok: true; document: unknown } | { ok: false; reason: string }

/** Whatever is wrong is the client's trouble, and is told to it. Throws only `LookupsFull`. */
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
        reason: `it answered ${response.status} and ${contentType ?? 'no content type'} instead of 200 and application/json`,
      }
    }
    return { ok: true, document: await response.json() }
  } catch (error) {
    if (error instanceof LookupsFull) throw error
    log.debug('document of a client not fetched', { url, error })
    return { ok: false, reason: 'it could not be fetched' }
  }
}
