/**
 * Name resolution, as a handle: tests answer from a table instead of the network.
 *
 * Names are looked up with a DNS client of our own (c-ares), which waits on the event loop. The system's look-up blocks
 * a thread of the pool that also flushes the log, reads files and hashes passwords, so a few names with silent servers
 * would stop all of that. Strangers choose names freely, so there are bounds: on queries in progress, on those that
 * wait, on those of one client, and on the time of each. Clients that wait take turns.
 *
 * Every query has a DNS client to itself, because a client caches "no data" for an hour whatever the zone's TTL. Here a
 * negative answer is not cached at all, and a missing answer is cached for a few seconds.
 */
import { lookup, Resolver as DnsClient } from 'node:dns/promises'
import { BoundedCache } from '../../base/bounded-cache.ts'
import { inTime, LATE } from '../../base/in-time.ts'
import type { Client } from '../../base/fair-queue.ts'
import { isIpAddress } from '../../protocol/ip-address.ts'
import { HOSTS_PATH, HostsFile } from './hosts-file.ts'
import { SingleFlight } from '../../base/single-flight.ts'
import { NoPlace, Places } from '../../base/places.ts'
import { Semaphore, SemaphoreFull } from '../../base/semaphore.ts'
import { Shares } from '../../base/shares.ts'
import { clientHere } from '../running/request-scope.ts'

export interface Resolver {
  /**
   * Returns the IPv4 and IPv6 addresses of a host; empty if it has none. `fresh` bypasses cached addresses. Throws
   * `LookupsFull` if too many names are being looked up, and another error if no server answers in time.
   */
  addresses(host: string, options?: { fresh?: boolean }): Promise<string[]>
  /** Returns those addresses of a host that are cached; null if none are. */
  known?(host: string): string[] | null
  /**
   * Returns the TXT records of a name, the strings of each joined; empty if there are none. Throws as `addresses` does.
   */
  texts(name: string): Promise<string[]>
}

/** Too many names are being looked up already. The response to the client is 503. */
export class LookupsFull extends Error {
  readonly retryAfterSecs = TIMEOUT_MILLIS / 1000
}

/** The name servers did not answer, or answered with a failure. */
class Unanswered extends Error {}

export interface ResolverOptions {
  /** Name servers, `address:port` each, instead of the system's. */
  servers?: readonly string[]
  hostsPath?: string
  /** From the call to the answer, including the wait for a turn. */
  timeoutMillis?: number
  /**
   * Ask the operating system for hosts that the name servers do not know: it has further sources, such as mDNS and
   * search domains. Only for hosts that the operator named, because each such look-up blocks a thread of the pool.
   */
  asksSystem?: boolean
}

const TIMEOUT_MILLIS = 3000
/** Name servers to try within that time, or tries of the only one. */
const TRIES = 3
/** Queries at the same time; each holds one or two sockets. */
const MAX_QUESTIONS = 128
const MAX_WAITING = 256
/** Queries of one client, running or waiting: a client with many names must not block the others. */
const MAX_OF_CLIENT = 32
const MAX_WAITING_FOR_SYSTEM = 16

/** How long the addresses of a host are cached. Every connection checks its address again, so an old answer is safe. */
const KEPT_MILLIS = 30_000
/** How long an unanswered query is not repeated. */
const SILENCE_MILLIS = 3000
const MAX_KEPT_HOSTS = 1000
/** More addresses of a host are neither cached nor tried. */
const MAX_ADDRESSES = 16
const MAX_SILENT_NAMES = 10_000
/** Longest name in DNS. */
const MAX_NAME_CHARS = 253

const absentCodes = new Set(['ENOTFOUND', 'ENODATA'])
const loopback = ['127.0.0.1', '::1']

