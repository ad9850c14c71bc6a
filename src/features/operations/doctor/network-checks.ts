/** Checks of how requests reach the server: DNS, certificate, the server itself and its reverse proxy. */
import { connect as connectTls } from 'node:tls'
import { DAY_MILLIS, MINUTE_MILLIS } from '../../../base/durations.ts'
import { parsedJson } from '../../../base/parsed-json.ts'
import { isNear } from '../../../http/client-address.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import { ownUrl } from '../../../platform/configuration/own-url.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import type { Resolver } from '../../../platform/network/resolver.ts'
import { isNearEnd } from '../certificates/certificates.ts'
import {
  ask,
  fault,
  followerHere,
  ok,
  skipped,
  TIMEOUT_MILLIS,
  warning,
  wordsOf,
  type Check,
  type Finding,
  type Patient,
} from './finding.ts'
import { PADDING_HEADER, PROBE_PATH, type Probed } from './probe-route.ts'

/** First label of the test name: it stands for any handle under a served domain. */
const SOME_LABEL = 'holdfast-doctor-check'
/** Size of the test body. The default limits of most proxies are far smaller, and uploads are seldom larger. */
const BIG_BODY_BYTES = 16 * 1024 ** 2
const BIG_BODY_TIMEOUT_MILLIS = MINUTE_MILLIS
/** A documentation address (RFC 5737 section 3), which no host has. The test request claims to come from it. */
const CLAIMED_ADDRESS = '192.0.2.77'

export const networkChecks: readonly Check[] = [
  { name: 'dns', run: checkDns },
  { name: 'handles', run: checkHandles },
  { name: 'tls', needs: 'dns', run: checkTls },
  { name: 'server', run: checkServer },
  { name: 'operator', run: checkOperator },
  { name: 'proxy', needs: 'server', run: checkProxy },
  { name: 'client-address', needs: 'proxy', run: checkClientAddress },
  { name: 'host', needs: 'proxy', run: checkHost },
  { name: 'header-size', needs: 'host', run: checkHeaderSize },
  { name: 'body-size', needs: 'proxy', run: checkBodySize },
  { name: 'websocket', needs: 'proxy', run: checkWebSocket },
  { name: 'oauth', needs: 'proxy', run: checkOAuth },
]

async function checkDns({ config, resolver }: Patient): Promise<Finding> {
  const { hostname } = new URL(config.publicUrl)
  const addresses = await addressesOf(resolver, hostname)
  return addresses.length > 0
    ? ok(`${hostname} resolves to ${addresses.join(', ')}`)
    : fault(`${hostname} has no address`, `add an A (and AAAA) record for ${hostname} that points to this server`)
}

/** Handles are host names, so each served domain needs a wildcard DNS record. */
async function checkHandles({ config, resolver }: Patient): Promise<Finding> {
  const without: string[] = []
  for (const domain of config.availableUserDomains) {
    const name = `${SOME_LABEL}.${domain}`
    if ((await addressesOf(resolver, name)).length === 0) without.push(`*.${domain}`)
  }
  return without.length === 0
    ? ok(`${config.availableUserDomains.map((domain) => `*.${domain}`).join(', ')} resolve`)
    : fault(
        `${without.join(', ')} do not resolve`,
        `add a wildcard record for ${without.join(', ')}: without it, handles cannot be verified`,
      )
}

const addressesOf = (resolver: Resolver, name: string): Promise<readonly string[]> =>
  resolver.addresses(name).catch(() => [])

async function checkTls({ config, now }: Patient): Promise<Finding> {
  const { protocol, hostname } = new URL(config.publicUrl)
  if (protocol !== 'https:')
    return warning(
      'public_url is not an https address',
      'set public_url to an https address before others use the server',
    )
  const term = await certificateTerm(config)
  if (term === null) return fault(`no TLS response from ${hostname}`, 'open port 443 and start the reverse proxy')
  if (term instanceof Error)
    return fault(
      `TLS with ${hostname} failed: ${term.message}`,
      'get a certificate for the host name, or let the reverse proxy get one',
    )
  const text = termWords(hostname, term, now())
  return isNearEnd(term, now()) ? warning(text, 'find out why the certificate is not being renewed') : ok(text)
}

/** The term of validity of a certificate. */
export interface CertificateTerm {
  notBefore: Millis
  notAfter: Millis
}

export function termWords(hostname: string, { notAfter }: CertificateTerm, now: Millis): string {
  const days = Math.floor(Math.abs(notAfter - now) / DAY_MILLIS)
  return notAfter > now
    ? `the certificate of ${hostname} is valid for ${days} more days`
    : `the certificate of ${hostname} ended ${days} days ago`
}

/**
 * Returns the term of the certificate at the public address; null if there is no answer in time, an error if the
 * connection fails. With `mayBeInvalid`, an invalid certificate does not make the connection fail.
 */
