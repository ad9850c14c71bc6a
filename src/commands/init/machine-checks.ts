/** What `holdfast init` checks before it writes: disk, clock, mail, backups, ports, and whether others can reach it. */
import { createSocket } from 'node:dgram'
import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname } from 'node:path'
import { randomBytes } from 'node:crypto'
import {
  checks,
  examine,
  examineOne,
  fault,
  ok,
  warning,
  type Examined,
  type Finding,
  type Patient,
} from '../../features/operations/doctor/doctor.ts'
import { responderAddresses, type ResponderPlace } from '../../features/operations/certificates/certificates.ts'
import type { Config } from '../../platform/configuration/config.ts'
import { ownUrl, plainAddress } from '../../platform/configuration/own-url.ts'
import { isPostgresUrl } from '../../platform/database/database-url.ts'
import { isDatabaseThere, sqlitePath } from '../../platform/database/sqlite.ts'
import { askHealth } from '../server-health.ts'
import type { Variables } from './settings-file.ts'

const REACH_TIMEOUT_MILLIS = 8000

/** A port that the server will open. */
interface Opened {
  protocol: 'tcp' | 'udp'
  address: string
  port: number
}

/** Checks of the doctor that need no running server, by what they examine. */
const checksOfFolder: ReadonlySet<string> = new Set(['disk', 'network-share'])
const checksOfData: ReadonlySet<string> = new Set(['database', 'master-key'])
const checksOfServices: ReadonlySet<string> = new Set(['clock', 'mail'])

interface PortRights {
  /** Whether the server will have the right to open ports below 1024. */
  mayBindAll: boolean
  /** Whether the server that this one replaces may still run. */
  hasFormer: boolean
}

/** Check this machine. */
export async function* checkMachine(patient: Patient, rights: PortRights): AsyncGenerator<Examined> {
  const { config } = patient
  const folder = { ...patient, config: { ...config, dataDir: nearestFolder(config.dataDir) } }
  const hasData = isPostgresUrl(config.databaseUrl) || isDatabaseThere(sqlitePath(config.databaseUrl))
  for (const check of checks) {
    const { name } = check
    if (checksOfFolder.has(name))
      yield { name, finding: refusedFolder(config.dataDir, '--data') ?? (await examine(check, folder)) }
    if (checksOfServices.has(name) || (hasData && checksOfData.has(name)))
      yield { name, finding: await examine(check, patient) }
  }
  yield { name: 'backups', finding: await checkBackups(patient) }
  yield { name: 'ports', finding: await checkPorts(config, rights) }
}

/** Returns the folder itself, or the nearest existing one above it. */
function nearestFolder(path: string): string {
  if (existsSync(path) || dirname(path) === path) return path
  return nearestFolder(dirname(path))
}

/**
 * Returns a fault if this user may not create the folder; null if it is there. The doctor would have the folder above
 * given to the server, with all that is in it.
 */
function refusedFolder(path: string, option: string): Finding | null {
  const above = nearestFolder(path)
  if (above === path) return null
  try {
    accessSync(above, constants.W_OK | constants.X_OK)
    return null
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') return null
    return fault(
      `this user may not create ${path}`,
      `create it and give it to the user that the server runs as, or name another folder with ${option}`,
    )
  }
}

async function checkBackups(patient: Patient): Promise<Finding> {
  const { backup, dataDir, blobMirror } = patient.config
  if (backup.destination === null || backup.intervalSecs === 0)
    return warning('no backups are made', 'name a folder or a bucket with --backups')
  if (backup.destination.startsWith('s3://')) {
    if (blobMirror.endpoint === null || blobMirror.accessKeyId === null || blobMirror.secretAccessKey === null)
      return fault(
        `${backup.destination} cannot be reached without an endpoint and keys`,
        'set SERVICE_BLOB_MIRROR_ENDPOINT, SERVICE_BLOB_MIRROR_ACCESS_KEY_ID and SERVICE_BLOB_MIRROR_SECRET_ACCESS_KEY',
      )
    const found = await examineOne('backups', patient)
    return found.state === 'fault' ? found : ok(`${backup.destination} answers`)
  }
  if (`${backup.destination}/`.startsWith(`${dataDir}/`))
    return fault(`${backup.destination} is in the data folder`, 'choose a folder elsewhere, better on another disk')
  const refused = refusedFolder(backup.destination, '--backups')
  if (refused !== null) return refused
  const [there, data] = [nearestFolder(backup.destination), nearestFolder(dataDir)]
  const disk = await examineOne('disk', { ...patient, config: { ...patient.config, dataDir: there } })
  if (disk.state === 'fault') return disk
  return statSync(there).dev === statSync(data).dev
    ? warning(
        `${backup.destination} is on the disk of the data`,
        'copy the backups elsewhere, or name another disk or a bucket with --backups: a broken disk takes both',
      )
    : ok(backup.destination)
}

/** The ports of a configuration. */
function portsOf({ bindAddress, port, tls, ...config }: Config): Opened[] {
  const tcp = (address: string, each: number): Opened[] =>
    each === 0 ? [] : [{ protocol: 'tcp', address, port: each }]
  const plain = tcp(plainAddress({ bindAddress, port, tls, ...config }), port)
  if (tls.mode === 'off') return plain
  const answersChallenges = tls.mode === 'acme' && tls.acmeChallenge === 'dns-01'
  return [
    ...plain,
    ...tcp(bindAddress, tls.port),
    ...tcp(bindAddress, tls.httpPort),
    ...(answersChallenges ? dnsPorts({ bindAddress, tls }, tls.dnsPort) : []),
  ]
}

