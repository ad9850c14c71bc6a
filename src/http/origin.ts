/** Which app and network a sign-in came from: enough to recognise one's own sessions, too little to track a person. */
import { networkOf } from '../protocol/ip-address.ts'
import type { Millis } from '../protocol/identifiers.ts'
import { programOf } from '../protocol/user-agent.ts'
import type { Exchange } from './endpoint.ts'

export interface Origin {
  openedAt: Millis
  /**
   * App, browser and system as far as the request reveals them, such as `bsky.app in Firefox on Linux`; null if
   * unknown.
   */
  openedWith: string | null
  /** Network of the client address, such as `192.0.2.0/24`; null if unknown. */
  openedFrom: string | null
}

/** A scheme, a host name and a port fit; a longer header is ignored. */
const MAX_ORIGIN_CHARS = 270

/** The origin in a row that may predate the recording of origins. */
export type KnownOrigin = Omit<Origin, 'openedAt'> & { openedAt: Millis | null }

export function requestOrigin({ ctx, request, ip }: Exchange): Origin {
  const program = programOf(request.headers.get('user-agent') ?? '')
  const site = siteOf(request.headers.get('origin'), ctx.config.publicUrl)
  const openedWith = site === null ? program : `${site}${program === null ? '' : ` in ${program}`}`
  return { openedAt: ctx.clock.now(), openedWith, openedFrom: networkOf(ip) }
}

/**
 * Returns the host of the web app that sent the request; null for our own pages and for clients that are not browsers.
 */
function siteOf(origin: string | null, publicUrl: string): string | null {
  if (origin === null || origin === publicUrl || origin.length > MAX_ORIGIN_CHARS || !/^https?:/.test(origin))
    return null
  return URL.parse(origin)?.host ?? null
}
