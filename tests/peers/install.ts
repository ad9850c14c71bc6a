/**
 * Installs the reference PDS beside this file, once. It runs on a Node of its own, and its SQLite binding is compiled
 * against the headers of that very Node: needs python3, make and a C++ compiler, and takes two minutes.
 */
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { BINDING, PEERS, referenceNode } from './reference.ts'

function npm(args: string[], env: Record<string, string> = {}): void {
  const { status } = spawnSync('npm', args, { cwd: PEERS, stdio: 'inherit', env: { ...process.env, ...env } })
  if (status !== 0) throw new Error(`npm ${args.join(' ')} failed`)
}

if (!existsSync(BINDING)) {
  npm(['ci', '--no-audit', '--no-fund'])
  const bin = dirname(referenceNode())
  const headers = join(bin, '..')
  npm(['rebuild', 'better-sqlite3', '--build-from-source', '--ignore-scripts=false'], {
    PATH: `${bin}${delimiter}${process.env['PATH']}`,
    ...(existsSync(join(headers, 'include', 'node')) ? { npm_config_nodedir: headers } : {}),
  })
}
