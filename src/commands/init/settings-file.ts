/**
 * The configuration that `holdfast init` writes: a file of variables, which systemd, Docker, shells and the server can
 * read, and a TOML file beside it for keys without a variable. The file of variables names the TOML file.
 */
import { chmodSync } from 'node:fs'
import { OperatorError } from '../../base/operator-error.ts'
import { writePrivately } from '../../base/private-file.ts'
import { CONFIG_VARIABLE } from '../../platform/configuration/config-files.ts'
import { configKeys } from '../../platform/configuration/config-loading.ts'
import { parseVariables } from '../../platform/configuration/variables-file.ts'
import { explained } from '../../platform/files/system-faults.ts'
import type { Terminal } from '../command.ts'
import { variableLine } from '../lines-to-set.ts'

/** By name, as in the environment. */
export type Variables = Readonly<Record<string, string>>
/** Keys that have no variable, by their dotted name, with values as JSON and TOML write them. */
export type FileKeys = Readonly<Record<string, unknown>>

interface Group {
  comment: string
  names: readonly string[]
}

const groups: readonly Group[] = [
  {
    comment: "The server's address, and the domains under which it offers handles.",
    names: ['SERVICE_PUBLIC_URL', 'SERVICE_AVAILABLE_USER_DOMAINS', 'SERVICE_SERVICE_NAME', 'SERVICE_SERVER_DID'],
  },
  {
    comment: 'The folder of the data: database, blobs, keys.',
    names: ['SERVICE_DATA_DIR', 'SERVICE_DATABASE_URL'],
  },
  {
    comment: 'Where the server listens. A reverse proxy on this machine needs 127.0.0.1 only.',
    names: ['SERVICE_BIND_ADDRESS', 'SERVICE_PORT'],
  },
  {
    comment:
      'Who encrypts connections: off (a reverse proxy), files, or acme (the server itself). See docs/certificates.md.',
    names: configKeys.flatMap(({ section, env }) => (section === 'tls' ? env.slice(0, 1) : [])),
  },
  {
    comment: 'Whether sign-up requires an invite code, which "holdfast invite create" creates.',
    names: ['SERVICE_INVITE_CODE_REQUIRED'],
  },
  {
    comment: `The operator's credential, and the key that encrypts the keys of accounts. Keep a copy of the latter, separate from
the backups: neither is of use without the other.`,
    names: ['SERVICE_ADMIN_TOKEN', 'SERVICE_SIGNING_KEY_MASTER_KEY'],
  },
  {
    comment: 'Mail, for confirmations and forgotten passwords. With the provider "log", it is written to the log.',
    names: configKeys.flatMap(({ section, env }) => (section === 'email' ? env.slice(0, 1) : [])),
  },
  {
    comment: 'Backups: a folder, better on another disk, or s3://bucket/prefix at SERVICE_BLOB_MIRROR_ENDPOINT.',
    names: [
      'SERVICE_BACKUP_DESTINATION',
      'SERVICE_BACKUP_INTERVAL_SECS',
      'SERVICE_BACKUP_KEEP',
      'SERVICE_BACKUP_PASSPHRASE',
      'SERVICE_BLOB_MIRROR_ENDPOINT',
      'SERVICE_BLOB_MIRROR_ACCESS_KEY_ID',
      'SERVICE_BLOB_MIRROR_SECRET_ACCESS_KEY',
    ],
  },
  { comment: 'The keys that have no variable.', names: [CONFIG_VARIABLE] },
]

/** Returns the lines of the file. Throws `OperatorError` if its readers would not agree on a value. */
export function settingsText(variables: Variables): string {
  const grouped = new Set(groups.flatMap(({ names }) => names))
  const others = Object.keys(variables).filter((name) => !grouped.has(name))
  const sections = [...groups, { comment: 'Further keys.', names: others.toSorted() }].flatMap(({ comment, names }) => {
    const lines = names.flatMap((name) => (variables[name] === undefined ? [] : [variableLine(name, variables[name])]))
    return lines.length === 0 ? [] : [[...comment.split('\n').map((line) => `# ${line}`), ...lines].join('\n')]
  })
  return `# Configuration of Holdfast, written by "holdfast init". docs/configuration.md lists all keys, and
# "holdfast config check" reports every problem. Put values with spaces or $ in single quotes.

${sections.join('\n\n')}
`
}

/** Returns the variables of a file; null if there is no such file. Throws `OperatorError` if it cannot be read. */
export function readSettings(terminal: Terminal, path: string): Variables | null {
  try {
    const text = terminal.readFile(path)
    return text === null ? null : parseVariables(text)
  } catch (error) {
    throw explained(error, { path, folder: path, key: '--config' })
  }
}

/** Path of the file for keys without a variable, beside a file of variables. */
export const keysFileBeside = (path: string): string => path.replace(/\.env$/, '.toml')

/** The TOML of keys without a variable. */
export function fileKeysText(keys: FileKeys): string {
  const names = Object.keys(keys).toSorted()
  const sections = [...new Set(names.map((name) => name.split('.')[0]!))]
  const lines = sections.map((section) =>
    [
      `[${section}]`,
      ...names
        .filter((name) => name.startsWith(`${section}.`))
        .map((name) => `${name.slice(section.length + 1)} = ${JSON.stringify(keys[name])}`),
    ].join('\n'),
  )
  return `# Configuration of Holdfast: keys that have no variable, written by "holdfast init".\n\n${lines.join('\n\n')}\n`
}

/**
 * Write a file atomically. If the file existed with another text, it is kept under a new name, which is returned;
 * otherwise returns null. `isSecret`: only the owner may read it.
 */
export function writeSettings(
  terminal: Terminal,
  { path, text, isSecret }: { path: string; text: string; isSecret: boolean },
): string | null {
  try {
    const former = terminal.readFile(path)
    if (former === text) return null
    const copy = former === null ? null : freeName(terminal, path)
    if (copy !== null) writePrivately(copy, former!, { replace: false })
    writePrivately(path, text, { replace: true })
    if (!isSecret) chmodSync(path, 0o644)
    return copy
  } catch (error) {
    throw explained(error, { path, folder: path, key: '--config' })
  }
}

const MAX_COPIES = 100

function freeName(terminal: Terminal, path: string): string {
  for (let number = 1; number <= MAX_COPIES; number++) {
    const name = `${path}.${number}`
    if (terminal.readFile(name) === null) return name
  }
  throw new OperatorError(`there are ${MAX_COPIES} copies of ${path} already: delete some`)
}
