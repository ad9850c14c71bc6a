/** Nothing of a deleted account stays: every table of the schema is looked through, so that none is forgotten. */
import { expect, test } from 'bun:test'
import { deleteAccount } from '../../../src/features/identity/account-changes/account-changes.ts'
import { Sql, type Reader, type SqlValue } from '../../../src/platform/database/database.ts'
import { features } from '../../../src/features.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { startPds, type TestPds } from '../../support/servers/pds.ts'
import { sources } from '../../architecture/sources.ts'
import { onPostgres } from '../../support/servers/suite.ts'

interface Person {
  did: Did
  /** Numbers of the repository, and of that in a space. */
  repo: number
  spaceRepo: number
  /** Id of a registration of an agent. */
  agent: string
}

/** What columns hold that say whose row it is. */
const accountColumns: Record<string, (person: Person) => SqlValue> = {
  did: ({ did }) => did,
  account_did: ({ did }) => did,
  parent_did: ({ did }) => did,
  owner: ({ did }) => did,
  for_account: ({ did }) => did,
  used_by: ({ did }) => did,
  repo_id: ({ repo }) => repo,
  space_repo_id: ({ spaceRepo }) => spaceRepo,
  registration_id: ({ agent }) => agent,
}
const isOwned = ({ name }: Column) => name in accountColumns

/** Tables whose rows about the account stay, and why. */
const staying: Record<string, string> = {
  reference_import_account:
    'says that the account has moved in, so that repeating the move does not bring it back; the end of the move deletes it',
  child_account:
    'the row by which the parent of a deleted child is answered; tests/features/agents/children.test.ts says when it goes',
  ceremony: 'an account in the making, which is none yet; the step that makes it one deletes the row',
  repo_seq: 'the events of an account are history that subscribers have seen',
  repo_seq_run: 'lists that history; the event of the deletion takes what is listed with the events',
  unnumbered_event: 'they become that history in a moment; the event of the deletion takes the earlier ones with it',
  name_claim: 'the sweep name-claims ends a claim once it knows what the directory has learned of it',
  plc_operation: 'the log of an identity, which belongs to its owner, in the directory of a development server',
}

/** Tables that are about no account. A new table either has one of the columns above or stands here. */
const aboutNobody: readonly string[] = [
  'alert',
  'alert_message',
  'blob_fault', // by CID; a scrub forgets those that no account has
  'blob_removal',
  'certificate', // names in public certificates, until those expire
  'certificate_order',
  'challenge_record',
  'clock_seen',
  'commit_mark',
  'database_history',
  'default_quota',
  'failed_request',
  'host_rename',
  'identity_round', // a place in the order of accounts
  'integrity_round', // a place in the order of repositories
  'kek_generation',
  'lane',
  'lease',
  'limit_window',
  'live_setting',
  'node',
  'oauth_client',
  'oauth_device',
  'oauth_replay',
  'oauth_request',
  'operator_audit',
  'operator_device',
  'operator_key',
  'operator_nonce',
  'operator_pairing_code',
  'published_lexicon',
  'push_sender_key',
  'reference_import',
  'repo_seq_past',
  'schema_migration',
  'server_secret',
  'sign_in_attempt',
  'signup_place',
  'sweep_failure',
  'sweep_report',
  'used_passkey_challenge',
  'used_proof',
  'waitlist_entry',
]

interface Column {
  table: string
  name: string
  /** As the database writes it. */
  type: string
  isRequired: boolean
}

/** SQL with names of the schema in it. */
const raw = (text: string, ...values: SqlValue[]): Sql => new Sql(text.split('?'), values)

const COLUMNS = onPostgres
  ? `SELECT table_name AS "table", column_name AS name, data_type AS type,
       CASE WHEN is_nullable = 'NO' AND column_default IS NULL AND is_identity = 'NO' THEN 1 ELSE 0 END AS "isRequired"
     FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position`
  : `SELECT m.name AS "table", p.name AS name, lower(p.type) AS type,
       CASE WHEN (p."notnull" = 1 OR p.pk > 0) AND p.dflt_value IS NULL THEN 1 ELSE 0 END AS "isRequired"
     FROM sqlite_master m, pragma_table_info(m.name) p WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' ORDER BY m.name, p.cid`

async function schemaOf({ ctx }: TestPds): Promise<Map<string, Column[]>> {
  const columns = await ctx.db.all<Omit<Column, 'isRequired'> & { isRequired: number }>(raw(COLUMNS))
  return Map.groupBy(
    columns.map((column) => ({ ...column, isRequired: column.isRequired === 1 })),
    ({ table }) => table,
  )
}

const withSpaces = { spaces: { enabled: true } }

let fillings = 0
const fillingOf = ({ type }: Column): SqlValue => {
  if (type === 'blob' || type === 'bytea') return new Uint8Array([1])
  return type === 'text' ? `filling ${++fillings}` : ++fillings
}

test('a table either says whose its rows are, or is about nobody', async () => {
  await using pds = await startPds()
  const unknown = [...(await schemaOf(pds))].filter(
    ([table, columns]) => aboutNobody.includes(table) === columns.some(isOwned),
  )
  expect(unknown.map(([table]) => table)).toEqual([])
})

