import { adminCommand } from '../admin-command.ts'
import { Misuse, type Invocation } from '../command.ts'
import { NAMED_BY } from '../account/operator-accounts.ts'
import { OF_WHOM, quotaTarget, quotaText, type QuotaView } from './operator-quotas.ts'

const units = { '': 1, kb: 1e3, mb: 1e6, gb: 1e9, tb: 1e12 }

export const quotaSetCommand = adminCommand({
  summary: 'Set how much an account, or every account, may store.',
  parameters: ['[account]'],
  details: `${OF_WHOM}

Applies at once, to writes, uploads and imports; what is already stored stays. An account above its quota can still
change and delete records. Both options also take "none", for no limit, and "default", which undoes an earlier setting.

${NAMED_BY}`,
  options: {
    records: { value: 'n', doc: 'Number of records.' },
    blobs: { value: 'SIZE', doc: 'Size of all blobs together, in bytes, or as in 500MB or 2GB.' },
  },
  async run({ server, positionals: [name], options }) {
    const records = quotaOption(options, 'records', { '': 1 })
    const blobBytes = quotaOption(options, 'blobs', units)
    if (records === undefined && blobBytes === undefined) throw new Misuse('add --records or --blobs')
    const { path, whose } = await quotaTarget(server, name)
    const view = await server.post<QuotaView>(path, { records, blobBytes })
    return { value: view, text: quotaText(whose, view) }
  },
})

/** Undefined if the option was not given; null for "default", and 0 for "none". */
function quotaOption(
  options: Invocation['options'],
  name: string,
  factors: Readonly<Record<string, number>>,
): number | null | undefined {
  const text = options[name]
  if (text === undefined) return undefined
  if (text === 'default') return null
  if (text === 'none') return 0
  const [, digits = '', unit = ''] = /^(\d{1,12}) ?([kmgt]b)?$/i.exec(String(text)) ?? []
  const count = Number(digits) * (factors[unit.toLowerCase()] ?? 0)
  if (count === 0 || !Number.isSafeInteger(count))
    throw new Misuse(
      `--${name} takes a whole number above 0${factors === units ? ', as in 500000000, 500MB or 2GB' : ''}, "none" or "default"`,
    )
  return count
}
