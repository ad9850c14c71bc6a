/**
 * Looking at a deployment from outside and inside: DNS, TLS, the proxy in front, clock, disk, mail, the network's other
 * services. A check answers what is wrong and what to do about it; it never throws and never takes long.
 */
import { statfs } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { connect as connectTls } from 'node:tls'
import { Database } from 'bun:sqlite'
import type { Config } from '../../platform/config.ts'
import { exposedPaths } from '../../platform/data-directory.ts'
import type { Mailer } from '../../platform/mailer.ts'
import type { Outbound } from '../../platform/outbound.ts'
import type { Resolver } from '../../platform/resolver.ts'
import { sqlitePath } from '../../platform/sqlite.ts'

export type Finding = { state: 'ok'; text: string } | { state: 'warning' | 'fault'; text: string; remedy: string }

export interface Patient {
  config: Config
  resolver: Resolver
  upstream: Outbound
  mailer: Mailer
  now(): number
}

export interface Check {
  name: string
  run(patient: Patient): Promise<Finding>
}

const TIMEOUT_MILLIS = 8000
const MAX_ANSWER_BYTES = 64 * 1024
/** Relays refuse commits that come from more than 5 minutes ahead; it is said well before that. */
const CLOCK_FAULT_SECS = 120
const CLOCK_WARNING_SECS = 10
const DISK_FAULT_BYTES = 256 * 1024 ** 2
const DISK_WARNING_BYTES = 2 * 1024 ** 3
const CERTIFICATE_WARNING_DAYS = 14
/** Stands for any handle under a served domain. */
const SOME_LABEL = 'holdfast-doctor-check'

const ok = (text: string): Finding => ({ state: 'ok', text })
const warning = (text: string, remedy: string): Finding => ({ state: 'warning', text, remedy })
const fault = (text: string, remedy: string): Finding => ({ state: 'fault', text, remedy })
const wordsOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

export const checks: readonly Check[] = [
  { name: 'disk', run: checkDisk },
  { name: 'privacy', run: checkPrivacy },
  { name: 'database', run: checkDatabase },
  { name: 'clock', run: checkClock },
  { name: 'dns', run: checkDns },
  { name: 'handles', run: checkHandles },
  { name: 'tls', run: checkTls },
  { name: 'proxy', run: checkProxy },
  { name: 'websocket', run: checkWebSocket },
  { name: 'mail', run: checkMail },
  { name: 'plc', run: checkPlc },
  { name: 'relay', run: checkRelay },
]

/** One check, bounded and without surprises. */
export async function examine({ name, run }: Check, patient: Patient): Promise<Finding> {
  try {
    return await run(patient)
  } catch (error) {
    return fault(`${name} could not be checked: ${wordsOf(error)}`, 'look at the message; the check itself met something it did not expect')
  }
}

async function checkDisk({ config: { dataDir } }: Patient): Promise<Finding> {
  if (!existsSync(dataDir)) return fault(`${dataDir} does not exist`, 'create it, or set data_dir to where the data is')
  const { bavail, bsize } = await statfs(dataDir)
  const free = bavail * bsize
  const text = `${(free / 1024 ** 3).toFixed(1)} GiB free at ${dataDir}`
  if (free < DISK_FAULT_BYTES) return fault(text, 'make room: writes fail when the disk is full')
  return free < DISK_WARNING_BYTES ? warning(text, 'make room before uploads and the event log fill it') : ok(text)
}

/** The server closes what is its own when it starts, and what belongs to others never. */
async function checkPrivacy({ config }: Patient): Promise<Finding> {
  const exposed = exposedPaths(config)
  if (exposed.length === 0) return ok('nobody else on this machine may use the data')
  const remedy = exposed.map(({ path, mode }) => `chmod ${mode.toString(8)} ${path}`).join('; ')
  return warning(`others on this machine may use ${exposed.map(({ path }) => path).join(', ')}`, remedy)
}

