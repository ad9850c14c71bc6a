/** `holdfast upgrade` of a server: the executable upgrades itself, and returns if the new one does not work. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { VERSION } from '../../../src/base/version.ts'
import { migrations } from '../../../src/platform/database/embedded-migrations.ts'
import { freePort } from '../../support/ports.ts'
import { PROGRAM, runProgram } from '../../support/servers/program.ts'
import { programOf, type ReleaseHost, startReleaseHost } from '../../support/servers/release-host.ts'
import { superviseServer, type Supervisor } from '../../support/servers/supervisor.ts'
import { until } from '../../support/until.ts'

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-server-upgrade-'))
/** What all versions are, except for the version that they say. */
const built = PROGRAM
const executable = join(scratch, 'holdfast')
const backups = join(scratch, 'backups')
const numbers = migrations.map(({ number }) => number)

let releases: ReleaseHost
let env: Record<string, string>
let supervisor: Supervisor
/** Restarts before the test. */
let restartsBefore: number

beforeAll(async () => {
  releases = startReleaseHost()
  env = {
    SERVICE_PORT: String(await freePort()),
    SERVICE_DATA_DIR: join(scratch, 'data'),
    SERVICE_BACKUP_DESTINATION: backups,
  }
  install()
  supervisor = await superviseServer(executable, env, scratch)
})
afterAll(async () => {
  await Promise.all([supervisor, releases].map((each) => each[Symbol.asyncDispose]()))
  rmSync(scratch, { recursive: true, force: true })
})
beforeEach(async () => {
  install()
  restartsBefore = supervisor.restarts
  // The server names this version, so this is the one that has to become healthy.
  await releases.publish(VERSION, programOf(VERSION, {}, built))
})
afterEach(() => {
  expect(readdirSync(scratch).filter((name) => /\.(new|part|lock|pending)$/.test(name))).toEqual([])
})

function install() {
  writeFileSync(executable, programOf('0.0.9', {}, built))
  chmodSync(executable, 0o755)
}
const publishBroken = (dev: string, changes?: object) =>
  releases.publish('0.2.0', programOf('0.2.0', { dev }, built), changes)

const words = ['upgrade', '--dev', '--json', '--health-timeout', '60', '--executable', executable]
const allWords = (...more: string[]) => [
  ...words,
  '--from',
  releases.url,
  '--public-key',
  releases.key.publicKey,
  ...more,
]
async function upgrade(more = ['--restart-with', supervisor.restartWith], given = env) {
  const { code, out, err } = await runProgram(allWords(...more), given, built)
  return { code, err, report: code === 0 || out !== '' ? JSON.parse(out) : null }
}
const installed = async () => (await runProgram(['version'], {}, [executable])).out.trim()
const snapshots = () => (existsSync(backups) ? readdirSync(join(backups, 'snapshots')).length : 0)
const restarts = () => supervisor.restarts - restartsBefore

test('a server is backed up, restarted as the new version, and works', async () => {
  expect(await upgrade()).toEqual({
    code: 0,
    err: '',
    report: expect.objectContaining({
      outcome: 'upgraded',
      server: 'healthy',
      backup: expect.stringContaining('database of'),
      remarks: [],
    }),
  })
  expect({ restarts: restarts(), snapshots: snapshots() }).toEqual({ restarts: 1, snapshots: 1 })
  expect(await installed()).toBe(`holdfast v${VERSION}`)
  expect(await runProgram(['health', '--dev'], env, built)).toMatchObject({
    code: 0,
    out: `holdfast v${VERSION} at http://127.0.0.1:${env['SERVICE_PORT']} works\n`,
  })
}, 60_000)

test('without a destination for its backup it is left alone, unless the operator does without', async () => {
  const { SERVICE_BACKUP_DESTINATION: _, ...others } = env
  const refused = await upgrade(undefined, others)
  expect(refused).toMatchObject({
    code: 1,
    err: expect.stringMatching(/there is no backup: .*backup\.destination.*--no-backup upgrades without/),
  })
  expect(await installed()).toBe('holdfast v0.0.9')
  expect(await upgrade(['--restart-with', supervisor.restartWith, '--no-backup'], others)).toMatchObject({
    code: 0,
    report: { outcome: 'upgraded', backup: null },
  })
}, 60_000)

test('if nothing here can restart it, it continues as the old version, and the operator is told', async () => {
  expect(await upgrade(['--no-backup'])).toMatchObject({
    code: 0,
    report: { server: 'needs-restart', remarks: [expect.stringContaining('Restart the server at')] },
  })
  expect(restarts()).toBe(0)
}, 60_000)

test('a stopped server stays stopped', async () => {
  const stopped = { ...env, SERVICE_PORT: String(await freePort()) }
  expect(await upgrade(['--no-backup', '--restart-with', 'exit 1'], stopped)).toMatchObject({
    code: 0,
    report: { outcome: 'upgraded', server: 'stopped' },
  })
}, 60_000)

test('another program at the port is no server to restart', async () => {
  using other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => Response.json({ version: '0.4.1' }) })
  const occupied = { ...env, SERVICE_PORT: String(other.port) }
  expect(await upgrade(['--no-backup', '--restart-with', supervisor.restartWith], occupied)).toMatchObject({
    code: 0,
    report: { outcome: 'upgraded', server: 'stopped' },
  })
  expect(restarts()).toBe(0)
}, 60_000)

