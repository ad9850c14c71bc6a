/** What is stored about agents. */
import type { TestPds } from './servers/pds.ts'

const tables = { registrations: 'agent_registration', claims: 'agent_claim', events: 'agent_event' } as const

export async function countOf(pds: Pick<TestPds, 'count'>): Promise<Record<keyof typeof tables, number>> {
  const counts = await Promise.all(
    Object.entries(tables).map(async ([name, table]) => [name, await pds.count(table)] as const),
  )
  return Object.fromEntries(counts) as Record<keyof typeof tables, number>
}

export interface Event {
  type: string
  did: string | null
  detail: Record<string, unknown>
}

/** The record of a registration, oldest first. */
export async function eventsOf(pds: Pick<TestPds, 'rows'>, registrationId: string): Promise<Event[]> {
  const rows = await pds.rows('agent_event', { registration_id: registrationId }, ['type', 'did', 'detail'])
  return rows.map((row) => ({ ...row, detail: JSON.parse(row.detail!) as Record<string, unknown> }))
}