async function checkDatabase({ config }: Patient): Promise<Finding> {
  const path = sqlitePath(config.databaseUrl)
  if (!existsSync(path)) return warning(`no database at ${path} yet`, 'start the server once; it makes one')
  const database = new Database(path, { readonly: true })
  try {
    const row = database.query<{ quick_check: string }, []>('PRAGMA quick_check(1)').get()
    return row?.quick_check === 'ok' ? ok('whole') : fault(`damaged: ${row?.quick_check}`, 'stop the server, keep a copy, and restore a backup ("holdfast restore")')
  } finally {
    database.close()
  }
}

/** Against the clock of another service: the directory, or the AppView where the directory is in this process. */
async function checkClock({ config, upstream, now }: Patient): Promise<Finding> {
  const witness = config.plcDirectoryUrl ?? config.appview.url
  const response = await upstream.fetch(`${witness}/`, { headersTimeoutMillis: TIMEOUT_MILLIS }).catch(() => null)
  await response?.body?.cancel()
  const date = Date.parse(response?.headers.get('date') ?? '')
  if (Number.isNaN(date)) return warning('no other clock could be asked', `see why ${new URL(witness).host} cannot be reached`)
  const offSecs = Math.round((now() - date) / 1000)
  const text = `${Math.abs(offSecs)} s ${offSecs < 0 ? 'behind' : 'ahead of'} ${new URL(witness).host}`
  if (Math.abs(offSecs) > CLOCK_FAULT_SECS) return fault(text, 'switch time synchronisation on (for example systemd-timesyncd): relays refuse commits from the future')
  return Math.abs(offSecs) > CLOCK_WARNING_SECS ? warning(text, 'switch time synchronisation on') : ok(text)
}

async function checkDns({ config, resolver }: Patient): Promise<Finding> {
  const { hostname } = new URL(config.publicUrl)
  const addresses = await addressesOf(resolver, hostname)
  return addresses.length > 0 ? ok(`${hostname} is ${addresses.join(', ')}`) : fault(`${hostname} has no address`, `add an A (and AAAA) record for ${hostname} that points here`)
}

/** Handles are host names: each served domain needs a wildcard. */
async function checkHandles({ config, resolver }: Patient): Promise<Finding> {
  const without: string[] = []
  for (const domain of config.availableUserDomains) {
    const name = `${SOME_LABEL}.${domain}`
    if ((await addressesOf(resolver, name)).length === 0) without.push(`*.${domain}`)
  }
  return without.length === 0
    ? ok(`${config.availableUserDomains.map((domain) => `*.${domain}`).join(', ')} resolve`)
    : fault(`${without.join(', ')} do not resolve`, `add a wildcard record for ${without.join(', ')}: without it handles cannot be verified`)
}

const addressesOf = (resolver: Resolver, name: string): Promise<readonly string[]> => resolver.addresses(name).catch(() => [])

async function checkTls({ config, now }: Patient): Promise<Finding> {
  const { protocol, hostname, port } = new URL(config.publicUrl)
  if (protocol !== 'https:') return warning('the public address is not https', 'set public_url to an https address before others use the server')
  const { promise, resolve } = Promise.withResolvers<Finding>()
  const socket = connectTls({ host: hostname, port: Number(port || 443), servername: hostname, timeout: TIMEOUT_MILLIS }, () => {
    const until = Date.parse(socket.getPeerCertificate().valid_to)
    const days = Math.floor((until - now()) / 86_400_000)
    const text = `certificate of ${hostname} is good for ${days} days`
    resolve(days < CERTIFICATE_WARNING_DAYS ? warning(text, 'see why the certificate is not being renewed') : ok(text))
  })
  socket.on('timeout', () => resolve(fault(`no TLS answer from ${hostname}`, 'open port 443 and start the reverse proxy')))
  socket.on('error', (error) => resolve(fault(`TLS with ${hostname} failed: ${error.message}`, 'get a certificate for the host name, or let the reverse proxy get one')))
  const finding = await promise
  socket.destroy()
  return finding
}

