/** Generates the documentation of the configuration from its declarations. */
import { configKeys } from './config-loading.ts'
import { Derived, type Key } from './config-fields.ts'
import { Secret } from '../../base/secret.ts'

/** Returns a Markdown table with one row per key. */
export function configTable(): string {
  const rows = configKeys.map((key) =>
    row(nameOf(key), key.env.map(code).join(', ') || '–', typeOf(key), defaultOf(key), key.field.doc),
  )
  return [
    row('Key', 'Environment', 'Type', 'Default', 'Meaning'),
    row('---', '---', '---', '---', '---'),
    ...rows,
  ].join('\n')
}

const row = (...cells: string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
const code = (text: string) => `\`${text}\``

const nameOf = ({ name, field }: Key) => [code(name), ...(field.addition ? ['†'] : [])].join(' ')
const typeOf = ({ field }: Key) => (field.kind.secret === true ? `${field.kind.name}, secret` : field.kind.name)

function defaultOf({ field }: Key): string {
  const { fallback, development } = field
  const usual = fallback === undefined ? 'required' : describe(fallback)
  return development === undefined ? usual : `${usual}; ${describe(development)} in development`
}

function describe(value: unknown): string {
  if (value === null) return 'none'
  if (value instanceof Derived) return value.text
  if (value instanceof Secret) return 'set'
  if (!Array.isArray(value)) return code(String(value))
  return value.length === 0 ? 'empty' : value.map((item) => code(String(item))).join(', ')
}
