/**
 * A machine on which a guide is followed word for word: its commands run in a shell, with folders of their own in the
 * place of those of the system, and with `pds`, `systemctl` and `install` that do there what they do on a host.
 */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync, appendFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inMountNamespace } from '../../support/faults/small-disk.ts'
import { startPlcServer } from '../../support/servers/plc-server.ts'
import { freePort } from '../../support/ports.ts'
import { ADMIN_TOKEN, MASTER_KEY } from '../../support/servers/config.ts'
import { PROGRAM, typeAtProgram } from '../../support/servers/program.ts'
import { programOf, type ReleaseHost } from '../../support/servers/release-host.ts'
import { VERSION } from '../../../src/base/version.ts'
import { notRun } from './not-run.ts'

export const GUIDES = join(import.meta.dir, '../../../docs')

export const MASTER_KEY_HEX = Buffer.from(MASTER_KEY.reveal()).toString('hex')

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
  pds: `set -a; . ${root}/etc/holdfast.env; set +a; exec ${root}/usr/local/bin/holdfast "$@"`,
  // A release knows where the next one is; what is tested has no address.
  holdfast: `[ "$1" != upgrade ] || set -- "$@" $(cat ${root}/releases); exec pds "$@"`,
  systemctl: `
    [ "$2" = holdfast ] || exit 0
    stop() { [ -e ${root}/pid ] || return 0; kill "$(cat ${root}/pid)" && tail --pid="$(cat ${root}/pid)" -f /dev/null; rm ${root}/pid; }
    start() {
      pds serve >> ${root}/log 2>&1 & echo $! > ${root}/pid
      until pds health > /dev/null 2>&1; do kill -0 "$(cat ${root}/pid)" || exit 1; done
    }
    case "$1" in stop) stop;; start) start;; restart) stop; start;; esac`,
  // What `upgrade` finds out by itself where systemd runs.
  restart: 'exec systemctl restart holdfast',
  // There is no user of the service here.
  install: `for word; do last=$word; done; mkdir -m 700 "$last"`,
})

export interface Machine extends AsyncDisposable {
  url: string
  /** Stands for `/`. */
  root: string
  /** Of the directory that knows the accounts. */
  plcUrl: string
  /** Run words of a guide. Returns the output. Throws if they fail. */
  run(words: string): Promise<string>
  /** Run words of a guide at a terminal. */
  type(words: string, answers: Answers): ReturnType<typeof typeAtProgram>
  configure(lines: string): void
  /** Put another executable in the place of the one that runs. */
  install(executable: string): void
  /** Where `upgrade` looks. */
  releasesFrom(host: ReleaseHost): void
  /**
   * Run all blocks of a guide, without the lines that `notRun` names, in their order or in another. Returns what each
   * `sh` block prints.
   */
  follow(guide: string, way?: Way): Promise<string[]>
}

export type Answers = Parameters<typeof typeAtProgram>[2]

/** What a reader at a terminal puts in the place of placeholders, types, and gets as exit status, which is 0 else. */
export interface Typed {
  values: Record<string, string>
  answers: Answers
  code?: number
}

interface Way {
  /** Each line of commands is run at a terminal, after what the reader does before it. Each screen is returned. */
  atTerminal?(line: string): Promise<Typed>
  /** What stands for the placeholders of a block, and what a reader does before it. */
  values?(block: Block): Promise<Record<string, string>> | Record<string, string>
  order?: readonly number[]
  /** The guide is for a server that is not well: its commands say so with their exit status. */
  mayFail?: boolean
}

/** Its blocks, without the lines that are not run here. */
export function runnable(guide: string): Block[] {
  const isLeft = (line: string) => notRun[guide]?.[line] === undefined
  return blocksOf(guide).map(({ language, text }) => ({ language, text: text.split('\n').filter(isLeft).join('\n') }))
}

/** A text of a guide with what stands for its placeholders. */
const filled = (text: string, values: Record<string, string>): string =>
  Object.entries(values).reduce(
    (rest, [name, value]) => rest.replaceAll(new RegExp(`(?<!\\w)${RegExp.escape(name)}(?!\\w)`, 'g'), () => value),
    text,
  )

interface Start {
  /** Without it, the service has never been started, and there is no account. */
  isRunning?: boolean
  /** Other servers reach it, at its public address: the guide's is nowhere. */
  isReachable?: boolean
}

