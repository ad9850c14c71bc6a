/** Checks of how requests reach the server: DNS, certificate, the server itself and its reverse proxy. */
import { connect as connectTls } from 'node:tls'
import { isNear } from '../../http/client-address.ts'
import type { Config } from '../../platform/configuration/config.ts'
import { ownUrl } from '../../platform/configuration/own-url.ts'
import type { Resolver } from '../../platform/network/resolver.ts'
import { ask, fault, ok, parsed, skipped, TIMEOUT_MILLIS, warning, wordsOf, type Check, type Finding, type Patient } from './finding.ts'
import { PROBE_PATH, type Probed } from './probe-route.ts'

const CERTIFICATE_WARNING_DAYS = 14
/** First label of the test name: it stands for any handle under a served domain. */
const SOME_LABEL = 'holdfast-doctor-check'
/** Size of the test body. The default limits of most proxies are far smaller, and uploads are seldom larger. */
const BIG_BODY_BYTES = 16 * 1024 ** 2
const BIG_BODY_TIMEOUT_MILLIS = 60_000
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
  { name: 'body-size', needs: 'proxy', run: checkBodySize },
  { name: 'websocket', needs: 'proxy', run: checkWebSocket },
  { name: 'oauth', needs: 'proxy', run: checkOAuth },
]

async function checkDns({ config, resolver }: Patient): Promise<Finding> {
  const { hostname } = new URL(config.publicUrl)
  const addresses = await addressesOf(resolver, hostname)
  return addresses.length > 0
    ? ok(`${hostname} is ${addresses.join(', ')}`)
    : fault(`${hostname} has no address`, `add an A (and AAAA) record for ${hostname} that points here`)
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
        `add a wildcard record for ${without.join(', ')}: without it handles cannot be verified`,
      )
}

const addressesOf = (resolver: Resolver, name: string): Promise<readonly string[]> => resolver.addresses(name).catch(() => [])

async function checkTls({ config, now }: Patient): Promise<Finding> {
  const { protocol, hostname, port } = new URL(config.publicUrl)
  if (protocol !== 'https:')
    return warning('the public address is not https', 'set public_url to an https address before others use the server')
  const { promise, resolve } = Promise.withResolvers<Finding>()
  const socket = connectTls({ host: hostname, port: Number(port || 443), servername: hostname, timeout: TIMEOUT_MILLIS }, () => {
    const until = Date.parse(socket.getPeerCertificate().valid_to)
    const days = Math.floor((until - now()) / 86_400_000)
    const text = `certificate of ${hostname} is good for ${days} days`
    resolve(days < CERTIFICATE_WARNING_DAYS ? warning(text, 'see why the certificate is not being renewed') : ok(text))
  })
  socket.on('timeout', () => resolve(fault(`no TLS answer from ${hostname}`, 'open port 443 and start the reverse proxy')))
  socket.on('error', (error) =>
    resolve(
      fault(`TLS with ${hostname} failed: ${error.message}`, 'get a certificate for the host name, or let the reverse proxy get one'),
    ),
  )
  const finding = await promise
  socket.destroy()
  return finding
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
      'start it ("holdfast serve", or "systemctl start holdfast"), and look at its log if it ends',
    )
  if (didOf(answer.json) === config.serverDid) return ok(`listens at ${url}`)
  return fault(
    `what listens at ${url} is not ${config.serverDid}`,
    'stop that, or set port (SERVICE_PORT) to another; start the server again if its configuration has changed since',
  )
}

async function checkOperator({ config: { adminToken, inviteCodeRequired } }: Patient): Promise<Finding> {
  if (adminToken !== null) return ok('the admin token is set')
  return warning(
    `there is no operator credential${inviteCodeRequired ? ', and sign-up needs invite codes that only an operator makes' : ''}`,
    'set admin_token (SERVICE_ADMIN_TOKEN), for example to what "openssl rand -hex 32" prints, and start the server again',
  )
}

/** Check that the public address leads to this server. */
async function checkProxy(patient: Patient): Promise<Finding> {
  const { config } = patient
  const { hostname } = new URL(config.publicUrl)
  const answer = await ask(patient, config.publicUrl + DESCRIPTION_PATH)
  if (typeof answer === 'string')
    return fault(`${hostname} cannot be reached from here: ${answer}`, 'start the reverse proxy, and open the firewall')
  if (didOf(answer.json) === config.serverDid) return ok(`${hostname} leads to this server`)
  return fault(
    `${hostname} answers ${answer.status}, but not as ${config.serverDid}`,
    `let the reverse proxy pass ${hostname} on to port ${config.port}, with the Host header as it came`,
  )
}

