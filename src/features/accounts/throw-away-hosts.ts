/**
 * Hosts that give addresses away for minutes: a list of the field, in the public domain, that comes with the program. It
 * is a file of its own in the executable and is read at the first question, so a server that is asked none has no cost.
 */
import { readFile } from 'node:fs/promises'
import list from 'disposable-email-domains-js/dist/dict/disposable_email_blocklist.json' with { type: 'file' }

/** What the import gives: where the file is. */
const PATH = list as unknown as string

const read = async (): Promise<ReadonlySet<string>> => new Set(JSON.parse(await readFile(PATH, 'utf8')) as string[])

let hosts: Promise<ReadonlySet<string>> | undefined

/** Whether an address is at a host of the list, or below one. */
export async function isThrowAway(address: string): Promise<boolean> {
  const known = await (hosts ??= read())
  const labels = address.slice(address.lastIndexOf('@') + 1).toLowerCase().split('.')
  return labels.slice(1).some((_, above) => known.has(labels.slice(above).join('.')))
}
