/**
 * A machine on which a guide is followed word for word: its commands run in a shell, with folders of their own in the
 * place of those of the system, and with `pds`, `systemctl` and `install` that do there what they do on a host.
 */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync, appendFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { startPlcServer } from '../../support/servers/plc-server.ts'
import { ADMIN_TOKEN, freePort, MASTER_KEY } from '../../support/servers/pds.ts'
import { PROGRAM } from '../../support/servers/program.ts'

const GUIDES = join(import.meta.dir, '../../../docs')

interface Block {
  language: 'sh' | 'ini'
  text: string
}

/** The blocks of a guide that a reader runs (`sh`), or adds to the configuration (`ini`). */
export function blocksOf(guide: string): Block[] {
  const text = readFileSync(join(GUIDES, guide), 'utf8')
  return Array.from(text.matchAll(/^( *)```(sh|ini)\n([^]*?)^ *```$/gm), ([, indent = '', language, lines = '']) => ({
    language: language as Block['language'],
    text: lines.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  }))
}

const scripts = (root: string): Record<string, string> => ({
  pds: `set -a; . ${root}/etc/holdfast.env; set +a; exec ${PROGRAM.join(' ')} "$@"`,
  systemctl: `
    stop() { kill "$(cat ${root}/pid)" && tail --pid="$(cat ${root}/pid)" -f /dev/null; }
    start() {
      pds serve >> ${root}/log 2>&1 & echo $! > ${root}/pid
      until pds health > /dev/null 2>&1; do kill -0 "$(cat ${root}/pid)" || exit 1; done
    }
    case "$1" in stop) stop;; start) start;; restart) stop; start;; esac`,
  // There is no user of the service here.
  install: `for word; do last=$word; done; mkdir -m 700 "$last"`,
})

export interface Machine extends AsyncDisposable {
  url: string
  /** Run words of a guide; `values` are what stands for its placeholders. Returns the output. Throws if they fail. */
  run(words: string, values?: Record<string, string>): Promise<string>
  configure(lines: string): void
  /** Run all blocks of a guide in their order. Returns what each `sh` block prints. */
  follow(guide: string, values?: () => Promise<Record<string, string>> | Record<string, string>): Promise<string[]>
}

/** A host with a running service, an account `alice`, and what the package for Debian has set up. */
export async function startMachine(): Promise<Machine> {
  const root = mkdtempSync(join(tmpdir(), 'holdfast-guide-'))
  const plc = await startPlcServer()
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  for (const folder of ['bin', 'etc', 'tmp', 'var/lib', 'var/backups'])
    mkdirSync(join(root, folder), { recursive: true })
  for (const [name, script] of Object.entries(scripts(root))) {
    writeFileSync(join(root, 'bin', name), `#!/bin/sh\n${script}\n`)
    chmodSync(join(root, 'bin', name), 0o755)
  }
  const configure = (lines: string) => appendFileSync(join(root, 'etc/holdfast.env'), `${placed(lines)}\n`)
  const placed = (text: string) =>
    text
      .replaceAll(/\/(?:var\/(?:lib|backups)|etc)\/holdfast/g, (path) => root + path)
      .replaceAll('https://pds.example.com', url)
  const env = {
    PATH: `${join(root, 'bin')}:${process.env['PATH']}`,
    HOME: root,
    TMPDIR: join(root, 'tmp'),
    SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
  }
  const run: Machine['run'] = async (words, values = {}) => {
    let text = placed(words)
    for (const [name, value] of Object.entries(values)) text = text.replaceAll(new RegExp(`\\b${name}\\b`, 'g'), value)
    const shell = Bun.spawn(['sh', '-e', '-c', text], {
      cwd: root,
      env,
      stdout: 'pipe',
      stderr: Bun.file(join(root, 'err')),
    })
    // A server that was started in the background keeps no pipe open: its output goes to a file.
    const [out, code] = await Promise.all([new Response(shell.stdout).text(), shell.exited])
    if (code !== 0) throw new Error(`"${text}" ended with ${code}:\n${out}${readFileSync(join(root, 'err'), 'utf8')}`)
    return out
  }
  const machine: Machine = {
    url,
    run,
    configure,
    async follow(guide, values = () => ({})) {
      const printed: string[] = []
      for (const { language, text } of blocksOf(guide)) {
        if (language === 'ini') configure(text)
        else printed.push(await run(text, await values()))
      }
      return printed
    },
    async [Symbol.asyncDispose]() {
      await run('systemctl stop holdfast')
      await plc[Symbol.asyncDispose]()
      rmSync(root, { recursive: true, force: true })
    },
  }
  configure(`SERVICE_PUBLIC_URL='https:/''/pds.example.com'
SERVICE_AVAILABLE_USER_DOMAINS=pds.example.com
SERVICE_DATA_DIR=/var/lib/holdfast
SERVICE_BIND_ADDRESS=127.0.0.1
SERVICE_PORT=${port}
SERVICE_ADMIN_TOKEN=${ADMIN_TOKEN}
SERVICE_SIGNING_KEY_MASTER_KEY=${Buffer.from(MASTER_KEY.reveal()).toString('hex')}
SERVICE_PLC_DIRECTORY_URL=${plc.url}
SERVICE_CRAWLERS=
SERVICE_BACKUP_DESTINATION=/var/backups/holdfast
SERVICE_BACKUP_INTERVAL_SECS=86400`)
  mkdirSync(dirname(join(root, 'var/lib/holdfast')), { recursive: true })
  await run('systemctl start holdfast')
  await run('pds account create alice alice@example.com --generate')
  return machine
}
