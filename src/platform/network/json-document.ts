/** Fetches JSON documents that others publish, with a limit on time and size, without redirects. */
import { parsedJson } from '../../base/parsed-json.ts'
import type { Log } from '../running/log.ts'
import type { Outbound } from './outbound.ts'
import { LookupsFull } from './resolver.ts'

const FETCH_TIMEOUT_MILLIS = 5000
const MAX_DOCUMENT_BYTES = 64 * 1024

export type DocumentOutcome = { ok: true; document: unknown } | { ok: false; reason: string }

/**
 * Returns the parsed document, or the reason to report. `mediaTypes` are those that the host may send; null permits
 * all. Throws only `LookupsFull`, when too many names are being looked up.
 */
export async function fetchDocument(
  { outbound, log }: { outbound: Outbound; log: Log },
  url: string,
  mediaTypes: readonly string[] | null = ['application/json'],
): Promise<DocumentOutcome> {
  try {
    const response = await outbound.fetch(url, {
      headers: { Accept: 'application/json' },
      signal: AbortSignal.timeout(FETCH_TIMEOUT_MILLIS),
      maxBytes: MAX_DOCUMENT_BYTES,
    })
    const contentType = response.headers.get('content-type')?.split(';')[0]!.trim().toLowerCase()
    if (response.status !== 200 || (mediaTypes !== null && !mediaTypes.includes(contentType ?? ''))) {
      await response.body?.cancel()
      return {
        ok: false,
        reason: `it returned ${response.status} and ${contentType ?? 'no content type'} instead of 200 and ${(mediaTypes ?? ['JSON']).join(' or ')}`,
      }
    }
    const document = parsedJson(await response.text())
    return document === undefined
      ? { ok: false, reason: 'it is not JSON, or nested too deeply' }
      : { ok: true, document }
  } catch (error) {
    if (error instanceof LookupsFull) throw error
    log.debug('could not fetch a document', { url, error })
    return { ok: false, reason: 'it could not be fetched' }
  }
}