test('if the new version does not start, the old one returns and works with its data', async () => {
  await publishBroken('exit 1')
  expect(await upgrade()).toMatchObject({
    code: 1,
    report: {
      outcome: 'rolled-back',
      server: 'healthy',
      remarks: [
        expect.stringContaining('Version 0.2.0 did not work: '),
        'The old version is in place again and works; its data needs nothing.',
        expect.any(String),
      ],
    },
  })
  expect(restarts()).toBe(2)
  expect(await installed()).toBe('holdfast v0.0.9')
}, 60_000)

test('if the new version does not respond, the old one returns', async () => {
  await publishBroken('touch "$HOME/hangs"; exec sleep 1000')
  const given = ['--restart-with', supervisor.restartWith, '--no-backup', '--health-timeout', '1']
  expect(await upgrade(given)).toMatchObject({ code: 1, report: { outcome: 'rolled-back', server: 'healthy' } })
  expect(await installed()).toBe('holdfast v0.0.9')
}, 60_000)

/** To be killed. */
const startUpgrade = (given: string[]) =>
  Bun.spawn([...built, ...allWords(...given)], { env: { ...process.env, ...env }, stdout: 'ignore', stderr: 'ignore' })

test('an upgrade that was killed after the swap is judged by the next one', async () => {
  await publishBroken('exit 1')
  const { promise, resolve: open } = Promise.withResolvers<void>()
  supervisor.gate = promise
  const given = ['--restart-with', supervisor.restartWith, '--no-backup']
  const child = startUpgrade(given)
  await until(() => restarts() === 1)
  child.kill('SIGKILL')
  await child.exited
  expect(await installed()).toBe('holdfast v0.2.0')
  open()
  expect(await upgrade(given)).toMatchObject({ code: 1, report: { outcome: 'rolled-back', server: 'healthy' } })
  expect(await installed()).toBe('holdfast v0.0.9')
}, 60_000)

test('an upgrade that was killed before the old version was restarted leaves no server down after the next one', async () => {
  await publishBroken('exit 1')
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
  supervisor.gate = gates[0].promise
  const given = ['--restart-with', supervisor.restartWith, '--no-backup']
  const child = startUpgrade(given)
  await until(() => restarts() === 1)
  supervisor.gate = gates[1].promise
  gates[0].resolve()
  await until(() => restarts() === 2)
  child.kill('SIGKILL')
  await child.exited
  expect(await installed()).toBe('holdfast v0.0.9')
  // The restart of the killed one never happens.
  supervisor.gate = Promise.resolve()
  await releases.publish(VERSION, programOf(VERSION, {}, built))
  expect(await upgrade(given)).toMatchObject({ code: 0, report: { outcome: 'upgraded', server: 'healthy' } })
}, 60_000)

test('a service of systemd is backed up with its environment and user, and restarted by its name', async () => {
  const programs = join(scratch, 'programs')
  const log = join(scratch, 'systemd.log')
  const file = join(scratch, 'server.env')
  mkdirSync(programs)
  const program = (name: string, script: string) => {
    writeFileSync(join(programs, name), `#!/bin/sh\necho "${name} $*" >>'${log}'\n${script}\n`)
    chmodSync(join(programs, name), 0o755)
  }
  writeFileSync(
    file,
    Object.entries(env)
      .map(([key, value]) => `${key}='${value}'\n`)
      .join(''),
  )
  program(
    'systemctl',
    `if [ "$1" = show ]; then cat <<'END'
LoadState=loaded
User=holdfast
WorkingDirectory=
Environment=A=1 B=2
EnvironmentFiles=${file} (ignore_errors=no)
ExecStart={ path=${executable} ; argv[]=${executable} serve ; ignore_errors=no ; status=0/0 }
END
else ${supervisor.restartWith}; fi`,
  )
  program(
    'systemd-run',
    `set -a
while case $1 in --*) true ;; *) false ;; esac; do
  case $1 in --property=EnvironmentFile=*) . "\${1#--property=EnvironmentFile=}" ;; esac
  shift
done
exec "$@"`,
  )
  const before = snapshots()
  expect(await upgrade([], { PATH: `${programs}:${process.env['PATH']}` })).toMatchObject({
    code: 0,
    report: { outcome: 'upgraded', server: 'healthy', backup: expect.any(String) },
  })
  expect(snapshots()).toBe(before + 1)
  const calls = readFileSync(log, 'utf8')
  expect(calls).toContain('--property=User=holdfast --property=Environment=A=1 B=2 --property=EnvironmentFile=')
  expect(calls).not.toContain('WorkingDirectory=')
  expect(calls.trim().split('\n').at(-1)).toBe('systemctl restart holdfast.service')
}, 60_000)

// The last one: it leaves a database that no version here opens.
test('if the new version migrates the database and then fails, the report names what the old one needs', async () => {
  const next = Math.max(...numbers) + 1
  const database = join(scratch, 'data/holdfast.db')
  const statement = `INSERT OR IGNORE INTO schema_migration (number, name, applied_at) VALUES (${next}, \\"new\\", 0)`
  const script = `new (require("bun:sqlite").Database)("${database}").run("${statement}")`
  await publishBroken(`'${process.execPath}' -e '${script}'; exit 1`, { migrations: [...numbers, next] })
  const { code, report } = await upgrade()
  expect({ code, report }).toMatchObject({
    code: 1,
    report: { outcome: 'rolled-back', server: 'failing', backup: expect.any(String) },
  })
  expect(report.remarks.join('\n')).toContain(`migration ${next}, the new version has migrated the database`)
}, 60_000)
