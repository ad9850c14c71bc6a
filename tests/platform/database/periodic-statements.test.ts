/** Statements that a server repeats every few minutes take as long after years as on the first day. */
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { deleteEndedOAuthSessions } from '../../../src/features/access/oauth/oauth-session-store.ts'
import { ownersOfFaulty } from '../../../src/features/data/blobs/blob-fault-store.ts'
import type { Database as Opened, Sql, Tx } from '../../../src/platform/database/database.ts'
import { countEvents } from '../../../src/features/data/firehose/event-log.ts'
import { useWorldOnFile } from '../../support/file-world.ts'

const { pds } = useWorldOnFile()

type Asked = Tx & Pick<Opened, 'cluster'>

/** Returns how SQLite would read the tables, for each statement of some work. Nothing is done. */
async function plansOf(work: (db: Asked) => Promise<unknown>): Promise<string[]> {
  using file = new Database(join(pds.dataDir, 'holdfast.db'), { readonly: true })
  const plans: string[] = []
  const explain = ({ texts }: Sql) => {
    const steps = file.prepare(`EXPLAIN QUERY PLAN ${texts.join('+?')}`).all() as { detail: string }[]
    plans.push(...steps.map(({ detail }) => detail))
  }
  const explaining = {
    all: async (query: Sql) => (explain(query), []),
    get: async (query: Sql) => (explain(query), { count: 0 }),
    run: async (query: Sql) => (explain(query), 0),
    cluster: null,
  }
  await work(explaining as unknown as Asked)
  return plans
}

test.each<[string, string, (db: Asked) => Promise<unknown>]>([
  ['the owners of faulty blobs are found without all blobs', 'blob', (db) => ownersOfFaulty(db, 0, 100)],
  ['ended sessions are found without all sessions', 'oauth_session', (db) => deleteEndedOAuthSessions(db, 0)],
  ['events are counted without reading the log', 'repo_seq', (db) => countEvents(db)],
])('%s', async (_, table, work) => {
  const plans = await plansOf(work)
  expect(plans.filter((step) => step.includes(` ${table} `))).not.toBeEmpty()
  expect(plans.filter((step) => `${step} `.startsWith(`SCAN ${table} `))).toEqual([])
})
