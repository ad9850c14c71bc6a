/** Servers of two versions on one PostgreSQL database: who migrates it, and who may go on using it. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { migrations } from '../../../src/platform/database/embedded-migrations.ts'
import { migrate, SchemaTooNew, type Migration } from '../../../src/platform/database/migrations.ts'
import { openPostgres } from '../../../src/platform/database/postgres.ts'
import { sql, type Database } from '../../../src/platform/database/database.ts'
import { postgresServer } from '../../support/servers/postgres.ts'
import { thrownBy } from '../../support/thrown.ts'

const NAME = 'rolling_upgrade'
let nodes: Database[]
beforeEach(async () => {
  const server = await postgresServer()
  await server.createDatabase(NAME)
  nodes = await Promise.all([1, 2, 3].map(() => openPostgres({ url: server.url(NAME), access: 'shared' })))
})
afterEach(async () => {
  await Promise.all(nodes.map((node) => node.close()))
  await (await postgresServer()).dropDatabase(NAME)
})

const shared = { isShared: true }
const adding: Migration = { number: 9001, name: 'adding', text: 'CREATE TABLE addition (id INTEGER PRIMARY KEY);' }
const taking: Migration = {
  number: 9002,
  name: 'taking',
  text: 'ALTER TABLE addition ADD COLUMN other TEXT;',
  needs: 9001,
}

test('servers that start at once on an empty database apply each migration once', async () => {
  const applied = await Promise.all(nodes.map((node) => migrate(node, migrations, 0, shared)))
  expect(applied.flat().toSorted()).toEqual(migrations.map(({ name }) => name).toSorted())
  expect(await nodes[0]!.get(sql`SELECT count(*) AS count FROM schema_migration`)).toEqual({ count: migrations.length })
})

test('a server starts on a shared database that the next version has migrated, unless something was taken away that it uses', async () => {
  const [newer, older] = nodes
  await migrate(newer!, [...migrations, adding], 0, shared)
  expect(await migrate(older!, migrations, 0, shared)).toEqual([])
  expect(await thrownBy(migrate(older!, migrations, 0))).toThrow(SchemaTooNew)
  await migrate(newer!, [...migrations, adding, taking], 0, shared)
  expect(await migrate(older!, [...migrations, adding], 0, shared)).toEqual([])
  expect(await thrownBy(migrate(older!, migrations, 0, shared))).toThrow(
    'the database has migration 9002, which this version does not know',
  )
})

test('a server that skips a version does not take away what servers that run use', async () => {
  const [newer, older] = nodes
  await migrate(older!, migrations, 0, shared)
  await older!.cluster!.join('0.1.0')
  const skipping = [...migrations, adding, taking]
  expect(await thrownBy(migrate(newer!, skipping, 0, shared))).toThrow('(version 0.1.0) could not use the database')
  expect(await migrate(newer!, [...migrations, adding], 0, shared)).toEqual(['adding'])
  expect(await migrate(newer!, skipping, 0, shared)).toEqual(['taking'])
})

test('once they have stopped, it does', async () => {
  const [newer, older] = nodes
  await migrate(older!, migrations, 0, shared)
  await older!.cluster!.join('0.1.0')
  await older!.close()
  expect(await migrate(newer!, [...migrations, adding, taking], 0, shared)).toEqual(['adding', 'taking'])
})
