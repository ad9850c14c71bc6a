/** How a request of the doctor arrived, which only the server can tell. For operators alone: it says what the server believes about addresses. */
import { route } from '../../http/endpoint.ts'
import { operator } from '../operators/operators.ts'

export const PROBE_PATH = '/v1/admin/probe'
const MAX_PROBE_BYTES = 64 * 1024 ** 2

export interface Probed {
  /** Where the server takes the request to come from. */
  address: string
  /** What the proxy said about it. */
  forwardedFor: string | null
  /** Of the body, which is read and dropped. */
  bytes: number
}

export const probeRoute = route('POST', PROBE_PATH, {
  auth: operator(),
  async handler({ ip, request, body }): Promise<Probed> {
    let bytes = 0
    for await (const chunk of body.stream(MAX_PROBE_BYTES)) bytes += chunk.byteLength
    return { address: ip, forwardedFor: request.headers.get('x-forwarded-for') ?? request.headers.get('forwarded'), bytes }
  },
})
