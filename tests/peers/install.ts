/**
 * Installs the reference PDS in the cache of this tree, and again when the packages named beside this file change. It
 * runs on a Node of its own, and its SQLite binding is compiled against the headers of that very Node: needs python3,
 * make and a C++ compiler, and takes two minutes.
 */
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { BINDING, PEERS, referenceNode } from './reference.ts'

function npm(args: string[], env: Record<string, string> = {}): void {
  const { status } = spawnSync('npm', args, { cwd: PEERS, stdio: 'inherit', env: { ...process.env, ...env } })
  if (status !== 0) throw new Error(`npm ${args.join(' ')} failed`)
}

const FILES = ['package.json', 'package-lock.json', 'start.mjs'].map(
  (name) => [join(import.meta.dir, name), join(PEERS, name)] as const,
)
const isCopy = ([from, to]: (typeof FILES)[number]) =>
  existsSync(to) && readFileSync(to, 'utf8') === readFileSync(from, 'utf8')

if (!existsSync(BINDING) || !FILES.every(isCopy)) {
  mkdirSync(PEERS, { recursive: true })
  for (const [from, to] of FILES) copyFileSync(from, to)
  npm(['ci', '--no-audit', '--no-fund'])
  const bin = dirname(referenceNode())
  const headers = join(bin, '..')
  npm(['rebuild', 'better-sqlite3', '--build-from-source', '--ignore-scripts=false'], {
    PATH: `${bin}${delimiter}${process.env['PATH']}`,
    ...(existsSync(join(headers, 'include', 'node')) ? { npm_config_nodedir: headers } : {}),
  })
}
