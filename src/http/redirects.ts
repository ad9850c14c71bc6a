/** The port for requests that are not encrypted: it answers HTTP-01 challenges, and sends everything else to HTTPS. */
import type { Config } from '../platform/configuration/config.ts'
import type { CertificateShelf } from '../platform/network/certificate-shelf.ts'
import { parseHost } from './host.ts'
import { openOr } from './listener.ts'

const IDLE_TIMEOUT_SECS = 10
/** No request here needs a body. */
const MAX_BODY_BYTES = 0
/** RFC 8555, 8.3. */
const CHALLENGE_PATH = '/.well-known/acme-challenge/'

export interface Redirects {
  close(): Promise<void>
}

/** Open `tls.http_port`. Throws an error for the operator, from `listenFault`, if that fails. */
export function openRedirects(
  { bindAddress, publicUrl, tls }: Config,
  shelf: Pick<CertificateShelf, 'answerTo'>,
): Redirects {
  const { port } = new URL(publicUrl)
  const secure = port === '' ? '' : `:${port}`
  const answer = ({ url, headers }: Request): Response => {
    const host = parseHost(headers.get('host') ?? '')
    if (host === null) return new Response('The Host header is missing or names no host\n', { status: 400 })
    const { pathname, search } = new URL(url)
    if (!pathname.startsWith(CHALLENGE_PATH))
      return new Response(null, {
        status: 308,
        headers: { Location: `https://${host.name}${secure}${pathname}${search}` },
      })
    const proof = shelf.answerTo(pathname.slice(CHALLENGE_PATH.length))
    return proof === null ? new Response('no such challenge\n', { status: 404 }) : new Response(proof)
  }
  const server = openOr(
    () =>
      Bun.serve({
        hostname: bindAddress,
        port: tls.httpPort,
        development: false,
        idleTimeout: IDLE_TIMEOUT_SECS,
        maxRequestBodySize: MAX_BODY_BYTES,
        fetch: answer,
      }),
    { bindAddress, port: tls.httpPort, key: 'tls.http_port' },
  )
  return { close: () => server.stop(true) }
}
