/**
 * Reports how a request of the doctor arrived at the server. Only operators may call it, because the response reveals
 * which proxies the server trusts.
 */
import { route } from '../../../http/endpoint.ts'
import { operator } from '../operators/operators.ts'

export const PROBE_PATH = '/v1/admin/probe'
const MAX_PROBE_BYTES = 64 * 1024 ** 2

export interface Probed {
  /** The client address that the server determined. */
  address: string
  /** The X-Forwarded-For header, or else the Forwarded header; null if neither was sent. */
  forwardedFor: string | null
  /** Length of the body, which is read and discarded. */
  bytes: number
}

export const probeRoute = route('POST', PROBE_PATH, {
  auth: operator(),
  async handler({ ip, request, body }): Promise<Probed> {
    let bytes = 0
    for await (const chunk of body.stream(MAX_PROBE_BYTES)) bytes += chunk.byteLength
    return {
      address: ip,
      forwardedFor: request.headers.get('x-forwarded-for') ?? request.headers.get('forwarded'),
      bytes,
    }
  },
})
