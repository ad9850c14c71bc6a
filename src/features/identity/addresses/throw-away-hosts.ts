/**
 * Hosts of disposable email addresses, from a public-domain list. The list is a separate file in the executable, read
 * on first use, so it costs nothing until then.
 */
import { readFile } from 'node:fs/promises'
import { madeOnce } from '../../../base/made-once.ts'
import list from 'disposable-email-domains-js/dist/dict/disposable_email_blocklist.json' with { type: 'file' }

/** The import yields the path of the file. */
const PATH = list as unknown as string

const hosts = madeOnce(
  async (): Promise<ReadonlySet<string>> => new Set(JSON.parse(await readFile(PATH, 'utf8')) as string[]),
)

/**
 * Whether the address is at a listed host or at a subdomain of one. The caller has parsed it: with thousands of labels,
 * the look-ups would take quadratic time.
 */
export async function isThrowAway(address: string): Promise<boolean> {
  const known = await hosts()
  const labels = address
    .slice(address.lastIndexOf('@') + 1)
    .toLowerCase()
    .split('.')
  return labels.slice(1).some((_, above) => known.has(labels.slice(above).join('.')))
}
