/** What is stored about agents. */
import { sql } from '../../src/platform/database/database.ts'
import type { TestPds } from './servers/pds.ts'

const tables = { registrations: sql`agent_registration`, claims: sql`agent_claim`, events: sql`agent_event` }

export async function countOf({ ctx }: Pick<TestPds, 'ctx'>): Promise<Record<keyof typeof tables, number>> {
  const counts = await Promise.all(
    Object.entries(tables).map(async ([name, table]) => [
      name,
      (await ctx.db.get<{ n: number }>(sql`SELECT CAST(COUNT(*) AS BIGINT) AS n FROM ${table}`))!.n,
    ]),
  )
  return Object.fromEntries(counts) as Record<keyof typeof tables, number>
}

export interface Event {
  type: string
  did: string | null
  detail: Record<string, unknown>
}

/** The record of a registration, oldest first. */
export async function eventsOf({ ctx }: Pick<TestPds, 'ctx'>, registrationId: string): Promise<Event[]> {
  const rows = await ctx.db.all<{ type: string; did: string | null; detail: string }>(
    sql`SELECT type, did, detail FROM agent_event WHERE registration_id = ${registrationId} ORDER BY seq`,
  )
  return rows.map((row) => ({ ...row, detail: JSON.parse(row.detail) as Record<string, unknown> }))
}
