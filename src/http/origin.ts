/** With what and from where somebody signs in: enough to tell one's own sessions apart, too little to follow anybody. */
import { networkOf } from '../protocol/ip-address.ts'
import type { Millis } from '../protocol/identifiers.ts'
import { programOf } from '../protocol/user-agent.ts'
import type { Exchange } from './endpoint.ts'

export interface Origin {
  openedAt: Millis
  /** App, browser and system, as far as the request tells: `bsky.app in Firefox on Linux`. */
  openedWith: string | null
  /** The network of the address, such as `192.0.2.0/24`. */
  openedFrom: string | null
}

/** Of a scheme, a host name and a port; what is longer is no origin. */
const MAX_ORIGIN_CHARS = 270

/** Of a row that may be older than what is kept of origins. */
export type KnownOrigin = Omit<Origin, 'openedAt'> & { openedAt: Millis | null }

export function originOf({ ctx, request, ip }: Exchange): Origin {
  const program = programOf(request.headers.get('user-agent') ?? '')
  const site = siteOf(request.headers.get('origin'), ctx.config.publicUrl)
  const openedWith = site === null ? program : `${site}${program === null ? '' : ` in ${program}`}`
  return { openedAt: ctx.clock.now(), openedWith, openedFrom: networkOf(ip) }
}

/** The web app that a browser sends a request for; null when it is a page of ours, or no browser. */
function siteOf(origin: string | null, publicUrl: string): string | null {
  if (origin === null || origin === publicUrl || origin.length > MAX_ORIGIN_CHARS || !/^https?:/.test(origin)) return null
  return URL.parse(origin)?.host ?? null
}
