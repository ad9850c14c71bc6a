/**
 * What runs a server on a machine: starts the executable at a path, and again when a command says so. The command fails
 * if the server ends, and returns once it works or, as the file `hangs` in its folder says, never will.
 */
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { askHealth } from '../../../src/commands/server-health.ts'
import { until } from '../until.ts'

export interface Supervisor extends AsyncDisposable {
  /** A command of the shell that restarts the server. */
  readonly restartWith: string
  /** How often it was told to. */
  readonly restarts: number
  /** A restart begins only once this has resolved. */
  gate: Promise<void>
}

export async function superviseServer(
  executable: string,
  env: Record<string, string>,
  folder: string,
): Promise<Supervisor> {
  mkdirSync(join(folder, 'home'), { recursive: true })
  const start = () =>
    Bun.spawn([executable, 'dev'], {
      cwd: folder,
      env: { PATH: process.env['PATH'] ?? '', HOME: join(folder, 'home'), ...env },
      stdout: 'ignore',
      stderr: 'ignore',
    })
  const url = `http://127.0.0.1:${env['SERVICE_PORT']}`
  const marker = join(folder, 'home', 'hangs')
  let child = start()
  let restarts = 0
  const works = async () => {
    const started = child
    await until(
      async () => started.exitCode !== null || existsSync(marker) || (await askHealth(url)).state === 'healthy',
    )
    rmSync(marker, { force: true })
    return started.exitCode === null
  }
  const control = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch() {
      restarts++
      await supervisor.gate
      child.kill('SIGKILL')
      await child.exited
      child = start()
      return new Response(null, { status: (await works()) ? 200 : 500 })
    },
  })
  const supervisor: Supervisor = {
    restartWith: `'${process.execPath}' -e 'process.exit((await fetch("http://127.0.0.1:${control.port}")).ok ? 0 : 1)'`,
    get restarts() {
      return restarts
    },
    gate: Promise.resolve(),
    async [Symbol.asyncDispose]() {
      await control.stop(true)
      child.kill('SIGKILL')
      await child.exited
    },
  }
  if (!(await works())) throw new Error('the server ended')
  return supervisor
}