/** Returns true if there is no proxy in front of the server, as in development. */
function isDirect({ publicUrl, port }: Config): boolean {
  const url = new URL(publicUrl)
  return url.protocol === 'http:' && url.port === String(port)
}

/**
 * Send a probe through the public address. Returns how it arrived at the server, the status if something else
 * responded, or a finding if the probe is unnecessary or impossible. Throws if there is no response.
 */
async function probe({ config, upstream }: Patient, body: Uint8Array<ArrayBuffer>): Promise<Probed | { status: number } | Finding> {
  if (isDirect(config)) return ok('there is no proxy in front')
  if (config.adminToken === null) return skipped('needs the admin token')
  const headers = {
    authorization: `Bearer ${config.adminToken.reveal()}`,
    'content-type': 'application/json',
    'x-forwarded-for': CLAIMED_ADDRESS,
  }
  const response = await upstream.fetch(config.publicUrl + PROBE_PATH, {
    method: 'POST',
    headers,
    body,
    headersTimeoutMillis: BIG_BODY_TIMEOUT_MILLIS,
  })
  const text = await response.text()
  const json = parsed(text) as Partial<Probed> | undefined
  if (response.ok && typeof json?.bytes === 'number') return json as Probed
  if (response.status === 401)
    return fault(
      'the running server does not take the admin token of this configuration',
      'start the server again, or run the doctor with the configuration of the server',
    )
  return { status: response.status }
}

async function checkClientAddress(patient: Patient): Promise<Finding> {
  const seen = await probe(patient, new Uint8Array(0))
  if ('state' in seen) return seen
  if ('status' in seen)
    return fault(
      `a request through the public address is answered with ${seen.status}, and not by the server`,
      'let the reverse proxy pass every path and method on',
    )
  const { address, forwardedFor } = seen
  if (forwardedFor === null)
    return fault(
      `the proxy does not say who asks: everybody is ${address} and shares one rate limit`,
      'let the reverse proxy set X-Forwarded-For (nginx: proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;)',
    )
  if (forwardedFor.trim() === CLAIMED_ADDRESS)
    return fault(
      'the proxy passes X-Forwarded-For on as it came: strangers choose the address that they are counted by',
      'let the reverse proxy append the address that it sees, or replace the header by it',
    )
  if (!forwardedFor.includes(address) && !isNear(address))
    return fault(
      `the proxy at ${address} is not believed about who asks: everybody shares one rate limit`,
      `add ${address} to trusted_proxies`,
    )
  return ok('the proxy says who asks')
}

/** A proxy that rejects large bodies rejects blob uploads and repository imports. */
async function checkBodySize(patient: Patient): Promise<Finding> {
  const bytes = Math.min(patient.config.blobs.maxBlobSize, BIG_BODY_BYTES)
  const size = `${(bytes / 1024 ** 2).toFixed(0)} MiB`
  const remedy = 'raise its limit to that of the largest upload and import (nginx: client_max_body_size 0;)'
  try {
    const seen = await probe(patient, new Uint8Array(bytes))
    if ('state' in seen) return seen
    if ('status' in seen) return fault(`the proxy answers ${seen.status} to a body of ${size}`, remedy)
    return seen.bytes === bytes
      ? ok(`a body of ${size} comes through`)
      : fault(`of a body of ${size}, ${seen.bytes} bytes come through`, remedy)
  } catch (error) {
    return fault(`a body of ${size} does not come through the proxy: ${wordsOf(error)}`, remedy)
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
        'the event stream does not open through the public address',
        'let the reverse proxy pass WebSocket upgrades on (nginx: proxy_http_version 1.1 and the Upgrade and Connection headers)',
      )
}

/** The documents that apps read before sign-in (RFC 9728, RFC 8414), and the member of each that names the server. */
const oauthDocuments = { '/.well-known/oauth-protected-resource': 'resource', '/.well-known/oauth-authorization-server': 'issuer' } as const

async function checkOAuth(patient: Patient): Promise<Finding> {
  const { publicUrl } = patient.config
  for (const [path, member] of Object.entries(oauthDocuments)) {
    const answer = await ask(patient, publicUrl + path)
    const how = typeof answer === 'string' ? `cannot be reached: ${answer}` : `answers ${answer.status}, and not for ${publicUrl}`
    const named = typeof answer === 'string' ? undefined : (answer.json as Record<string, unknown> | null | undefined)?.[member]
    if (named !== publicUrl)
      return fault(`${path} ${how}`, 'let the reverse proxy pass /.well-known/ on to the server: without it nobody can sign in to an app')
  }
  return ok('apps find how to sign in')
}
