/** The domain of a service: its host name, under which it also offers handles. */
import { isIP } from 'node:net'
import { domainToASCII } from 'node:url'
import { isValidTld } from '@atproto/syntax'
import { Misuse } from './command.ts'

const MAX_DOMAIN_CHARS = 200
const label = /^[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?$/

export type ParsedDomain = { ok: true; domain: string } | { ok: false; fault: string }

const wrong = (fault: string): ParsedDomain => ({ ok: false, fault })

/**
 * Returns the domain in lower case, or the reason why no handles and identities can be under it. `allowsTest`: accept
 * names under .test, which are for development.
 */
export function parseServiceDomain(given: string, { allowsTest = false } = {}): ParsedDomain {
  const text = given.trim().toLowerCase().replace(/\.$/, '')
  const shown = `"${given.trim().slice(0, MAX_DOMAIN_CHARS)}"`
  if (text === '') return wrong('the domain is missing, such as pds.example.com')
  const url = /^[a-z][a-z\d+.-]*:\/\//.test(text) ? URL.parse(text) : URL.parse(`https://${text}`)
  const host = url?.hostname ?? ''
  if (isIP(text.replace(/^\[(.*)\]$/, '$1')) || isIP(host.replace(/^\[(.*)\]$/, '$1')))
    return wrong(`${shown} is an IP address: handles and identities need a name`)
  if (/[/?#@]/.test(text)) return wrong(`${shown} is an address: give the name alone${host === '' ? '' : `, ${host}`}`)
  if (/:\d*$/.test(text)) return wrong(`${shown} has a port: give the name alone, and --port if it is another`)
  if (text.startsWith('*.')) return wrong(`${shown} is a wildcard: give the name alone, ${text.slice(2)}`)
  const ascii = domainToASCII(text)
  if (/\P{ASCII}/u.test(text))
    return wrong(ascii === '' ? `${shown} is not a domain` : `${shown} has to be written in ASCII: ${ascii}`)
  const labels = text.split('.')
  if (text.length > MAX_DOMAIN_CHARS || !labels.every((each) => label.test(each)))
    return wrong(`${shown} is not a domain: letters, digits and hyphens, separated by dots`)
  if (labels.length < 2) return wrong(`${shown} is a single label: give the full name, such as pds.example.com`)
  const isServed = labels.at(-1) === 'test' ? allowsTest : /^\D/.test(labels.at(-1)!) && isValidTld(text)
  if (!isServed) return wrong(`${shown} ends in .${labels.at(-1)}, under which the network knows no handles`)
  return { ok: true, domain: text }
}

/** Returns the domain that an option names. Throws `Misuse`. */
export function requireServiceDomain(given: string, options: { allowsTest: boolean }): string {
  const parsed = parseServiceDomain(given, options)
  if (!parsed.ok) throw new Misuse(parsed.fault)
  return parsed.domain
}

/** The variables that configure a server for a domain. */
export const variablesOf = (domain: string) => ({
  SERVICE_PUBLIC_URL: `https://${domain}`,
  SERVICE_AVAILABLE_USER_DOMAINS: domain,
})