/** A server with two accounts, each of which has a row in every table that is about accounts. */
async function peopled(pds: TestPds) {
  const { ctx } = pds
  const [ann, ben] = [await createAccount(pds, 'ann'), await createAccount(pds, 'ben')]
  for (const { did, call } of [ann, ben]) {
    const record = { $type: 'app.bsky.feed.post', text: 'hello', createdAt: '2026-01-01T00:00:00.000Z' }
    expect(
      await call('com.atproto.repo.createRecord', { json: { repo: did, collection: record.$type, record } }),
    ).toMatchObject({
      status: 200,
    })
    const inSpace = {
      space: `at://${did}/space/com.example.space/a`,
      repo: did,
      collection: 'com.example.note',
      record: {},
    }
    expect((await call('com.atproto.space.createRecord', { json: inSpace })).status).toBe(200)
  }
  const schema = [...(await schemaOf(pds))].filter(([table]) => !aboutNobody.includes(table) && !(table in staying))
  const person = async ({ did }: TestAccount): Promise<Person> => {
    const idIn = async (table: string) =>
      (await ctx.db.get<{ id: number }>(raw(`SELECT id FROM ${table} WHERE did = ?`, did)))!.id
    const [repo, spaceRepo] = [await idIn('repo'), await idIn('space_repo')]
    return { did: did as Did, repo, spaceRepo, agent: `agent of ${did}` }
  }
  const people = { ann: await person(ann), ben: await person(ben) }
  const rowsOf = async (person: Person, reader: Reader = ctx.db) => {
    const found: Record<string, number> = {}
    for (const [table, columns] of schema) {
      const owners = columns.filter(isOwned)
      const condition = owners.map(({ name }) => `${name} = ?`).join(' OR ')
      const values = owners.map(({ name }) => accountColumns[name]!(person))
      const { n } = (await reader.get<{ n: number }>(
        raw(`SELECT CAST(count(*) AS INTEGER) AS n FROM ${table} WHERE ${condition}`, ...values),
      ))!
      if (n > 0) found[table] = n
    }
    return found
  }
  // Whatever the account has no row of yet gets one.
  for (const person of Object.values(people)) {
    const there = await rowsOf(person)
    for (const [table, columns] of schema) {
      if (table in there) continue
      const set = columns.filter((column) => column.isRequired || isOwned(column))
      const values = set.map((column) => {
        if (table === 'agent_registration' && column.name === 'id') return person.agent
        return isOwned(column) ? accountColumns[column.name]!(person) : fillingOf(column)
      })
      const places = values.map(() => '?').join(', ')
      await ctx.db.run(
        raw(`INSERT INTO ${table} (${set.map(({ name }) => name).join(', ')}) VALUES (${places})`, ...values),
      )
    }
  }
  const tables = schema.map(([table]) => table)
  expect(Object.keys(await rowsOf(people.ann))).toEqual(tables)
  /** Tables of a repository, which a sweep empties piece by piece. */
  const swept = schema
    .filter(([, columns]) =>
      columns.filter(isOwned).every(({ name }) => name === 'repo_id' || name === 'space_repo_id'),
    )
    .map(([table]) => table)
  return { ...people, rowsOf, tables, swept }
}

test('no table holds a row of a deleted account', async () => {
  await using pds = await startPds(withSpaces)
  const { ctx } = pds
  const { ann, ben, rowsOf, tables } = await peopled(pds)
  const others = await rowsOf(ben)
  expect(Object.keys(others)).toEqual(tables)

  expect(await deleteAccount({ ctx }, ann.did)).toBe(true)
  await pds.runSweep('abandoned-repos')
  await pds.runSweep('spaces')
  expect(await rowsOf(ann)).toEqual({})
  expect(await rowsOf(ben)).toEqual(others)
})

/** For each table the features that insert rows, by the code; `platform` if that does. */
const writersOf = Map.groupBy(
  sources.flatMap(({ path, text }) => {
    const [shelf, , feature] = path.split('/')
    const writer = shelf === 'features' ? feature! : shelf!
    return [
      ...new Set([...text.matchAll(/\b(?:INSERT INTO |cachedDocuments\(sql`)(\w+)/g)].map(([, table]) => table!)),
    ].map((table) => ({
      table,
      writer,
    }))
  }),
  ({ table }) => table,
)

test('a feature forgets an account in the tables that it writes, and in no others', async () => {
  await using pds = await startPds(withSpaces)
  const { ctx } = pds
  const { ann, rowsOf, tables, swept } = await peopled(pds)
  const forgotten: Record<string, string[]> = {}
  for (const { name, forgetAccount } of features) {
    const undone = new Error('undone')
    const work = ctx.db.transaction(async (tx) => {
      await forgetAccount?.(ctx, tx, ann.did)
      const left = await rowsOf(ann, tx)
      forgotten[name] = tables.filter((table) => !(table in left))
      throw undone
    })
    expect(await work.catch((error: unknown) => error)).toBe(undone)
  }
  const owned = Map.groupBy(
    tables.filter((table) => !swept.includes(table)),
    (table) => [...new Set(writersOf.get(table)?.map(({ writer }) => writer))].join(' and '),
  )
  // A deletion drops the steps of the account itself.
  forgotten['platform'] = ['step']
  expect(forgotten).toEqual(Object.fromEntries([...features.map(({ name }) => [name, []] as const), ...owned]))
})
