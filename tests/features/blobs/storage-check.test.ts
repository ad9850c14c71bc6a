/** A server is started with a storage that is not that of its database. */
import { expect, test } from 'bun:test'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { MASTER_KEY, startPds } from '../../support/servers/pds.ts'
import { testDatabase } from '../../support/servers/postgres.ts'
import { randomBytes, SERVED, Uploader } from '../../support/clients/uploader.ts'
import { thrownBy } from '../../support/thrown.ts'

test('a server on PostgreSQL does not start with a new folder where the database lists blobs', async () => {
  const { databaseUrl, drop } = await testDatabase()
  await using pds = await startPds({ databaseUrl, blobs: { store: 'folder' }, signingKeyMasterKey: MASTER_KEY })
  const alice = await Uploader.join(pds, 'alice')
  const blob = await alice.upload(randomBytes(10))
  await alice.refer('a.b.c/1', blob)
  const elsewhere = join(pds.dataDir, 'elsewhere')
  const refused = async () =>
    expect(await thrownBy(pds.restart({ dataDir: elsewhere }))).toThrow(
      /database lists blobs, but the folder .*elsewhere\/blobs is empty: set data_dir/,
    )
  await refused()
  // A supervisor tries again, which is no decision of an operator.
  await refused()
  mkdirSync(join(elsewhere, 'blobs'))
  await pds.restart({ dataDir: elsewhere })
  await pds.restart({ dataDir: pds.dataDir })
  expect(await alice.sees(blob.ref.$link)).toEqual(SERVED)
  await pds.stop()
  await drop()
})

test('a server that lost its folder of blobs starts without them, and says so', async () => {
  await using pds = await startPds({ blobs: { store: 'folder' } }, { onFile: true })
  const alice = await Uploader.join(pds, 'alice')
  await alice.upload(randomBytes(10))
  await pds.stop()
  rmSync(join(pds.dataDir, 'blobs'), { recursive: true })
  await pds.restart()
  expect(pds.log.map(({ message }) => message)).toContain('the database lists blobs, but their folder is empty')
})