export async function certificateTerm(
  { publicUrl }: Pick<Config, 'publicUrl'>,
  { mayBeInvalid = false } = {},
): Promise<CertificateTerm | Error | null> {
  const { hostname: host, port } = new URL(publicUrl)
  const { promise, resolve } = Promise.withResolvers<CertificateTerm | Error | null>()
  const where = { host, port: Number(port || 443), servername: host, timeout: TIMEOUT_MILLIS }
  const socket = connectTls({ ...where, rejectUnauthorized: !mayBeInvalid }, () => {
    const { valid_from: from, valid_to: to } = socket.getPeerCertificate()
    resolve({ notBefore: Date.parse(from), notAfter: Date.parse(to) })
  })
  socket.on('timeout', () => resolve(null))
  socket.on('error', resolve)
  const term = await promise
  socket.destroy()
  return term
}

const DESCRIPTION_PATH = '/xrpc/com.atproto.server.describeServer'
const didOf = (json: unknown) => (json as { did?: unknown } | null | undefined)?.did

async function checkServer(patient: Patient): Promise<Finding> {
  const { config } = patient
  const url = ownUrl(config)
  const answer = await ask(patient, url + DESCRIPTION_PATH)
  if (typeof answer === 'string')
    return fault(
      `no server listens at ${url}`,
      'start it ("holdfast serve", or "systemctl start holdfast"), and read its log if it stops',
    )
  if (didOf(answer.json) === config.serverDid) return ok(`the server listens at ${url}`)
  const follower = await followerHere(patient)
  if (follower !== null) return skipped(follower.reason)
  return fault(
    `the program at ${url} is not ${config.serverDid}`,
    'stop that program, or set port (SERVICE_PORT) to another port; restart the server if its configuration has changed',
  )
}

async function checkOperator({ config: { adminToken, inviteCodeRequired } }: Patient): Promise<Finding> {
  if (adminToken !== null) return ok('the admin token is set')
  return warning(
    `there is no operator credential${inviteCodeRequired ? ', and sign-up requires invite codes that only an operator can create' : ''}`,
    'set admin_token (SERVICE_ADMIN_TOKEN), for example to the output of "openssl rand -hex 32", and restart the server',
  )
}

/** Check that the public address leads to this server. */
async function checkProxy(patient: Patient): Promise<Finding> {
  const { config } = patient
  const { hostname } = new URL(config.publicUrl)
  const answer = await ask(patient, config.publicUrl + DESCRIPTION_PATH)
  if (typeof answer === 'string')
    return fault(`${hostname} cannot be reached from here: ${answer}`, 'start the reverse proxy, and open the firewall')
  if (didOf(answer.json) === config.serverDid) return ok(`requests to ${hostname} reach this server`)
  return fault(
    `${hostname} returns ${answer.status}, but not as ${config.serverDid}`,
    `let the reverse proxy forward ${hostname} to port ${config.port} with the Host header unchanged`,
  )
}

/** Returns true if there is no proxy in front of the server: it encrypts connections itself, or is in development. */
function isDirect({ publicUrl, port, tls }: Config): boolean {
  if (tls.mode !== 'off') return true
  const url = new URL(publicUrl)
  return url.protocol === 'http:' && url.port === String(port)
}

/**
 * Send a probe through the public address. Returns how it arrived at the server, the status if something else
 * responded, or a finding if the probe is unnecessary or impossible. Throws if there is no response.
 */
async function probe(
  { config, upstream }: Patient,
  body: Uint8Array<ArrayBuffer>,
  more: Record<string, string> = {},
): Promise<Probed | { status: number } | Finding> {
  if (isDirect(config)) return ok('there is no reverse proxy in front of the server')
  if (config.adminToken === null) return skipped('needs the admin token')
  const headers = {
    authorization: `Bearer ${config.adminToken.reveal()}`,
    'content-type': 'application/json',
    'x-forwarded-for': CLAIMED_ADDRESS,
    ...more,
  }
  const response = await upstream.fetch(config.publicUrl + PROBE_PATH, {
    method: 'POST',
    headers,
    body,
    headersTimeoutMillis: BIG_BODY_TIMEOUT_MILLIS,
  })
  const text = await response.text()
  const json = parsedJson(text) as Partial<Probed> | undefined
  if (response.ok && typeof json?.bytes === 'number') return json as Probed
  if (response.status === 401)
    return fault(
      'the running server does not accept the admin token of this configuration',
      'restart the server, or run the doctor with the configuration of the server',
    )
  return { status: response.status }
}