/** A host with a running service, an account `alice`, and what the package for Debian has set up. */
export async function startMachine({ isRunning = true, isReachable = false }: Start = {}): Promise<Machine> {
  const root = mkdtempSync(join(tmpdir(), 'holdfast-guide-'))
  const plc = await startPlcServer()
  const port = await freePort()
  const url = `http://${isReachable ? 'localhost' : '127.0.0.1'}:${port}`
  for (const folder of ['bin', 'etc', 'tmp', 'usr/local/bin', 'var/lib', 'var/backups'])
    mkdirSync(join(root, folder), { recursive: true })
  for (const [name, script] of Object.entries(scripts(root))) {
    writeFileSync(join(root, 'bin', name), `#!/bin/sh\n${script}\n`)
    chmodSync(join(root, 'bin', name), 0o755)
  }
  const configure = (lines: string) => appendFileSync(join(root, 'etc/holdfast.env'), `${placed(lines)}\n`)
  const placed = (text: string) =>
    text
      .replaceAll(
        /\/(?:var\/(?:lib|backups)|etc|usr\/local\/bin)\/holdfast|(?<=\s)\/pds(?=[\s/])/g,
        (path) => root + path,
      )
      .replaceAll('https://pds.example.com', url)
  // No name server is asked for the names of the guides.
  const names = [
    'localhost',
    'pds.example.com',
    'holdfast-doctor-check.pds.example.com',
    'alice.pds.example.com',
    'new.localhost',
  ]
  writeFileSync(join(root, 'etc/hosts'), `127.0.0.1 ${names.join(' ')}\n`)
  const namespace = inMountNamespace('mount --bind "$1" /etc/hosts && shift', [join(root, 'etc/hosts')])
  const env = {
    PATH: `${join(root, 'bin')}:${process.env['PATH']}`,
    HOME: root,
    TMPDIR: join(root, 'tmp'),
    SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
    // The passphrase of a backup costs each command seconds otherwise.
    SERVICE_BACKUP_WORK_FACTOR: '10',
  }
  const run: Machine['run'] = async (words) => {
    const text = placed(words)
    const shell = Bun.spawn([...namespace, 'sh', '-e', '-c', text], {
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
    root,
    plcUrl: plc.url,
    run,
    type: (words, answers) =>
      typeAtProgram([], env, answers, [...namespace, 'sh', '-e', '-c', `cd ${root}; ${placed(words)}`]),
    configure,
    install: (executable) => writeFileSync(join(root, 'usr/local/bin/holdfast'), executable, { mode: 0o755 }),
    releasesFrom: ({ url: from, key }) =>
      writeFileSync(
        join(root, 'releases'),
        `--from ${from} --public-key ${key.publicKey} --executable ${root}/usr/local/bin/holdfast --restart-with restart`,
      ),
    async follow(guide, { values = () => ({}), order, mayFail = false, atTerminal } = {}) {
      const printed: string[] = []
      const blocks = runnable(guide).filter(({ text }) => text !== '')
      if (order !== undefined && order.toSorted((a, b) => a - b).join() !== [...blocks.keys()].join())
        throw new Error(`${guide} has ${blocks.length} blocks to run`)
      for (const { language, text } of order?.map((at) => blocks[at]!) ?? blocks) {
        if (atTerminal !== undefined) {
          for (const line of text.split('\n').filter((line) => line !== '')) {
            const { values, answers, code = 0 } = await atTerminal(line)
            const ended = await machine.type(filled(line, values), answers)
            if (ended.code !== code) throw new Error(`"${line}" ended with ${ended.code}:\n${ended.screen}`)
            printed.push(ended.screen)
          }
          continue
        }
        const words = filled(text, await values({ language, text }))
        if (language === 'ini') configure(words)
        else printed.push(await run(mayFail ? `set +e\n${words}true` : words))
      }
      return printed
    },
    async [Symbol.asyncDispose]() {
      await run('systemctl stop holdfast')
      await plc[Symbol.asyncDispose]()
      rmSync(root, { recursive: true, force: true })
    },
  }
  configure(`SERVICE_PUBLIC_URL='${isReachable ? url : "https:/''/pds.example.com"}'
SERVICE_DEVELOPMENT=${isReachable}
SERVICE_AVAILABLE_USER_DOMAINS=pds.example.com
SERVICE_DATA_DIR=/var/lib/holdfast
SERVICE_BIND_ADDRESS=127.0.0.1
SERVICE_PORT=${port}
SERVICE_ADMIN_TOKEN=${ADMIN_TOKEN}
SERVICE_SIGNING_KEY_MASTER_KEY=${MASTER_KEY_HEX}
SERVICE_PLC_DIRECTORY_URL=${plc.url}
SERVICE_CRAWLERS=
SERVICE_BACKUP_DESTINATION=/var/backups/holdfast
SERVICE_BACKUP_INTERVAL_SECS=86400`)
  machine.install(programOf(VERSION, {}, PROGRAM))
  if (!isRunning) return machine
  await run('systemctl start holdfast')
  await run('pds account create alice alice@example.com --generate')
  return machine
}
