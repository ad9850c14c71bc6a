/**
 * The folder of a server: private whoever made it, never begun anew by mistake, and refused in words when it cannot be
 * used.
 */
import { afterAll, describe, expect, test } from 'bun:test'
import { Database } from 'bun:sqlite'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { inMountNamespace } from '../../support/faults/small-disk.ts'
import { freePort } from '../../support/ports.ts'
import {
  PROGRAM,
  after,
  asOrdinaryUser,
  runProgram,
  startProgram,
  type RunningServer,
} from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-files-'))
chmodSync(scratch, 0o755)
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

let folders = 0
/** A name in a folder of its own; nothing is there yet. */
function place(): string {
  const parent = join(scratch, String(++folders))
  mkdirSync(parent)
  return join(parent, 'data')
}
const envOf = async (dataDir: string, more: Record<string, string> = {}) => ({
  SERVICE_DATA_DIR: dataDir,
  SERVICE_PORT: String(await freePort()),
  ...more,
})
const start = async (dataDir: string, more: Record<string, string> = {}, program?: string[]) =>
  startProgram(['dev'], await envOf(dataDir, more), scratch, program === undefined ? {} : { program })
const refusal = async (dataDir: string, more: Record<string, string> = {}, program?: string[]) => {
  const { code, err, out } = await runProgram(['dev'], await envOf(dataDir, more), program)
  expect({ code, out }).toEqual({ code: 1, out: '' })
  expect(err.trimEnd().split('\n')).toHaveLength(1)
  return err.trimEnd()
}

async function stop(server: RunningServer): Promise<void> {
  server.signal('SIGTERM')
  expect(await server.exited).toBe(0)
}

async function withAnAccount(dataDir: string): Promise<void> {
  const server = await start(dataDir)
  const alice = await createAccount(server, 'alice')
  const uploaded = await alice.call('com.atproto.repo.uploadBlob', {
    method: 'POST',
    body: 'bytes',
    headers: { 'content-type': 'text/plain' },
  })
  await alice.call('com.atproto.repo.createRecord', {
    json: { repo: alice.did, collection: 'org.example.note', record: { blob: uploaded.body.blob } },
  })
  await stop(server)
}

let usedOnce: Promise<string> | null = null
/** A copy of the folder of a server that was used and stopped. */
async function used(): Promise<string> {
  usedOnce ??= (async () => {
    const dataDir = place()
    await withAnAccount(dataDir)
    return dataDir
  })()
  const copy = place()
  cpSync(await usedOnce, copy, { recursive: true })
  return copy
}

const emptied = (dataDir: string) => truncateSync(join(dataDir, 'holdfast.db'))
const withoutDatabase = (dataDir: string) => rmSync(join(dataDir, 'holdfast.db'))

