/**
 * Which test files run on which database is derived from what they import, so nothing may go past that. Processes that
 * run tests at the same time share the ports of the machine.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'bun:test'
import { placed, testsOnBucket } from '../on-bucket.ts'
import { testsOnDatabase } from '../on-database.ts'

const ROOT = join(import.meta.dir, '../..')
/** The module that reads a variable. */
const READERS = {
  TEST_DATABASE: 'tests/support/servers/suite.ts',
  TEST_BLOBS: 'tests/support/servers/suite-parts.ts',
  TEST_READERS: 'tests/support/servers/suite-parts.ts',
}

test('the environment says in one module what the suite runs on', () => {
  const faults = Object.entries(READERS).flatMap(([name, reader]) =>
    [...new Bun.Glob('{src,tests}/**/*.ts').scanSync({ cwd: ROOT })]
      .filter(
        (path) => path !== reader && new RegExp(`\\benv\\W+${name}\\b`).test(readFileSync(join(ROOT, path), 'utf8')),
      )
      .map(
        (path) =>
          `${path} reads ${name} too. Import it from ${reader}: the PostgreSQL run leaves out files that do not`,
      ),
  )
  expect(faults).toEqual([])
})

test('a test file runs on PostgreSQL if it, or a helper of it, starts the server of the suite', () => {
  const onDatabase = testsOnDatabase()
  for (const path of [
    'tests/features/waitlist/waitlist.test.ts',
    'tests/features/notifications/delivery.test.ts',
    'tests/system/cluster/status-of-nodes.test.ts',
  ])
    expect(onDatabase).toContain(path)
  for (const path of [
    'src/protocol/mst.test.ts',
    'tests/architecture/structure.test.ts',
    'tests/features/backup/backup.test.ts',
    'tests/platform/database/postgres.test.ts',
    'tests/system/binary/executable.test.ts',
    'tests/system/durability/kill.test.ts',
    'tests/system/guides/guides.test.ts',
  ])
    expect(onDatabase).not.toContain(path)
})

test('a test file of blobs runs on a bucket unless each of its servers says where its blobs are', () => {
  const onBucket = testsOnBucket()
  for (const name of ['collecting', 'reading', 'reconciling', 'uploading'])
    expect(onBucket).toContain(`tests/features/blobs/${name}.test.ts`)
  for (const path of placed) {
    expect(onBucket).not.toContain(path)
    const source = readFileSync(join(ROOT, path), 'utf8')
    const servers = source.match(/\b(?:startPds|startPdsOnFile|useWorld|useWorldOnFile)\(/g)!
    const places = source.match(/\bblobMirror: bucket\.mirror\b|\bblobs: (?:bucket\.primary\b|\{ store: )/g)
    expect([path, places?.length]).toEqual([path, servers.length])
  }
})

test('processes that ask for ports at the same time get different ones, and each different ones in turn', async () => {
  const script = `import { freePort } from ${JSON.stringify(join(ROOT, 'tests/support/ports.ts'))}
    const ports = []
    for (let i = 0; i < 120; i++) ports.push(await freePort())
    console.log(JSON.stringify(ports))
    await Bun.stdin.text()`
  const children = Array.from({ length: 4 }, () =>
    Bun.spawn([process.execPath, '-e', script], { stdin: 'pipe', stdout: 'pipe' }),
  )
  const ports: number[] = []
  // None ends before all have theirs.
  for (const { stdout } of children) {
    const { value } = await stdout.getReader().read()
    ports.push(...JSON.parse(Buffer.from(value!).toString()))
  }
  for (const { stdin } of children) await stdin.end()
  await Promise.all(children.map(({ exited }) => exited))
  expect(ports).toHaveLength(480)
  expect(new Set(ports).size).toBe(480)
})