/** Whether what answers at the public address is this server. */
async function checkProxy({ config, upstream }: Patient): Promise<Finding> {
  const { hostname } = new URL(config.publicUrl)
  const response = await upstream.fetch(`${config.publicUrl}/xrpc/com.atproto.server.describeServer`, { headersTimeoutMillis: TIMEOUT_MILLIS, bodyTimeoutMillis: TIMEOUT_MILLIS, maxBytes: MAX_ANSWER_BYTES }).catch((error: unknown) => wordsOf(error))
  if (typeof response === 'string') return fault(`${hostname} cannot be reached from here: ${response}`, 'start the server and the reverse proxy, and open the firewall')
  const body = (await response.json().catch(() => null)) as { did?: string } | null
  if (body?.did === config.serverDid) return ok(`${hostname} leads to this server`)
  return fault(`${hostname} answers ${response.status}, but not as ${config.serverDid}`, `let the reverse proxy pass ${hostname} on to port ${config.port}, with the Host header as it came`)
}

/** Relays follow over a WebSocket, which some proxies do not pass on by themselves. */
async function checkWebSocket({ config }: Patient): Promise<Finding> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = new WebSocket(`${config.publicUrl.replace(/^http/, 'ws')}/xrpc/com.atproto.sync.subscribeRepos`)
  const timer = setTimeout(() => resolve(false), TIMEOUT_MILLIS)
  socket.addEventListener('open', () => resolve(true))
  socket.addEventListener('error', () => resolve(false))
  const opened = await promise
  clearTimeout(timer)
  socket.close()
  return opened ? ok('the event stream opens through the public address') : fault('the event stream does not open through the public address', 'let the reverse proxy pass WebSocket upgrades on (nginx: proxy_http_version 1.1 and the Upgrade and Connection headers)')
}

async function checkMail({ config, mailer }: Patient): Promise<Finding> {
  if (config.email.provider === 'log') return warning('mail goes to the log', 'set email.provider: without mail nobody can reset a password, delete an account or move away')
  const refusal = await mailer.check()
  return refusal === null ? ok(`${config.email.provider} accepts us`) : fault(`${config.email.provider}: ${refusal}`, 'check the email.* keys with "holdfast mail test you@example.com"')
}

async function checkPlc({ config, upstream }: Patient): Promise<Finding> {
  if (config.plcDirectoryUrl === null) return ok('runs inside this process')
  const { host } = new URL(config.plcDirectoryUrl)
  const response = await upstream.fetch(`${config.plcDirectoryUrl}/_health`, { headersTimeoutMillis: TIMEOUT_MILLIS }).catch((error: unknown) => wordsOf(error))
  if (typeof response === 'string') return fault(`${host} cannot be reached: ${response}`, 'allow outgoing https: accounts cannot be created without the directory')
  await response.body?.cancel()
  return response.ok ? ok(`${host} answers`) : warning(`${host} answers ${response.status}`, 'try again later; if it stays so, check plc_directory_url')
}

async function checkRelay({ config, upstream }: Patient): Promise<Finding> {
  const [relay] = config.crawlers.urls
  if (relay === undefined) return warning('no relay is configured', 'set crawlers.urls, or nobody outside will see the posts made here')
  const host = new URL(config.publicUrl).host
  const response = await upstream.fetch(`${relay}/xrpc/com.atproto.sync.getHostStatus?hostname=${encodeURIComponent(host)}`, { headersTimeoutMillis: TIMEOUT_MILLIS, bodyTimeoutMillis: TIMEOUT_MILLIS, maxBytes: MAX_ANSWER_BYTES }).catch((error: unknown) => wordsOf(error))
  if (typeof response === 'string') return fault(`${new URL(relay).host} cannot be reached: ${response}`, 'allow outgoing https')
  const body = (await response.json().catch(() => null)) as { error?: string; status?: string } | null
  if (body?.error === 'HostNotFound') return warning(`${new URL(relay).host} has not crawled ${host}`, 'start the server: it asks to be crawled; or POST /v1/admin/request-crawl')
  if (!response.ok || body === null) return warning(`${new URL(relay).host} answers ${response.status}`, 'try again later')
  return body.status === 'active' ? ok(`${new URL(relay).host} follows us`) : warning(`${new URL(relay).host} says "${body.status}" of us`, 'if it stays so, ask to be crawled again (POST /v1/admin/request-crawl), then ask its operator')
}