describe('a database that is gone is not begun anew', () => {
  test('when its file is empty, and the folder stays as it is', async () => {
    const dataDir = await used()
    emptied(dataDir)
    const before = readdirSync(dataDir).sort()
    const said = await refusal(dataDir)
    expect(said).toContain(`the database ${join(dataDir, 'holdfast.db')} is empty`)
    expect(said).toContain('holdfast.marker, master.key, blobs')
    expect(said).toContain('holdfast restore')
    expect(readdirSync(dataDir).sort()).toEqual(before)
    expect(statSync(join(dataDir, 'holdfast.db')).size).toBe(0)
  })

  test.each([['holdfast.marker'], ['master.key'], ['blobs']])(
    'when it is missing and nothing but %s is left',
    async (left) => {
      const dataDir = await used()
      withoutDatabase(dataDir)
      for (const name of readdirSync(dataDir)) if (name !== left) rmSync(join(dataDir, name), { recursive: true })
      expect(await refusal(dataDir)).toContain(`is missing, but a server has already used the folder (${left})`)
      expect(existsSync(join(dataDir, 'holdfast.db'))).toBe(false)
    },
  )

  test('when a database without tables took its place', async () => {
    const dataDir = await used()
    withoutDatabase(dataDir)
    const other = new Database(join(dataDir, 'holdfast.db'))
    other.run('CREATE TABLE t (a)')
    other.run('DROP TABLE t')
    other.close()
    expect(await refusal(dataDir)).toContain('holds nothing')
  })

  test('when only its log is left', async () => {
    const dataDir = place()
    mkdirSync(dataDir)
    writeFileSync(join(dataDir, 'holdfast.db-wal'), 'a log')
    expect(await refusal(dataDir)).toContain('(holdfast.db-wal)')
    expect(readFileSync(join(dataDir, 'holdfast.db-wal'), 'utf8')).toBe('a log')
  })

  test('when it is configured to be elsewhere and is not there', async () => {
    const dataDir = await used()
    expect(await refusal(dataDir, { SERVICE_DATABASE_URL: join(scratch, 'elsewhere.db') })).toContain(
      'elsewhere.db is missing',
    )
  })

  test('commands do not begin a database that is gone anew', async () => {
    const dataDir = await used()
    emptied(dataDir)
    for (const words of [['verify'], ['sweep', 'firehose-gc'], ['backup', join(scratch, 'of-nothing')], ['rewrap']]) {
      const env = { ...(await envOf(dataDir)), SERVICE_REWRAP_NEW_MASTER_KEY: 'ab'.repeat(32) }
      expect(await runProgram([...words, '--dev'], env)).toMatchObject({
        code: 1,
        err: expect.stringContaining('there is no database at'),
      })
    }
  })

  test('a database that is gone comes back by a restore into the same folder, over the empty file', async () => {
    const dataDir = await used()
    const backups = place()
    expect(await runProgram(['backup', backups, '--dev'], await envOf(dataDir))).toMatchObject({ code: 0 })
    emptied(dataDir)
    await refusal(dataDir)
    expect(await runProgram(['restore', backups, '--dev'], await envOf(dataDir))).toMatchObject({ code: 0 })
    await using server = await start(dataDir)
    expect((await request(`${server.url}/xrpc/com.atproto.identity.resolveHandle?handle=alice.test`)).status).toBe(200)
  })

  test('where a restore was cut off, which can be run again', async () => {
    const dataDir = await used()
    const backups = place()
    expect(await runProgram(['backup', backups, '--dev'], await envOf(dataDir))).toMatchObject({ code: 0 })
    const target = place()
    mkdirSync(target)
    cpSync(join(dataDir, 'holdfast.db'), join(target, 'holdfast.db.restoring'))
    expect(await refusal(target)).toContain('a restore was interrupted here')
    expect(await runProgram(['restore', backups, '--dev'], await envOf(target))).toMatchObject({ code: 0 })
    await stop(await start(target))
  })
})

describe('a first start', () => {
  test('that was cut off at any point goes on', async () => {
    const cutOff: ((dataDir: string) => void)[] = [
      () => {},
      (dir) => writeFileSync(join(dir, 'holdfast.lock'), ''),
      (dir) => writeFileSync(join(dir, 'holdfast.db'), ''),
      (dir) =>
        ['holdfast.db', 'holdfast.db-wal', 'holdfast.db-journal'].forEach((name) => writeFileSync(join(dir, name), '')),
      (dir) => {
        const db = new Database(join(dir, 'holdfast.db'))
        db.run('PRAGMA journal_mode = WAL')
        db.run(
          'CREATE TABLE schema_migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL)',
        )
        db.close()
      },
      (dir) => mkdirSync(join(dir, 'blobs', '.incoming'), { recursive: true }),
    ]
    for (const prepare of cutOff) {
      const dataDir = place()
      mkdirSync(dataDir)
      prepare(dataDir)
      await stop(await start(dataDir))
      expect(existsSync(join(dataDir, 'holdfast.marker'))).toBe(true)
    }
  })

  test('that is killed leaves a folder that starts', async () => {
    for (const appears of [
      'holdfast.lock',
      'holdfast.db',
      'holdfast.db-wal',
      'master.key',
      'holdfast.marker',
      'blobs',
    ]) {
      const dataDir = place()
      const child = Bun.spawn([...PROGRAM, 'dev'], {
        env: { PATH: process.env['PATH'] ?? '', ...(await envOf(dataDir)) },
        cwd: scratch,
        stdout: 'ignore',
        stderr: 'ignore',
      })
      await until(() => existsSync(join(dataDir, appears)) || child.exitCode !== null, { maxPauseMillis: 0 })
      child.kill('SIGKILL')
      await child.exited
      await stop(await start(dataDir))
    }
  })

  test('of this version, on the folder of one that knew no marker, makes it', async () => {
    const dataDir = await used()
    rmSync(join(dataDir, 'holdfast.marker'))
    await stop(await start(dataDir))
    expect(readFileSync(join(dataDir, 'holdfast.marker'), 'utf8')).toContain(
      'refuses to start if its database is\nmissing',
    )
    chmodSync(join(dataDir, 'holdfast.marker'), 0o400)
    await stop(await start(dataDir))
  })

  test('with the database elsewhere leaves the marker with the data', async () => {
    const dataDir = place()
    const database = join(place(), '..', 'pds.sqlite')
    await stop(await start(dataDir, { SERVICE_DATABASE_URL: `sqlite://${database}` }))
    expect(readdirSync(dataDir).sort()).toEqual([
      'blobs',
      'holdfast.admin-token',
      'holdfast.lock',
      'holdfast.marker',
      'master.key',
    ])
    rmSync(database)
    expect(await refusal(dataDir, { SERVICE_DATABASE_URL: database })).toContain('pds.sqlite is missing')
  })
})