async function checkClientAddress(patient: Patient): Promise<Finding> {
  const seen = await probe(patient, new Uint8Array(0))
  if ('state' in seen) return seen
  if ('status' in seen)
    return fault(
      `a request through the public address gets status ${seen.status} from something other than the server`,
      'let the reverse proxy forward every path and method',
    )
  const { address, forwardedFor } = seen
  if (forwardedFor === null)
    return fault(
      `the proxy does not send the client's address: all clients appear as ${address} and share one rate limit`,
      'let the reverse proxy set X-Forwarded-For (nginx: proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;)',
    )
  if (forwardedFor.trim() === CLAIMED_ADDRESS)
    return fault(
      'the proxy forwards X-Forwarded-For unchanged: clients can choose the address that rate limits count',
      'let the reverse proxy append the client address that it sees, or replace the header with it',
    )
  if (!forwardedFor.includes(address) && !isNear(address))
    return fault(
      `the proxy at ${address} is not trusted to name the client: all clients share one rate limit`,
      `add ${address} to trusted_proxies`,
    )
  return ok("the proxy sends the client's address")
}

/** The host of a request tells a handle from the service: only there is the proof of the handle. */
async function checkHost(patient: Patient): Promise<Finding> {
  const seen = await probe(patient, new Uint8Array(0))
  if ('state' in seen) return seen
  if ('status' in seen) return skipped('the request does not reach the server: see client-address')
  if (seen.host === undefined) return skipped('the running server is of a version that does not say: restart it')
  const { hostname } = new URL(patient.config.publicUrl)
  if (seen.host === hostname) return ok('the proxy forwards the Host header')
  return fault(
    `a request to ${hostname} reaches the server as one to ${seen.host}: handles cannot be verified`,
    'let the reverse proxy forward the Host header unchanged (nginx: proxy_set_header Host $host;)',
  )
}

/** nginx has room for 4 KiB, and returns 502 instead of a larger header. */
async function checkHeaderSize(patient: Patient): Promise<Finding> {
  const seen = await probe(patient, new Uint8Array(0), { [PADDING_HEADER]: '1' })
  if ('state' in seen) return seen
  return 'bytes' in seen
    ? ok('a response with 8 KiB of headers passes the proxy')
    : fault(
        `the proxy returns ${seen.status} for a response with 8 KiB of headers: signing in to some apps fails`,
        'raise its limit for the headers of a response (nginx: proxy_buffer_size 16k; proxy_buffers 8 16k;)',
      )
}

/** A proxy that rejects large bodies rejects blob uploads and repository imports. */
async function checkBodySize(patient: Patient): Promise<Finding> {
  const bytes = Math.min(patient.config.blobs.maxBlobSize, BIG_BODY_BYTES)
  const size = `${(bytes / 1024 ** 2).toFixed(0)} MiB`
  const remedy = "raise the proxy's limit to the size of the largest upload and import (nginx: client_max_body_size 0;)"
  try {
    const seen = await probe(patient, new Uint8Array(bytes))
    if ('state' in seen) return seen
    if ('status' in seen) return fault(`the proxy returns ${seen.status} for a body of ${size}`, remedy)
    return seen.bytes === bytes
      ? ok(`a body of ${size} passes the proxy`)
      : fault(`only ${seen.bytes} bytes of a body of ${size} pass the proxy`, remedy)
  } catch (error) {
    return fault(`a body of ${size} does not pass the proxy: ${wordsOf(error)}`, remedy)
  }
}

/** Relays read the event stream over a WebSocket, which some proxies forward only if configured to. */
async function checkWebSocket({ config }: Patient): Promise<Finding> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = new WebSocket(`${config.publicUrl.replace(/^http/, 'ws')}/xrpc/com.atproto.sync.subscribeRepos`)
  const timer = setTimeout(() => resolve(false), TIMEOUT_MILLIS)
  socket.addEventListener('open', () => resolve(true))
  socket.addEventListener('error', () => resolve(false))
  const opened = await promise
  clearTimeout(timer)
  socket.close()
  return opened
    ? ok('the event stream opens through the public address')
    : fault(
        'the event stream cannot be opened through the public address',
        'let the reverse proxy forward WebSocket upgrades (nginx: proxy_http_version 1.1 and the Upgrade and Connection headers)',
      )
}

/** The documents that apps read before sign-in (RFC 9728, RFC 8414), and the member of each that names the server. */
const oauthDocuments = {
  '/.well-known/oauth-protected-resource': 'resource',
  '/.well-known/oauth-authorization-server': 'issuer',
} as const

async function checkOAuth(patient: Patient): Promise<Finding> {
  const { publicUrl } = patient.config
  for (const [path, member] of Object.entries(oauthDocuments)) {
    const answer = await ask(patient, publicUrl + path)
    const how =
      typeof answer === 'string' ? `cannot be reached: ${answer}` : `returns ${answer.status}, but not for ${publicUrl}`
    const named =
      typeof answer === 'string' ? undefined : (answer.json as Record<string, unknown> | null | undefined)?.[member]
    if (named !== publicUrl)
      return fault(
        `${path} ${how}`,
        'let the reverse proxy forward /.well-known/ to the server: without it, signing in to apps fails',
      )
  }
  return ok('apps can find out how to sign in')
}