async function checkPorts(config: Config, { mayBindAll, hasFormer }: PortRights): Promise<Finding> {
  const opened = portsOf(config)
  const names = opened.map(nameOf).join(', ')
  for (const each of opened) {
    const code = await tryPort(each)
    if (code === null || (code === 'EACCES' && mayBindAll)) continue
    if (code === 'EADDRINUSE') {
      if (await isServerRunning(config)) return ok(`the server runs already, at ${ownUrl(config)}`)
      if (hasFormer) return warning(`${nameOf(each)} is in use`, 'stop the old server before you start this one')
      return fault(
        `${nameOf(each)} is in use by another program ("ss -lntup" names it)`,
        each.port === config.port
          ? 'stop that program, or choose another port with --port'
          : 'stop that program, or let it be the reverse proxy of this server, with --tls off',
      )
    }
    return fault(
      `${nameOf(each)} cannot be opened: ${code}`,
      code === 'EACCES' ? 'run it as root, with --service' : 'set bind_address to an address of this machine',
    )
  }
  return ok(`${names} can be opened`)
}

/** Whether this server runs, and not another one at its address: only this one may get the operator's credential. */
export const isServerRunning = async (config: Config): Promise<boolean> =>
  (await askHealth(ownUrl(config))).state === 'healthy'

/** The ports of the DNS responder, which is open while a certificate is ordered. */
const dnsPorts = (place: ResponderPlace, port: number): Opened[] =>
  responderAddresses(place).flatMap((address) => [
    { protocol: 'udp', address, port },
    { protocol: 'tcp', address, port },
  ])

/**
 * Returns, as variables, who is to encrypt connections: this server if it can open the ports for that, otherwise the
 * program that has them. Also how names are proven: by DNS if this server can open that port too. `mayBindAll`: the
 * server will have the right to open ports below 1024.
 */
export async function encryptionHere(known: Variables, mayBindAll: boolean): Promise<Variables> {
  const portOf = (name: string, standard: number) => Number(known[name] ?? standard)
  const bindAddress = known['SERVICE_BIND_ADDRESS'] ?? '0.0.0.0'
  const canOpen = async (opened: readonly Opened[]) =>
    (await Promise.all(opened.map(tryPort))).every((code) => code === null || (code === 'EACCES' && mayBindAll))
  const ports = [portOf('SERVICE_TLS_PORT', 443), portOf('SERVICE_TLS_HTTP_PORT', 80)]
  const web = ports
    .filter((port) => port !== 0)
    .map((port): Opened => ({ protocol: 'tcp', address: bindAddress, port }))
  const mode = known['SERVICE_TLS_MODE'] ?? ((await canOpen(web)) ? 'acme' : 'off')
  if (mode !== 'acme') return { SERVICE_TLS_MODE: mode }
  const place = { bindAddress, tls: { dnsAddress: known['SERVICE_TLS_DNS_ADDRESS'] ?? null } }
  const canProve = await canOpen(dnsPorts(place, portOf('SERVICE_TLS_DNS_PORT', 53)))
  return { SERVICE_TLS_MODE: mode, SERVICE_TLS_ACME_CHALLENGE: canProve ? 'dns-01' : 'http-01' }
}

const nameOf = ({ protocol, address, port }: Opened): string =>
  `port ${port} of ${address}${protocol === 'udp' ? ' (UDP)' : ''}`

/** Open a port and close it. Returns null if that works, or the code of the error. */
function tryPort({ protocol, address, port }: Opened): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>()
  const fail = (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message)
  if (protocol === 'udp') {
    const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4')
    socket.once('error', fail)
    socket.bind({ address, port, exclusive: true }, () => socket.close(() => resolve(null)))
  } else {
    const server = createServer()
    server.once('error', fail)
    server.listen({ host: address, port, exclusive: true }, () => server.close(() => resolve(null)))
  }
  return promise
}

/** Whether a request to the public name arrives here, as far as this machine can tell. */
export async function checkReach({ config, upstream }: Patient): Promise<Finding> {
  const { hostname, origin } = new URL(config.publicUrl)
  const { mode, httpPort } = config.tls
  if (mode === 'off') {
    const answer = await upstream
      .fetch(`${origin}/`, { headersTimeoutMillis: REACH_TIMEOUT_MILLIS })
      .catch((error: Error) => error)
    if (answer instanceof Error)
      return warning(
        `nothing answers at ${origin} yet: ${answer.message}`,
        'set up the reverse proxy: docs/behind-a-proxy.md',
      )
    await answer.body?.cancel()
    return ok(`${origin} answers, with status ${answer.status}`)
  }
  if (httpPort === 0 || (await tryPort({ protocol: 'tcp', address: config.bindAddress, port: httpPort })) !== null)
    return warning(`port ${httpPort} was not tried`, 'the doctor tries it once the server runs')
  const nonce = randomBytes(16).toString('hex')
  using _server = Bun.serve({ hostname: config.bindAddress, port: httpPort, fetch: () => new Response(nonce) })
  const text = await upstream
    .fetch(`http://${hostname}:${httpPort}/`, { headersTimeoutMillis: REACH_TIMEOUT_MILLIS, maxBytes: 1024 })
    .then((response) => response.text())
    .catch((error: Error) => error)
  if (text === nonce) return ok(`a request to port ${httpPort} of ${hostname} arrives here`)
  return warning(
    text instanceof Error
      ? `a request to port ${httpPort} of ${hostname} does not arrive here: ${text.message}`
      : `something else answers at port ${httpPort} of ${hostname}`,
    `open ports ${httpPort} and ${config.tls.port} in the firewall; some networks do not let a machine reach its own public address`,
  )
}