/** Everything in a folder that others may use. */
function open(dir: string): string[] {
  const paths = [dir, ...readdirSync(dir, { recursive: true }).map((name) => join(dir, String(name)))]
  return paths.filter((path) => (statSync(path).mode & 0o077) !== 0)
}

describe('nobody else may read', () => {
  const careless = after('umask 000')

  test('what the server writes, whatever the umask', async () => {
    const dataDir = place()
    await using server = await start(dataDir, {}, careless)
    const alice = await createAccount(server, 'alice')
    await alice.call('com.atproto.repo.uploadBlob', {
      method: 'POST',
      body: 'bytes',
      headers: { 'content-type': 'text/plain' },
    })
    expect(readdirSync(dataDir).sort()).toEqual([
      'blobs',
      'holdfast.admin-token',
      'holdfast.db',
      'holdfast.db-shm',
      'holdfast.db-wal',
      'holdfast.lock',
      'holdfast.lock-journal',
      'holdfast.marker',
      'master.key',
    ])
    expect(open(dataDir)).toEqual([])
  })

  test('backups, and what comes back of them', async () => {
    const dataDir = await used()
    const [backups, target] = [place(), place()]
    expect(await runProgram(['backup', backups, '--dev'], await envOf(dataDir), careless)).toMatchObject({ code: 0 })
    expect(open(backups)).toEqual([])
    expect(await runProgram(['restore', backups, '--dev'], await envOf(target), careless)).toMatchObject({ code: 0 })
    expect(open(target)).toEqual([])
  })

  test('the folder of an older version, once this one has started', async () => {
    const dataDir = await used()
    for (const name of ['holdfast.db', 'holdfast.lock', 'master.key']) chmodSync(join(dataDir, name), 0o644)
    for (const path of [dataDir, join(dataDir, 'blobs')]) chmodSync(path, 0o755)
    await using server = await start(dataDir)
    expect(open(dataDir)).toEqual([])
    expect((await fetch(`${server.url}/xrpc/_health`)).status).toBe(200)
    const { out } = await runProgram(['doctor', '--dev'], {
      SERVICE_DATA_DIR: dataDir,
      SERVICE_PORT: new URL(server.url).port,
    })
    expect(out).toMatch(/^ok {4}privacy .*no other user/m)
    expect(out).toMatch(/^ok {4}server .*listens at/m)
  })

  test('a configuration that others can read is told: it has the secrets', async () => {
    const settings = join(place(), 'pds.env')
    mkdirSync(dirname(settings))
    writeFileSync(settings, `SERVICE_DATA_DIR=${await used()}\n`, { mode: 0o640 })
    const privacy = async () => {
      const { out } = await runProgram(['doctor', '--dev'], { SERVICE_CONFIG: settings, SERVICE_PORT: '1' })
      return /^.* privacy .*\n.*/m.exec(out)![0]
    }
    expect(await privacy()).toMatch(/^ok .*no other user/)
    chmodSync(settings, 0o644)
    expect(await privacy()).toContain(`other users of this machine can access ${settings}\n`)
    expect(await privacy()).toContain(`→ chmod o= ${settings}`)
  })

  test('a folder that the user may not enter has no configuration', async () => {
    const [closed, dataDir] = [place(), place()]
    for (const folder of [closed, dataDir]) mkdirSync(folder, { mode: 0o700 })
    const settings = join(place(), 'pds.toml')
    mkdirSync(dirname(settings), { mode: 0o755 })
    writeFileSync(settings, `data_dir = "${dataDir}"\nport = 1\n`)
    if (process.getuid?.() === 0) chownSync(dataDir, 65534, 65534)
    const there = ['sh', '-c', `cd '${closed}' && exec "$@"`, 'sh', ...asOrdinaryUser]
    const { out } = await runProgram(['doctor', '--dev'], { SERVICE_CONFIG: settings }, there)
    expect(out).toMatch(/^ok {4}privacy .*no other user/m)
  })

  test('a folder that a link leads to, as under systemd', async () => {
    const dataDir = place()
    const target = `${dataDir}-private`
    mkdirSync(target, { mode: 0o755 })
    symlinkSync(target, dataDir)
    await stop(await start(dataDir))
    expect(statSync(target).mode & 0o777).toBe(0o700)
    expect(lstatSync(dataDir).isSymbolicLink()).toBe(true)
  })

  test('a folder that holds what is not the server’s stays open to its owners', async () => {
    const dataDir = place()
    mkdirSync(dataDir)
    chmodSync(dataDir, 0o755)
    writeFileSync(join(dataDir, 'of-somebody-else'), '')
    chmodSync(join(dataDir, 'of-somebody-else'), 0o644)
    await stop(await start(dataDir))
    expect(open(dataDir)).toEqual([dataDir, join(dataDir, 'of-somebody-else')])
    const { code, out } = await runProgram(['doctor', '--dev'], await envOf(dataDir))
    expect(code).toBe(1)
    expect(out).toContain(`chmod 700 ${dataDir}`)
    expect(out).toMatch(
      /^FAULT server .*no server listens.*\n.*start it.*\n.*operator.*\n(?:.*→.*\n)?- {5}proxy .*not checked: see server$/m,
    )
  })
})

