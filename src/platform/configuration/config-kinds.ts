/**
 * The kinds of value a configuration key can hold, and how each is read from an environment variable (always text) and
 * from the file (typed by TOML). Readers never throw, and a fault never repeats what might be a secret.
 */
import { isIP, isIPv4, isIPv6 } from 'node:net'
import { type Did, parseDid } from '../../protocol/identifiers.ts'
import { scopeGrammar } from '../../protocol/scope-grammar.ts'
import { faintOn } from './colours.ts'
import { folderFault, placeFault } from '../../base/bucket-place.ts'
import { Secret } from '../../base/secret.ts'
import { withoutTrailingSlashes } from '../../base/trailing.ts'

/** `at` is the position within the key, such as `[1].jwks_url`; empty for the key itself. */
export interface Fault {
  at: string
  fault: string
}

export type Parsed<T> = { ok: true; value: T; unknown?: readonly string[] } | { ok: false; faults: readonly Fault[] }

export interface Kind<T> {
  /** Its name in the documentation. */
  readonly name: string
  readonly secret?: boolean
  /** A blank variable empties a list; for every other kind it counts as not set. */
  readonly list?: boolean
  fromText(text: string): Parsed<T>
  fromToml(value: unknown): Parsed<T>
}

export const good = <T>(value: T): Parsed<T> => ({ ok: true, value })
export const bad = (fault: string, at = ''): { ok: false; faults: Fault[] } => ({ ok: false, faults: [{ at, fault }] })

/** A kind that is written as the same text in the file and in the variable. */
function textual<T>(name: string, fromText: (text: string) => Parsed<T>): Kind<T> {
  return {
    name,
    fromText,
    fromToml(value) {
      if (typeof value !== 'string') return bad('expected a string')
      return value.trim() === '' ? bad('must not be empty') : fromText(value)
    },
  }
}

const matching = (name: string, pattern: RegExp, expectation: string): Kind<string> =>
  textual(name, (text) => (pattern.test(text) ? good(text) : bad(`expected ${expectation}`)))

export const text = textual('string', good)
/** A text about which `faultOf` has nothing to say. */
const faultless = (name: string, faultOf: (text: string) => string | null): Kind<string> =>
  textual(name, (text) => {
    const fault = faultOf(text)
    return fault === null ? good(text) : bad(fault)
  })
export const path = faultless('path', folderFault)
/** A folder, or a place in a bucket. */
export const place = faultless('string', placeFault)
/** Text for a mail header or a single line of a page. */
export const line = matching('string', /^[^\p{Cc}]+$/u, 'text on one line')
export const emailAddress = matching('e-mail address', /^[^\s@]+@[^\s@]+$/, 'an e-mail address')
/** An iroh node id in either of its text forms, in lower case: the library reads no hexadecimal in upper case. */
export const nodeId = textual('node id', (given) =>
  /^(?:[0-9a-f]{64}|[a-z2-7]{52})$/i.test(given)
    ? good(given.toLowerCase())
    : bad('expected 64 hexadecimal or 52 base32 characters'),
)
export const didKey = matching('did:key', /^did:key:z[1-9A-HJ-NP-Za-km-z]+$/, 'a did:key')
export const ipAddress = textual('IP address', (given) => (isIP(given) ? good(given) : bad('expected an IP address')))

/** `address:port`, with IPv6 addresses in brackets. */
export const socketAddress = textual('IP address and port', (given) => {
  const [, v4, v6, port] = /^(?:([\d.]+)|\[([\da-f:.]+)\]):(\d{1,5})$/i.exec(given) ?? []
  const fits = (isIPv4(v4 ?? '') || isIPv6(v6 ?? '')) && Number(port) >= 1 && Number(port) <= 65_535
  return fits ? good(given) : bad('expected an IP address and a port, such as 192.0.2.1:4433 or [2001:db8::1]:4433')
})

/** An address, or a network as `address/bits`. */
export const network = textual('IP address or network', (given) => {
  const [address = '', bits] = given.split('/')
  const longest = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1
  const fits = bits === undefined ? longest > 0 : /^\d{1,3}$/.test(bits) && Number(bits) <= longest
  return fits ? good(given) : bad('expected an IP address or a network such as 10.0.0.0/8')
})

