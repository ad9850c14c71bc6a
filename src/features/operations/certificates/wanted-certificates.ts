/** The names for which this server needs certificates. All are its own, so a client cannot add one by asking for it. */
import type { Config } from '../../../platform/configuration/config.ts'
import type { Context } from '../../../platform/context.ts'
import { covers } from '../../../platform/network/certificate-shelf.ts'
import { didWebUrl } from '../../../protocol/did-document.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { servedDomain } from '../../../protocol/handle-policy.ts'
import { activeHandlesAfter, hostedDidsAfter } from './own-name-store.ts'

const PAGE = 500

/** A wanted certificate: its names, separated by spaces. */
export type WantedNames = string

export interface Wanted {
  names: WantedNames
  /** The account whose name it is; null for a name of the service itself. */
  did: Did | null
}

/** Whether the names are proven by DNS records: wildcards always, and all names without `tls.http_port`. */
export const needsRecords = (names: WantedNames, { tls }: Config): boolean => names.includes('*') || tls.httpPort === 0

/** The certificates of the service itself and, with DNS-01, one for all handles under each domain. */
export function standingCertificates(config: Config): WantedNames[] {
  const { publicUrl, formerUrls, availableUserDomains, tls } = config
  const [hostname = '', ...former] = [publicUrl, ...formerUrls].map((url) => new URL(url).hostname)
  if (tls.acmeChallenge === 'http-01') return [hostname, ...former]
  const groups = availableUserDomains.map((domain) => [`*.${domain}`, ...(domain === hostname ? [domain] : [])])
  const alone = [hostname, ...former].filter((name) => !groups.some((names) => covers({ names }, name)))
  return [...alone.map((name) => [name]), ...groups].map((names) => names.join(' '))
}

/** Returns the names that NS records have to delegate to this server's responder. */
export function delegatedNames(config: Config): string[] {
  if (config.tls.mode !== 'acme') return []
  const proven = standingCertificates(config).filter((names) => needsRecords(names, config))
  const domains = proven.flatMap((each) => each.split(' ')).map((name) => name.replace(/^\*\./, ''))
  return [...new Set(domains)].map((name) => `_acme-challenge.${name}`)
}

/** Yields all wanted certificates in pages, those of the service first. */
export async function* wantedCertificates(ctx: Context): AsyncGenerator<Wanted[]> {
  yield standingCertificates(ctx.config).map((names) => ({ names, did: null }))
  const { availableUserDomains: domains, tls } = ctx.config
  if (tls.httpPort === 0) return
  if (tls.acmeChallenge === 'http-01')
    for await (const held of pagesOf(
      (after) => activeHandlesAfter(ctx.db, after, PAGE),
      ({ handle }) => handle,
    ))
      yield held.flatMap(({ handle, did }) => (servedDomain(handle, domains) === null ? [] : [{ names: handle, did }]))
  for await (const dids of pagesOf(
    (after) => hostedDidsAfter(ctx.db, after, PAGE),
    (did) => did,
  ))
    yield dids.flatMap((did) => {
      const host = didWebUrl(did)?.host ?? ''
      return host === '' || host.includes(':') ? [] : [{ names: host, did }]
    })
}

async function* pagesOf<Item>(
  read: (after: string) => Promise<Item[]>,
  keyOf: (item: Item) => string,
): AsyncGenerator<Item[]> {
  for (let after = ''; ;) {
    const items = await read(after)
    yield items
    if (items.length < PAGE) return
    after = keyOf(items.at(-1)!)
  }
}