describe('a network share', () => {
  const DISK = '1 0 254:0 / / rw - ext4 /dev/vda rw'

  /** The program on a machine that has a share mounted at a folder, as the kernel would tell it. */
  function mounted(type: string, at: string): string[] {
    const mounts = place()
    writeFileSync(mounts, `${DISK}\n2 1 0:50 / ${at.replaceAll(' ', '\\040')} rw shared:1 - ${type} server:/share rw\n`)
    return ['unshare', '-rm', ...after(`mount --bind ${mounts} /proc/$$/mountinfo`)]
  }

  test.each(['nfs', 'nfs4', 'cifs', 'smb3', '9p', 'fuse.sshfs', 'fuse.rclone'])(
    'of type %s holds no data, and is not touched',
    async (type) => {
      const dataDir = place()
      expect(await refusal(dataDir, {}, mounted(type, join(dataDir, '..')))).toBe(
        `holdfast dev: ${dataDir} is on a network share (${type}), where locks and flushes may fail and damage the database: set data_dir to a folder on a disk of this machine, or network_share_allowed (SERVICE_NETWORK_SHARE_ALLOWED) to true`,
      )
      expect(existsSync(dataDir)).toBe(false)
    },
  )

  test.each(['xfs', 'fuse.mergerfs', 'overlay', 'fuseblk'])('is none that is of type %s', async (type) => {
    const dataDir = place()
    await stop(await start(dataDir, {}, mounted(type, join(dataDir, '..'))))
    expect(existsSync(join(dataDir, 'holdfast.db'))).toBe(true)
  })

  test('holds no database either, also behind a link', async () => {
    const [dataDir, far] = [place(), place()]
    mkdirSync(far)
    const link = place()
    symlinkSync(far, link)
    const env = { SERVICE_DATABASE_URL: join(link, 'pds.sqlite') }
    expect(await refusal(dataDir, env, mounted('nfs4', far))).toStartWith(
      `holdfast dev: ${link} is on a network share (nfs4)`,
    )
  })

  test('is used where the operator says so, and the doctor goes on to warn', async () => {
    const dataDir = await used()
    const share = mounted('nfs4', dataDir)
    const doctor = async (env: Record<string, string>) =>
      (await runProgram(['doctor', '--dev'], await envOf(dataDir, env), share)).out
    expect(await doctor({})).toContain(`FAULT network-share   ${dataDir} is on a network share (nfs4)`)
    const allowed = { SERVICE_NETWORK_SHARE_ALLOWED: 'true' }
    await stop(await start(dataDir, allowed, share))
    expect(await doctor(allowed)).toContain(`warn  network-share   ${dataDir} is on a network share (nfs4)`)
  })
})