export const did: Kind<Did> = textual('DID', (given) => {
  const parsed = parseDid(given)
  return parsed === null ? bad('expected a DID') : good(parsed)
})

/** A service inside a DID document: `did#fragment`. */
export const serviceId = textual('DID with #fragment', (given) => {
  const [subject = '', fragment = ''] = given.split('#', 2)
  return parseDid(subject) !== null && /^[\w.-]+$/.test(fragment) && given === `${subject}#${fragment}`
    ? good(given)
    : bad('expected a DID with a #fragment')
})

const hostLabel = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/
const MAX_HOST_LENGTH = 253

/** Lower-cased, without a leading dot. */
export const handleDomain = textual('host name', (given) => {
  const domain = given.toLowerCase().replace(/^\./, '')
  return domain.length <= MAX_HOST_LENGTH && domain.split('.').every((label) => hostLabel.test(label))
    ? good(domain)
    : bad('expected a host name')
})

const parseUrl = (given: string): URL | null => (/\s/.test(given) ? null : URL.parse(given))

/**
 * An http or https base URL: a host and optionally a path, without credentials, query or fragment. A trailing slash is
 * removed.
 */
export const httpUrl = textual('URL', (given) => {
  const url = parseUrl(given)
  if (url === null || !/^https?:$/.test(url.protocol)) return bad('expected an http or https URL')
  if (url.username !== '' || url.password !== '') return bad('must not contain credentials')
  if (/[?#]/.test(given)) return bad('must not have a query or fragment')
  return good(withoutTrailingSlashes(given))
})

/** The URL of a page for people, which may have a query and a fragment. */
export const link = textual('URL', (given) => {
  const url = parseUrl(given)
  return url !== null && /^https?:$/.test(url.protocol) ? good(given) : bad('expected an http or https URL')
})

/** Scheme and authority only. `config-checks.ts` decides whether plain http is allowed. */
export const originUrl = textual('URL', (given) => {
  const parsed = httpUrl.fromText(given)
  if (!parsed.ok) return parsed
  const url = new URL(parsed.value)
  return url.pathname === '/' ? good(url.origin) : bad('must not have a path')
})

/** A base URL; a bare host name means https. */
export const serviceAddress = textual('URL', (given) =>
  httpUrl.fromText(given.includes('://') ? given : `https://${given}`),
)

/** The scope of a full session. An operator may name it for agents; it permits nothing that their endpoints do not. */
const FULL_ACCESS = 'com.atproto.access'

/** A scope in canonical form, so that scopes can be compared as strings. */
export const scope = textual('scope', (given) => {
  const canonical = given === FULL_ACCESS ? given : scopeGrammar().normalizeAtprotoOauthScopeValue(given)
  return canonical === null ? bad(`"${given}" is not a valid scope`) : good<string>(canonical)
})

export const databaseLocation = textual('path', (given) =>
  /^[a-z][a-z0-9+.-]+:/i.test(given) && !/^(?:sqlite:|postgres(?:ql)?:\/\/)/.test(given)
    ? bad('expected a path, a sqlite: URL or a postgres:// URL')
    : good(given),
)

export const boolean: Kind<boolean> = {
  name: 'boolean',
  fromText(given) {
    const word = given.trim().toLowerCase()
    return word === 'true' || word === 'false' ? good(word === 'true') : bad('expected true or false')
  },
  fromToml: (value) => (typeof value === 'boolean' ? good(value) : bad('expected true or false')),
}

export function choice<const Name extends string>(...names: Name[]): Kind<Name> {
  return textual(names.join(', '), (given) => {
    const name = names.find((each) => each.toLowerCase() === given.trim().toLowerCase())
    return name === undefined ? bad(`expected one of ${names.join(', ')}`) : good(name)
  })
}

interface Bounds {
  min?: number
  /** A bigint if the bound exceeds the integers that a number can represent exactly. */
  max?: number | bigint
}

function bounded(name: string, { min = 0, max = Number.MAX_SAFE_INTEGER }: Bounds): Kind<number> {
  const within = (value: bigint): Parsed<number> => {
    if (value < BigInt(min)) return bad(min === 1 ? 'must be greater than 0' : `${value} is below the minimum ${min}`)
    if (value > BigInt(max)) return bad(`${value} is above the maximum ${max}`)
    return good(Number(value))
  }
  return {
    name,
    fromText: (given) => (/^\d+$/.test(given) ? within(BigInt(given)) : bad('expected a whole number')),
    fromToml: (value) => (typeof value === 'bigint' ? within(value) : bad('expected a whole number')),
  }
}

/** Longest duration that is still an exact integer once converted to milliseconds. */
const MAX_SECS = Math.floor(Number.MAX_SAFE_INTEGER / 1000)

export const integer = (bounds: Bounds = {}) => bounded('integer', bounds)
export const seconds = (bounds: Bounds = {}) => bounded('seconds', { max: MAX_SECS, ...bounds })
export const bytes = (bounds: Bounds = {}) => bounded('bytes', bounds)

const MAX_READERS = 16
const readerNumber = bounded('integer', { max: MAX_READERS })

/** Null is `auto`. */
export const readerCount: Kind<number | null> = {
  name: '`auto` or integer',
  fromText: (given) => (given.trim().toLowerCase() === 'auto' ? good(null) : readerNumber.fromText(given)),
  fromToml: (value) => (value === 'auto' ? good(null) : readerNumber.fromToml(value)),
}

export function listOf<T>(item: Kind<T>): Kind<readonly T[]> {
  return {
    name: `list of ${item.name}`,
    list: true,
    fromText: (given) =>
      collect(
        given
          .split(',')
          .map((each) => each.trim())
          .filter((each) => each !== ''),
        (each) => item.fromText(each),
      ),
    fromToml: (value) =>
      Array.isArray(value) ? collect(value, (each) => item.fromToml(each)) : bad('expected a list'),
  }
}

function collect<T>(items: readonly unknown[], read: (item: never) => Parsed<T>): Parsed<T[]> {
  const values: T[] = []
  const faults: Fault[] = []
  const unknown: string[] = []
  for (const [index, item] of items.entries()) {
    const parsed = read(item as never)
    if (parsed.ok) {
      values.push(parsed.value)
      unknown.push(...(parsed.unknown ?? []).map((name) => `[${index}].${name}`))
    } else {
      faults.push(...parsed.faults.map(({ at, fault }) => ({ at: `[${index}]${at}`, fault })))
    }
  }
  return faults.length > 0 ? { ok: false, faults } : { ok: true, value: values, unknown }
}

/** A kind that passes each parsed value through one more step. */
const piped = <T, U>(kind: Kind<T>, step: (parsed: Parsed<T>) => Parsed<U>): Kind<U> => ({
  ...kind,
  fromText: (given) => step(kind.fromText(given)),
  fromToml: (value) => step(kind.fromToml(value)),
})

/** Transform a value that has been parsed successfully. */
export const mapped = <T, U>(kind: Kind<T>, change: (value: T) => U): Kind<U> =>
  piped(kind, (parsed) => (parsed.ok ? { ...parsed, value: change(parsed.value) } : parsed))

/** Reject a value that parses but breaks another rule. */
export const checked = <T>(kind: Kind<T>, faultsOf: (value: T) => readonly Fault[]): Kind<T> =>
  piped(kind, (parsed) => {
    const faults = parsed.ok ? faultsOf(parsed.value) : []
    return faults.length > 0 ? { ok: false, faults } : parsed
  })

/** A colour as `#rrggbb`, in lower case. */
const colour = mapped(matching('colour', /^#[0-9a-f]{6}$/i, 'a colour such as #0a6652'), (given) => given.toLowerCase())

/** A colour in which text and buttons of pages are legible in that mode. */
export const accentColour = (mode: 'light' | 'dark'): Kind<string> =>
  checked(colour, (given) => {
    const ground = faintOn(given, mode)
    return ground === null
      ? []
      : [{ at: '', fault: `needs a contrast of 4.5 with ${ground}, a ${mode} colour of the pages` }]
  })

export function secret<T>(kind: Kind<T>): Kind<Secret<T>> {
  return { ...mapped(kind, (value) => new Secret(value)), secret: true }
}

export const key32 = mapped(
  matching('64 hexadecimal characters', /^[0-9a-f]{64}$/i, '64 hexadecimal characters'),
  (hex) => new Uint8Array(Buffer.from(hex, 'hex')),
)
