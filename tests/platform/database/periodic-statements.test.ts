/** Statements that a server repeats every few minutes take as long after years as on the first day. */
import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { deleteEndedOAuthSessions } from '../../../src/features/access/oauth/oauth-session-store.ts'
import { ownersOfFaulty } from '../../../src/features/data/blobs/blob-fault-store.ts'
import type { Sql, Tx } from '../../../src/platform/database/database.ts'
import { useWorldOnFile } from '../../support/file-world.ts'

const { pds } = useWorldOnFile()

/** Returns how SQLite would read the tables, for each statement of some work. Nothing is done. */
async function plansOf(work: (tx: Tx) => Promise<unknown>): Promise<string[]> {
  using file = new Database(join(pds.dataDir, 'holdfast.db'), { readonly: true })
  const plans: string[] = []
  const explain = ({ texts }: Sql) => {
    const steps = file.prepare(`EXPLAIN QUERY PLAN ${texts.join('+?')}`).all() as { detail: string }[]
    plans.push(...steps.map(({ detail }) => detail))
  }
  const explaining = {
    all: async (query: Sql) => (explain(query), []),
    run: async (query: Sql) => (explain(query), 0),
  }
  await work(explaining as unknown as Tx)
  return plans
}

test.each<[string, string, (tx: Tx) => Promise<unknown>]>([
  ['the owners of faulty blobs are found without all blobs', 'blob', (tx) => ownersOfFaulty(tx, 0, 100)],
  ['ended sessions are found without all sessions', 'oauth_session', (tx) => deleteEndedOAuthSessions(tx, 0)],
])('%s', async (_, table, work) => {
  const plans = await plansOf(work)
  expect(plans.filter((step) => step.includes(` ${table} `))).not.toBeEmpty()
  expect(plans.filter((step) => step.startsWith(`SCAN ${table}`))).toEqual([])
})