export function systemResolver({
  servers,
  hostsPath = HOSTS_PATH,
  timeoutMillis = TIMEOUT_MILLIS,
  asksSystem = false,
}: ResolverOptions = {}): Resolver {
  const questions = new Questions(servers, timeoutMillis)
  const hosts = new HostsFile(hostsPath)
  const systemTurn = new Semaphore(1, MAX_WAITING_FOR_SYSTEM)
  const askInTurn = async (host: string): Promise<string[]> => {
    try {
      return await systemTurn.run(() => askSystem(host))
    } catch (error) {
      throw error instanceof SemaphoreFull ? namesFull() : error
    }
  }
  const kept = new BoundedCache<{ addresses: string[]; until: number }>(MAX_KEPT_HOSTS)
  const flights = new SingleFlight<string, string[]>()

  const lookUp = async (host: string): Promise<string[]> => {
    if (isIpAddress(host)) return [host]
    const known = hosts.addressesOf(host)
    if (known.length > 0) return [...known]
    if (host.length > MAX_NAME_CHARS) return []
    if (host === 'localhost' || host.endsWith('.localhost')) return loopback
    const found = await questions.ask(`host ${host}`, (dns) => addressRecords(dns, host))
    return found.length === 0 && asksSystem ? askInTurn(host) : found
  }
  const keep = async (host: string): Promise<string[]> => {
    const addresses = (await lookUp(host)).slice(0, MAX_ADDRESSES)
    if (addresses.length > 0) kept.set(host, { addresses, until: performance.now() + KEPT_MILLIS })
    return addresses
  }
  const known = (host: string): string[] | null => {
    const found = kept.get(host)
    return found && found.until > performance.now() ? found.addresses : null
  }
  return {
    known,
    async addresses(host, { fresh = false } = {}) {
      if (fresh) return keep(host)
      return known(host) ?? flights.run(host, () => keep(host))
    },
    async texts(name) {
      if (name.length > MAX_NAME_CHARS) return []
      return questions.ask(`texts ${name}`, async (dns) =>
        (await orNone(dns.resolveTxt(name))).map((parts) => parts.join('')),
      )
    },
  }
}

/** Queries to the name servers, a bounded number at a time. */
class Questions {
  readonly #places: Places
  /** Queries in progress, by the client that causes them. */
  readonly #shares = new Shares(MAX_OF_CLIENT)
  /** When an unanswered query may be repeated, by query. */
  readonly #silentUntil = new BoundedCache<number>(MAX_SILENT_NAMES)

  constructor(
    readonly servers: readonly string[] | undefined,
    readonly timeoutMillis: number,
  ) {
    // The last third of the time is for the answer.
    this.#places = new Places({
      size: MAX_QUESTIONS,
      maxWaiting: MAX_WAITING,
      waitMillis: timeoutMillis * (1 - 1 / TRIES),
    })
  }

  /** Throws `LookupsFull` if there is no room for the query, and `Unanswered` if no server answers it in time. */
  async ask(question: string, put: (dns: DnsClient) => Promise<string[]>): Promise<string[]> {
    if ((this.#silentUntil.get(question) ?? 0) > performance.now())
      throw new Unanswered(`no name server responded a moment ago: ${question}`)
    const client = clientHere()
    const leave = this.#enter(client)
    let dns = null as DnsClient | null
    try {
      const answer = await inTime(
        this.#places.run(client, () => put((dns = this.#client()))),
        this.timeoutMillis,
      )
      if (answer !== LATE) return answer
      dns?.cancel()
      throw new Unanswered(`no name server responds: ${question}`)
    } catch (error) {
      if (error instanceof NoPlace) throw namesFull()
      if (dns !== null) this.#silentUntil.set(question, performance.now() + SILENCE_MILLIS)
      throw error instanceof Unanswered
        ? error
        : new Unanswered(`no name server responded: ${question}`, { cause: error })
    } finally {
      leave()
    }
  }

  /**
   * Count a query of the client. Returns the function that ends it. Throws `LookupsFull` if the client has too many.
   */
  #enter({ address }: Client): () => void {
    if (address === '') return () => {}
    const leave = this.#shares.enter(address)
    if (leave === null) throw new LookupsFull('too many names are being looked up for one client')
    return leave
  }

  #client(): DnsClient {
    const dns = new DnsClient({ timeout: Math.ceil(this.timeoutMillis / TRIES), tries: TRIES })
    if (this.servers) dns.setServers(this.servers)
    return dns
  }
}

/** Returns the addresses of both families. If one family gets no answer, the addresses of the other are enough. */
async function addressRecords(dns: DnsClient, host: string): Promise<string[]> {
  const families = await Promise.allSettled([orNone(dns.resolve4(host)), orNone(dns.resolve6(host))])
  const found = families.flatMap((family) => (family.status === 'fulfilled' ? family.value : []))
  const silent = families.find((family) => family.status === 'rejected')
  if (found.length === 0 && silent) throw silent.reason
  return found
}

/** Returns the records; empty if the server says that there are none. */
async function orNone<T>(records: Promise<T[]>): Promise<T[]> {
  try {
    return await records
  } catch (error) {
    if (isAbsence(error)) return []
    throw error
  }
}

const namesFull = () => new LookupsFull('too many names are being looked up')

async function askSystem(host: string): Promise<string[]> {
  try {
    const found = await lookup(host, { all: true, order: 'ipv4first' })
    return found.map(({ address }) => address)
  } catch (error) {
    if (isAbsence(error)) return []
    throw error
  }
}

const isAbsence = (error: unknown): boolean =>
  error instanceof Error && absentCodes.has((error as NodeJS.ErrnoException).code ?? '')