describe('what cannot be used is told with its path and what to do', () => {
  const user = process.getuid?.() === 0 ? 65_534 : process.getuid?.()
  const give = (path: string) => chownSync(path, user!, user!)

  test('a folder that cannot be made', async () => {
    const dataDir = place()
    chmodSync(join(dataDir, '..'), 0o500)
    expect(await refusal(dataDir, {}, asOrdinaryUser)).toMatch(
      new RegExp(
        `^holdfast dev: this process \\(user ${user}\\) cannot create ${dataDir}, because .* belongs to .*: create it and give it to that user, or set data_dir`,
      ),
    )
  })

  test('a folder that belongs to somebody else, and files in it that do', async () => {
    const dataDir = await used()
    chmodSync(join(dataDir, 'holdfast.db'), 0o400)
    chmodSync(dataDir, 0o500)
    const byWhom =
      /(?:belongs to root and cannot be used by this process \(user \d+\): .*chown -R \d+ |cannot be used by its owner \(user \d+\): restore the access with "chmod -R u\+rwX )/
    const ofFolder = await refusal(dataDir, {}, asOrdinaryUser)
    expect(ofFolder).toMatch(byWhom)
    expect(ofFolder).toContain(`holdfast dev: ${dataDir} `)
    chmodSync(dataDir, 0o700)
    give(dataDir)
    const ofFile = await refusal(dataDir, {}, asOrdinaryUser)
    expect(ofFile).toMatch(byWhom)
    expect(ofFile).toContain(`holdfast dev: ${join(dataDir, 'holdfast.db')} `)
  })

  test('files of several users, by the doctor', async () => {
    const dataDir = await used()
    const { out: before } = await runProgram(['doctor', '--dev'], await envOf(dataDir))
    expect(before).toMatch(/^ok {4}owners /m)
    // Only root can give files away.
    if (process.getuid?.() !== 0) return
    const [shard = ''] = readdirSync(join(dataDir, 'blobs')).filter((name) => !name.startsWith('.'))
    give(join(dataDir, 'blobs', shard))
    const { out } = await runProgram(['doctor', '--dev'], await envOf(dataDir))
    expect(out).toContain(
      `FAULT owners          the data belongs to several users: ${join(dataDir, 'holdfast.db')} to root, ${join(dataDir, 'blobs', shard)} to user 65534`,
    )
  })

  test('a folder behind a closed one is not called missing by the doctor', async () => {
    const dataDir = await used()
    chmodSync(join(dataDir, '..'), 0o000)
    const { out } = await runProgram(['doctor', '--dev'], await envOf(dataDir), asOrdinaryUser)
    expect(out).toContain(`${dataDir} is not accessible to this user`)
    chmodSync(join(dataDir, '..'), 0o755)
  })

  test('a folder, or a backup, that the user of a command may not enter', async () => {
    const [dataDir, backups] = [await used(), place()]
    expect((await runProgram(['backup', backups, '--dev'], await envOf(dataDir))).code).toBe(0)
    for (const path of [dataDir, backups]) chmodSync(path, 0)
    const env = await envOf(dataDir, { SERVICE_BACKUP_DESTINATION: backups })
    const said = async (...words: string[]) => (await runProgram([...words, '--dev'], env, asOrdinaryUser)).err
    const byWhom =
      /(?:belongs to root and cannot be used by this process \(user 65534\): run the command as its owner|cannot be used: allow it with "chmod u\+rwX" on \S+)\n$/
    for (const command of ['verify', 'backup']) expect(await said(command)).toMatch(byWhom)
    expect(await said('verify')).toContain(`holdfast verify: ${dataDir}`)
    expect(await said('restore')).toMatch(byWhom)
    expect(await said('restore')).toContain(`holdfast restore: ${backups}`)
    const { out } = await runProgram(['doctor', '--dev'], env, asOrdinaryUser)
    expect(out).toMatch(/^FAULT database {8}could not check database: .* cannot be used/m)
    expect(out).toMatch(/^FAULT backups {9}backups to .* cannot be used/m)
    for (const path of [dataDir, backups]) chmodSync(path, 0o700)
  })

  test('a place for backups that cannot be written', async () => {
    const dataDir = await used()
    const backup = async (destination: string, program?: string[]) =>
      (await runProgram(['backup', destination, '--dev'], await envOf(dataDir), program)).err.trimEnd()
    const file = place()
    writeFileSync(file, '')
    expect(await backup(file)).toBe(`holdfast backup: ${file} is not a folder: set backup.destination to a folder`)
    for (const path of [dataDir, join(dataDir, 'holdfast.db')]) give(path)
    const closed = place()
    mkdirSync(closed)
    chmodSync(closed, 0o500)
    expect(await backup(closed, asOrdinaryUser)).toMatch(
      new RegExp(
        `^holdfast backup: ${closed} (?:belongs to root and cannot be used by|cannot be used by its owner).*"ch(?:own|mod) .*${closed}"`,
      ),
    )
  })

  test('a place for the continuous backup that cannot be made, by its own key', async () => {
    const env = await envOf(await used(), { SERVICE_BACKUP_CONTINUOUS: '/proc/backups' })
    expect(await runProgram(['dev'], env)).toMatchObject({
      code: 1,
      err: 'holdfast dev: /proc/backups/continuous cannot be created: set backup.continuous to a folder on a disk\n',
    })
  })

  test('a disk that is full when a server makes its admin token', async () => {
    const dataDir = place()
    mkdirSync(dataDir)
    const full = inMountNamespace(
      'mount -t tmpfs -o size=8k,mode=700 tmpfs "$1" && head -c 8192 /dev/zero >"$1/ballast" && shift',
      [dataDir],
    )
    expect(await refusal(dataDir, {}, [...full, ...PROGRAM])).toBe(
      `holdfast dev: the disk of ${join(dataDir, 'holdfast.admin-token')} is full: free some space`,
    )
  })

  test('a file where the folder should be', async () => {
    const dataDir = place()
    writeFileSync(dataDir, '')
    expect(await refusal(dataDir)).toBe(`holdfast dev: ${dataDir} is not a folder: set data_dir to a folder`)
    expect(await refusal(join(dataDir, 'below'))).toContain('is not a folder')
    expect(await refusal('/proc/data')).toBe(
      'holdfast dev: /proc/data cannot be created: set data_dir to a folder on a disk',
    )
  })

  test('a database that is none, which stays as it is', async () => {
    const dataDir = place()
    mkdirSync(dataDir)
    const path = join(dataDir, 'holdfast.db')
    for (const text of ['a note', 'a longer note\n'.repeat(1000)]) {
      writeFileSync(path, text)
      expect(await refusal(dataDir)).toStartWith(`holdfast dev: ${path} is not a database: set database_url`)
      expect(readFileSync(path, 'utf8')).toBe(text)
    }
  })

  test('a database that is cut short', async () => {
    const dataDir = await used()
    truncateSync(join(dataDir, 'holdfast.db'), 20_000)
    expect(await refusal(dataDir)).toContain(`the database ${join(dataDir, 'holdfast.db')} is damaged`)
  })

  test('a folder where the database should be, and one that is missing', async () => {
    const dataDir = place()
    mkdirSync(join(dataDir, 'holdfast.db'), { recursive: true })
    expect(await refusal(dataDir)).toContain('cannot be opened')
    expect(await refusal(place(), { SERVICE_DATABASE_URL: join(scratch, 'no', 'such', 'folder.db') })).toContain(
      'make sure that its folder exists',
    )
  })

  test('an address that is not here', async () => {
    expect(await refusal(place(), { SERVICE_BIND_ADDRESS: '192.0.2.1', SERVICE_LOG_LEVEL: 'error' })).toBe(
      'holdfast dev: 192.0.2.1 is not an address of this machine: set bind_address (SERVICE_BIND_ADDRESS) to one of its addresses, or to 0.0.0.0 for all of them',
    )
  })

  test('a configuration file that is none', async () => {
    const folder = place()
    mkdirSync(folder)
    const file = join(folder, 'pds.toml')
    writeFileSync(file, Buffer.from([0xff, 0xfe, 0x00, 0x01, 0x0a]))
    const broken = await runProgram(['config', 'check'], { SERVICE_CONFIG: file })
    expect(broken).toMatchObject({ code: 1, err: expect.stringContaining(`- ${file}:1:1: `) })
    renameSync(file, `${file}.away`)
    mkdirSync(file)
    expect(await runProgram(['config', 'check'], { SERVICE_CONFIG: file })).toMatchObject({
      code: 1,
      err: expect.stringContaining(`- ${file}: cannot be read: it is a folder`),
    })
  })
})
