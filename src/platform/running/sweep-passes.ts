/**
 * The last completed pass of each sweep, and who may make the next one. A server that has its database to itself
 * remembers the passes. On a cluster they are rows, and a lease for each sweep lets one node at a time make a pass.
 */
import type { Context } from '../context.ts'
import { sql, type Cluster, type Database } from '../database/database.ts'
import type { SweepFailure, SweepState } from './sweep-state.ts'

const LEASE = 'sweep '

/** Whether a lease is held for the time of a pass only. */
export const isOfPass = (lease: string): boolean => lease.startsWith(LEASE)

export interface SweepPasses {
  all(): Promise<ReadonlyMap<string, SweepState>>
  last(name: string): Promise<SweepState | null>
  /** A pass has been completed, which ends its failures. */
  record(name: string, pass: SweepState): Promise<void>
  failures(): Promise<ReadonlyMap<string, SweepFailure>>
  /** A pass has failed. */
  fail(name: string, failure: Omit<SweepFailure, 'count'>): Promise<void>
  /**
   * Call `work` unless another node makes a pass, and return what it returned, else null. `signal` aborts if another
   * node may begin.
   */
  exclusively<T>(name: string, work: (signal: AbortSignal) => Promise<T>): Promise<T | null>
}

export const sweepPasses = ({ db }: Pick<Context, 'db'>, stopping: AbortSignal): SweepPasses =>
  db.cluster === null ? ownPasses(stopping) : sharedPasses(db, db.cluster, stopping)

function ownPasses(stopping: AbortSignal): SweepPasses {
  const passes = new Map<string, SweepState>()
  const failures = new Map<string, SweepFailure>()
  return {
    all: async () => passes,
    last: async (name) => passes.get(name) ?? null,
    async record(name, pass) {
      passes.set(name, pass)
      failures.delete(name)
    },
    failures: async () => failures,
    async fail(name, { since, error }) {
      const { count, ...first } = failures.get(name) ?? { count: 0, since }
      failures.set(name, { ...first, count: count + 1, error })
    },
    exclusively: (_name, work) => work(stopping),
  }
}

interface Row {
  name: string
  completedAt: number
  report: string
}

const columns = sql`name, completed_at AS "completedAt", report`
const stateOf = ({ completedAt, report }: Row): SweepState => ({
  completedAt,
  report: JSON.parse(report) as SweepState['report'],
})

const sharedPasses = (db: Database, cluster: Cluster, stopping: AbortSignal): SweepPasses => ({
  async all() {
    const rows = await db.all<Row>(sql`SELECT ${columns} FROM sweep_report`)
    return new Map(rows.map((row) => [row.name, stateOf(row)]))
  },
  async last(name) {
    const row = await db.get<Row>(sql`SELECT ${columns} FROM sweep_report WHERE name = ${name}`)
    return row && stateOf(row)
  },
  async record(name, { completedAt, report }) {
    await db.run(sql`
      INSERT INTO sweep_report (name, completed_at, node, report) VALUES (${name}, ${completedAt}, ${cluster.node.id}, ${JSON.stringify(report)})
      ON CONFLICT (name) DO UPDATE SET completed_at = excluded.completed_at, node = excluded.node, report = excluded.report`)
    await db.run(sql`DELETE FROM sweep_failure WHERE name = ${name}`)
  },
  async failures() {
    const rows = await db.all<SweepFailure & { name: string }>(sql`SELECT name, since, count, error FROM sweep_failure`)
    return new Map(rows.map(({ name, ...failure }) => [name, failure]))
  },
  async fail(name, { since, error }) {
    await db.run(sql`
      INSERT INTO sweep_failure (name, since, count, error) VALUES (${name}, ${since}, 1, ${error})
      ON CONFLICT (name) DO UPDATE SET count = sweep_failure.count + 1, error = excluded.error`)
  },
  async exclusively(name, work) {
    const lease = await cluster.take(LEASE + name)
    if (lease === null) return null
    try {
      return await work(AbortSignal.any([stopping, lease.lost]))
    } finally {
      await lease.release()
    }
  },
})
