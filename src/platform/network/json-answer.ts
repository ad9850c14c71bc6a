/** A short question to a service that the operator configured, and its answer in JSON. */
import { parsedJson } from '../../base/parsed-json.ts'
import type { Outbound } from './outbound.ts'

const TIMEOUT_MILLIS = 8000
const MAX_ANSWER_BYTES = 256 * 1024

/** `json` is undefined if the body is not JSON. */
export type JsonAnswer = { ok: true; status: number; json: unknown } | { ok: false; detail: string }

/** Get a URL. Never throws: if there is no answer, `detail` says why. */
export async function askJson(upstream: Outbound, url: string): Promise<JsonAnswer> {
  try {
    const response = await upstream.fetch(url, {
      headersTimeoutMillis: TIMEOUT_MILLIS,
      bodyTimeoutMillis: TIMEOUT_MILLIS,
      maxBytes: MAX_ANSWER_BYTES,
    })
    return { ok: true, status: response.status, json: parsedJson(await response.text()) }
  } catch (error) {
    return { ok: false, detail: error instanceof Error ? error.message : String(error) }
  }
}
