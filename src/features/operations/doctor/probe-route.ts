/**
 * Reports how a request of the doctor arrived at the server. Only operators may call it, because the response reveals
 * which proxies the server trusts.
 */
import { route } from '../../../http/endpoint.ts'
import { parseHost } from '../../../http/host.ts'
import { operator } from '../operators/operators.ts'

export const PROBE_PATH = '/v1/admin/probe'
/** A request with this header is answered with `PADDING_BYTES` more of headers. */
export const PADDING_HEADER = 'x-probe-padding'
/** A response that leads back to an app carries its `state` in `Location`: 2 KiB, each byte written as three. */
const PADDING_BYTES = 8192
const MAX_PROBE_BYTES = 64 * 1024 ** 2

export interface Probed {
  /** The client address that the server determined. */
  address: string
  /** The X-Forwarded-For header, or else the Forwarded header; null if neither was sent. */
  forwardedFor: string | null
  /**
   * The host that decides what is served, in lower case and without a port; null if it is none. Missing in the answers
   * of earlier versions.
   */
  host?: string | null
  /** Length of the body, which is read and discarded. */
  bytes: number
}

export const probeRoute = route('POST', PROBE_PATH, {
  auth: operator(),
  async handler({ ip, request, forwardedHost, body }): Promise<Response> {
    let bytes = 0
    for await (const chunk of body.stream(MAX_PROBE_BYTES)) bytes += chunk.byteLength
    const { headers } = request
    const probed: Probed = {
      address: ip,
      forwardedFor: headers.get('x-forwarded-for') ?? headers.get('forwarded'),
      host: parseHost(forwardedHost || headers.get('host') || '')?.name ?? null,
      bytes,
    }
    const padding = { [PADDING_HEADER]: 'x'.repeat(PADDING_BYTES) }
    return Response.json(probed, { headers: headers.has(PADDING_HEADER) ? padding : {} })
  },
})
