/**
 * Resolves a handle to the DID that its owner published, in DNS or on the web. The caller checks whether that DID also
 * claims the handle.
 *
 * Source: atproto "Handle", "Handle Resolution".
 */
import type { Context } from '../../../platform/context.ts'
import { OutboundError } from '../../../platform/network/outbound.ts'
import { LookupsFull } from '../../../platform/network/resolver.ts'
import { recordedDid } from '../../../protocol/dns-did.ts'
import { parseDid, type Did, type Handle } from '../../../protocol/identifiers.ts'

const WEB_TIMEOUT_MILLIS = 3000
const MAX_ANSWER_BYTES = 4096
const MAX_REDIRECTS = 3

/**
 * Returns the DID that is published for a handle, in DNS or else on the web. Returns null if neither place has a usable
 * DID. Nothing is cached. Throws `LookupsFull` if too many names are being looked up.
 */
export async function lookUpHandle(ctx: Pick<Context, 'resolver' | 'outbound'>, handle: Handle): Promise<Did | null> {
  return (await askDns(ctx, handle)) ?? (await askWeb(ctx, handle))
}

export interface PublishedDids {
  dns: Did | null
  web: Did | null
}

/**
 * Returns the DIDs that are published in DNS and on the web, for callers that show which one is missing. Null stands
 * for a place without a usable DID. Throws `LookupsFull` if too many names are being looked up.
 */
export async function publishedDids(
  ctx: Pick<Context, 'resolver' | 'outbound'>,
  handle: Handle,
): Promise<PublishedDids> {
  const [dns, web] = await Promise.all([askDns(ctx, handle), askWeb(ctx, handle)])
  return { dns, web }
}

const askDns = ({ resolver }: Pick<Context, 'resolver'>, handle: Handle): Promise<Did | null> =>
  resolver.texts(`_atproto.${handle}`).then(recordedDid, (error: unknown) => {
    if (error instanceof LookupsFull) throw error
    return null
  })

async function askWeb({ outbound }: Pick<Context, 'outbound'>, handle: Handle): Promise<Did | null> {
  try {
    const response = await outbound.fetch(`https://${handle}/.well-known/atproto-did`, {
      headersTimeoutMillis: WEB_TIMEOUT_MILLIS,
      bodyTimeoutMillis: WEB_TIMEOUT_MILLIS,
      maxBytes: MAX_ANSWER_BYTES,
      maxRedirects: MAX_REDIRECTS,
      fresh: true,
    })
    if (!response.ok) {
      await response.body?.cancel()
      return null
    }
    const [firstLine = ''] = (await response.text()).trim().split('\n')
    return parseDid(firstLine.trim())
  } catch (error) {
    if (error instanceof OutboundError) return null
    throw error
  }
}
