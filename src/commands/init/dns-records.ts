/** The DNS records that a server needs, and whether name servers have them. */
import { randomBytes } from 'node:crypto'
import { Resolver as DnsClient } from 'node:dns/promises'
import { devNull, networkInterfaces } from 'node:os'
import { delegatedNames, responderAddresses } from '../../features/operations/certificates/certificates.ts'
import type { Config } from '../../platform/configuration/config.ts'
import { type DnsResponder, openDnsResponder } from '../../platform/network/dns-responder.ts'
import { type Resolver, systemResolver } from '../../platform/network/resolver.ts'
import { isPublicAddress } from '../../protocol/ip-address.ts'

export interface DnsRecord {
  name: string
  type: 'A' | 'AAAA' | 'NS'
  /** Null: the public address of this machine, which it does not know. */
  value: string | null
}

export interface SeenRecords {
  /** What is wrong, in sentences; empty if all records were found. */
  missing: string[]
  /** What to know about the records that were found. */
  remarks: string[]
}

export interface NameServers {
  resolver: Resolver
  /** Whether an NS record delegates this name to another server. */
  delegationOf(name: string): Promise<Delegation>
}

/**
 * `unanswered`: no answer for this name, although there is one for its neighbours, so there is a delegation to a server
 * that does not answer. `failed`: no answer for either, which says nothing about a record.
 */
type Delegation = 'answered' | 'unanswered' | 'absent' | 'failed'

const TIMEOUT_MILLIS = 5000
const RANDOM_LABEL_BYTES = 8
const randomLabel = () => `holdfast-${randomBytes(RANDOM_LABEL_BYTES).toString('hex')}`

/** Asks these name servers (`address` or `address:port`), or those of the machine, but never its hosts file. */
export function nameServers(servers: readonly string[] | undefined): NameServers {
  return {
    resolver: systemResolver({ servers, hostsPath: devNull }),
    async delegationOf(name) {
      const found = await delegationBy(servers, name)
      if (found !== 'failed') return found
      // A name server fails if the delegation leads to a closed port, but also if it cannot reach the domain itself.
      const beside = name.replace(/^[^.]+/, randomLabel())
      return (await delegationBy(servers, beside)) === 'failed' ? 'failed' : 'unanswered'
    },
  }
}

async function delegationBy(
  servers: readonly string[] | undefined,
  name: string,
): Promise<Exclude<Delegation, 'unanswered'>> {
  const dns = new DnsClient({ timeout: TIMEOUT_MILLIS, tries: 1 })
  if (servers !== undefined) dns.setServers([...servers])
  try {
    return (await dns.resolveNs(name)).length > 0 ? 'answered' : 'absent'
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    return ['ENOTFOUND', 'ENODATA'].includes(code) ? 'absent' : 'failed'
  }
}

/**
 * Answer for the names that NS records delegate to this server, while these records are looked for. Returns null if
 * there are no such names, or if the port cannot be opened.
 */
export async function openResponder(config: Config): Promise<DnsResponder | null> {
  const names = delegatedNames(config)
  if (names.length === 0) return null
  const zones = { records: new Map(names.map((name) => [name, []])), nameServer: hostOf(config) }
  try {
    return await openDnsResponder({ addresses: responderAddresses(config), port: config.tls.dnsPort }, zones)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).syscall === undefined) throw error
    return null
  }
}

/** The public addresses of this machine; empty behind a router that translates addresses. */
export const ownAddresses = (): string[] =>
  Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .map(({ address }) => address)
    .filter((address) => isPublicAddress(address))

const hostOf = ({ publicUrl }: Config): string => new URL(publicUrl).hostname

/** A wildcard for each domain of handles: any name under it has to lead to the server. */
const wildcardsOf = ({ availableUserDomains }: Config): string[] => availableUserDomains.map((domain) => `*.${domain}`)

/** Returns the records to set. */
export function recordsOf(config: Config, addresses: readonly string[]): DnsRecord[] {
  const values = addresses.length === 0 ? [null] : addresses
  const names = [...new Set([hostOf(config), ...wildcardsOf(config)])]
  return [
    ...names.flatMap((name) =>
      values.map((value): DnsRecord => ({ name, type: value?.includes(':') ? 'AAAA' : 'A', value })),
    ),
    ...delegatedNames(config).map((name): DnsRecord => ({ name, type: 'NS', value: hostOf(config) })),
  ]
}

/**
 * Look up each name. `expected`: each name must have one of these addresses; if empty, any public address will do.
 * `allowsPrivate`: addresses that only some machines reach will do too. `isAnswering`: this machine answers what NS
 * records delegate to it.
 */
export async function lookForRecords(
  config: Config,
  { resolver, delegationOf }: NameServers,
  {
    expected,
    allowsPrivate,
    isAnswering,
  }: { expected: readonly string[]; allowsPrivate: boolean; isAnswering: boolean },
): Promise<SeenRecords> {
  const found: SeenRecords = { missing: [], remarks: [] }
  const addressesOf = (name: string) => resolver.addresses(name, { fresh: true }).catch((error: Error) => error)
  const shown = [...new Set([hostOf(config), ...wildcardsOf(config)])]
  const challenges = delegatedNames(config)
  const [impossible, answers, delegations] = await Promise.all([
    addressesOf(`${randomLabel()}.invalid`),
    Promise.all(shown.map((name) => addressesOf(name.replace(/^\*/, randomLabel())))),
    Promise.all(challenges.map(delegationOf)),
  ])
  if (addressesIn(impossible).length > 0)
    found.remarks.push('the name server invents addresses for names that do not exist, so its answers prove nothing')
  for (const [index, answer] of answers.entries()) {
    const fault = faultOf(answer, { expected, allowsPrivate })
    if (fault !== null) found.missing.push(`${shown[index]} ${fault}`)
    else if (expected.length === 0) found.remarks.push(`${shown[index]} is ${addressesIn(answer).join(', ')}`)
  }
  for (const [index, name] of challenges.entries()) {
    const fault = delegationFaults[delegations[index]!]
    if (delegations[index] === 'unanswered' && !isAnswering)
      found.remarks.push(`whether queries about ${name} arrive here was not tried, as the port cannot be opened here`)
    else if (fault !== null) found.missing.push(fault(name, hostOf(config)))
  }
  return found
}

const delegationFaults: Record<Delegation, ((name: string, host: string) => string) | null> = {
  answered: null,
  unanswered: (name, host) =>
    `queries about ${name} do not arrive here: its NS record must be ${host}, and port 53 open, UDP and TCP`,
  absent: (name) => `${name} has no NS record`,
  failed: (name) => `${name} cannot be looked up`,
}

const addressesIn = (answer: readonly string[] | Error): readonly string[] => (answer instanceof Error ? [] : answer)

function faultOf(
  answer: readonly string[] | Error,
  { expected, allowsPrivate }: { expected: readonly string[]; allowsPrivate: boolean },
): string | null {
  if (answer instanceof Error) return `cannot be looked up: ${answer.message}`
  if (answer.length === 0) return 'has no address'
  const others = answer.filter((address) => !expected.includes(address))
  if (expected.length > 0) return others.length === 0 ? null : `is ${others.join(', ')}, not ${expected.join(' or ')}`
  const isReachable = allowsPrivate || answer.some((address) => isPublicAddress(address))
  return isReachable ? null : `is ${answer.join(', ')}, which others cannot reach`
}
