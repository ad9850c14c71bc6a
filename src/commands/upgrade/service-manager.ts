/**
 * How the server on this machine is run: by systemd, by something else that a command restarts, or by hand. A command
 * that needs the server's configuration runs with the environment and the user of its service.
 */
import { realpathSync } from 'node:fs'
import { OperatorError } from '../../base/operator-error.ts'
import { inOneLine } from '../../base/server-request.ts'
import { selfCommand } from '../../platform/running/self.ts'

/** Longer messages of a failed program are cut off. */
const MAX_SAID_CHARS = 1000

export interface ServiceManager {
  /** For messages. */
  name: string
  /** The words before a command that needs the server's configuration. */
  prefix: readonly string[]
  /** Null if only the operator knows how to restart. */
  restart: readonly string[] | null
}

/** Properties of a unit that commands need too. */
const shared = ['User', 'Group', 'WorkingDirectory', 'Environment'] as const

/**
 * Returns how the server that runs `executable` is managed. `restartWith` is a shell command of the operator, `unit`
 * the name of the service if systemd runs it.
 */
export async function findManager(
  executable: string,
  { restartWith, unit }: { restartWith: string | null; unit: string },
): Promise<ServiceManager> {
  const service = await findService(executable, unit)
  if (restartWith !== null)
    return { name: restartWith, prefix: service?.prefix ?? [], restart: ['sh', '-c', restartWith] }
  return service ?? { name: 'no service of systemd', prefix: [], restart: null }
}

async function findService(executable: string, unit: string): Promise<ServiceManager | null> {
  if (Bun.which('systemctl') === null) return null
  const names = ['LoadState', 'ExecStart', 'EnvironmentFiles', ...shared]
  const shown = await runToEnd(['systemctl', 'show', unit, `--property=${names.join(',')}`])
  if (shown.code !== 0) return null
  const properties = shown.out
    .split('\n')
    .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)])
  const valuesOf = (wanted: string) => properties.flatMap(([name, value]) => (name === wanted && value ? [value] : []))
  const started = valuesOf('ExecStart').flatMap((value) => /(?:^|[ {])path=([^ ;]+)/.exec(value)?.[1] ?? [])
  if (!valuesOf('LoadState').includes('loaded') || !started.some((path) => realOf(path) === executable)) return null
  const given = shared.flatMap((name) => valuesOf(name).map((value) => `--property=${name}=${value}`))
  const files = valuesOf('EnvironmentFiles').flatMap((value) => {
    const [, path, ignored] = /^(\S+) \(ignore_errors=(yes|no)\)$/.exec(value) ?? []
    return path === undefined ? [] : `--property=EnvironmentFile=${ignored === 'yes' ? '-' : ''}${path}`
  })
  return {
    name: unit,
    prefix: ['systemd-run', '--quiet', '--wait', '--pipe', '--collect', '--service-type=exec', ...given, ...files],
    restart: ['systemctl', 'restart', unit],
  }
}

function realOf(path: string): string | null {
  try {
    return realpathSync(path)
  } catch {
    return null
  }
}

interface Ended {
  code: number
  out: string
  err: string
}

/** Run this program with the server's configuration. */
export const runAsServer = ({ prefix }: ServiceManager, words: readonly string[]): Promise<Ended> =>
  runToEnd([...prefix, ...selfCommand(...words)])

/** Restart the server. Throws OperatorError if the command fails. */
export async function restartServer({ name, restart }: ServiceManager): Promise<void> {
  if (restart === null) throw new Error('there is no command that restarts the server')
  const { code, err } = await runToEnd(restart)
  if (code !== 0) throw new OperatorError(`${name} could not be restarted: ${said(err)}`)
}

/** Run a program to its end. */
export async function runToEnd(words: readonly string[]): Promise<Ended> {
  const child = Bun.spawn([...words], { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [code, out, err] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ])
  return { code, out, err }
}

/** What a program wrote, in one line. */
export const said = (text: string): string => inOneLine(text.trim(), MAX_SAID_CHARS)
