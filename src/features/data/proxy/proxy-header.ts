/**
 * The `atproto-proxy` header, which names a service as `<did>#<service>`. Source: atproto "HTTP API (XRPC)", "Service
 * Proxying".
 */
import { parseDid, type Did } from '../../../protocol/identifiers.ts'

/** A service: its DID, and the fragment of its entry in the DID document. */
export interface ServiceName {
  did: Did
  /** Without the `#`. */
  fragment: string
}

export type ParsedProxyHeader = { ok: true; service: ServiceName } | { ok: false; fault: string }

/** Returns `<did>#<fragment>`, the form in which a scope names its audience. */
export const serviceText = ({ did, fragment }: ServiceName): string => `${did}#${fragment}`

/** Returns the service, or the fault as a message for the client, in the wording that existing clients know. */
export function parseProxyHeader(text: string): ParsedProxyHeader {
  const hash = text.indexOf('#')
  if (hash === 0) return { ok: false, fault: 'no did specified in proxy header' }
  if (hash === -1 || hash === text.length - 1) return { ok: false, fault: 'no service id specified in proxy header' }
  if (text.includes('#', hash + 1)) return { ok: false, fault: 'invalid proxy header format' }
  if (text.includes(' ')) return { ok: false, fault: 'proxy header cannot contain spaces' }
  const did = parseDid(text.slice(0, hash))
  return did === null
    ? { ok: false, fault: 'could not resolve proxy did' }
    : { ok: true, service: { did, fragment: text.slice(hash + 1) } }
}
