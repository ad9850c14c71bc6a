/** Rows of `step`. */
import type { Did, Millis } from '../../protocol/identifiers.ts'
import { sql, sqlAnd, type Reader, type Sql, type Tx, type Writer } from '../database/database.ts'

/** No step waits longer for its next try. What seems to was written while the clock was ahead, and is due. */
export const MAX_WAIT_MILLIS = 24 * 60 * 60 * 1000
/** How long a step is left to whoever took it. */
export const LEASE_MILLIS = 5 * 60 * 1000

export interface StepRow {
  id: string
  kind: string
  key: string
  did: Did | null
  payload: string
  createdAt: Millis
  /** Null: failed for good. */
  dueAt: Millis | null
  tries: number
  triedAt: Millis | null
  lastError: string | null
}

const columns = sql`id, kind, key, did, payload_wrapped AS payload, created_at AS "createdAt", due_at AS "dueAt", tries, tried_at AS "triedAt", last_error AS "lastError"`

export type NewStep = Pick<StepRow, 'id' | 'kind' | 'key' | 'did' | 'payload' | 'createdAt' | 'dueAt'>

const insertion = ({ id, kind, key, did, payload, createdAt, dueAt }: NewStep) => sql`
  INSERT INTO step (id, kind, key, did, payload_wrapped, created_at, due_at, tries)
  VALUES (${id}, ${kind}, ${key}, ${did}, ${payload}, ${createdAt}, ${dueAt}, 0)`

/** In the place of one with the same key; whoever is at that one is at nothing any more. */
export const putStep = (tx: Tx, step: NewStep): Promise<number> =>
  tx.run(sql`${insertion(step)} ON CONFLICT (kind, key) DO UPDATE SET
    id = excluded.id, did = excluded.did, payload_wrapped = excluded.payload_wrapped, created_at = excluded.created_at, due_at = excluded.due_at,
    tries = 0, taken_until = NULL, tried_at = NULL, last_error = NULL`)

/** Unless there is one with the same key. */
export const insertStep = (tx: Tx, step: NewStep): Promise<number> => tx.run(sql`${insertion(step)} ON CONFLICT (kind, key) DO NOTHING`)

/** Delete the oldest steps of a kind beyond a number. */
export const trimSteps = (tx: Tx, kind: string, keep: number): Promise<number> =>
  tx.run(
    sql`DELETE FROM step WHERE kind = ${kind} AND created_at <= (SELECT created_at FROM step WHERE kind = ${kind} ORDER BY created_at DESC LIMIT 1 OFFSET ${keep})`,
  )

const isFree = (now: Millis) => sql`(taken_until IS NULL OR taken_until <= ${now} OR taken_until > ${now + LEASE_MILLIS})`

/** Steps that were never tried come first: those of a service that is out of reach must not keep them waiting. */
export const listDueSteps = (reader: Reader, kind: string, now: Millis, limit: number): Promise<StepRow[]> =>
  reader.all(sql`
    SELECT ${columns} FROM step
    WHERE kind = ${kind} AND (due_at <= ${now} OR due_at > ${now + MAX_WAIT_MILLIS}) AND ${isFree(now)}
    ORDER BY tries, due_at LIMIT ${limit}`)

/** When the next step of a kind can be taken, unless it is taken before; null when there is none. */
export const nextStepAt = async (reader: Reader, kind: string): Promise<Millis | null> =>
  (await reader.get<{ at: Millis | null }>(
    sql`SELECT min(coalesce(taken_until, due_at)) AS at FROM step WHERE kind = ${kind} AND due_at IS NOT NULL`,
  ))!.at

/** 0 rows: somebody else has taken it, or it is gone. */
export const takeStep = (tx: Tx, { id, tries }: Pick<StepRow, 'id' | 'tries'>, now: Millis): Promise<number> =>
  tx.run(
    sql`UPDATE step SET taken_until = ${now + LEASE_MILLIS}, tried_at = ${now}, tries = ${tries + 1} WHERE id = ${id} AND tries = ${tries} AND due_at IS NOT NULL`,
  )

/** Give it back after a try. `dueAt` is null when it was the last one. */
export const returnStep = (
  writer: Writer,
  { id, tries }: Pick<StepRow, 'id' | 'tries'>,
  { dueAt, lastError }: Pick<StepRow, 'dueAt' | 'lastError'>,
): Promise<number> =>
  writer.run(sql`UPDATE step SET due_at = ${dueAt}, taken_until = NULL, last_error = ${lastError} WHERE id = ${id} AND tries = ${tries}`)

export const deleteStep = (writer: Writer, id: string): Promise<number> => writer.run(sql`DELETE FROM step WHERE id = ${id}`)

export const areStepsTaken = async (reader: Reader): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 FROM step WHERE taken_until IS NOT NULL LIMIT 1`)) !== null

/** Whoever was at a step is no more. */
export const releaseSteps = (writer: Writer): Promise<number> =>
  writer.run(sql`UPDATE step SET taken_until = NULL WHERE taken_until IS NOT NULL`)

export const deleteStepsOf = (tx: Tx, did: Did): Promise<number> => tx.run(sql`DELETE FROM step WHERE did = ${did}`)

export const deleteFailedBefore = (writer: Writer, instant: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM step WHERE due_at IS NULL AND tried_at < ${instant}`)

/** How things are with the steps of a kind. */
export interface StepSummary {
  kind: string
  waiting: number
  failed: number
  /** Of those that wait. */
  oldestAt: Millis | null
  nextAt: Millis | null
  /** What the latest try met that failed. */
  lastError: string | null
}

/** Of every kind that there are steps of. */
export const summariseSteps = (reader: Reader): Promise<StepSummary[]> =>
  reader.all(sql`
    SELECT kind, count(due_at) AS waiting, count(*) - count(due_at) AS failed, min(CASE WHEN due_at IS NOT NULL THEN created_at END) AS "oldestAt", min(due_at) AS "nextAt",
      (SELECT last_error FROM step latest WHERE latest.kind = step.kind AND last_error IS NOT NULL ORDER BY tried_at DESC LIMIT 1) AS "lastError"
    FROM step GROUP BY kind ORDER BY kind`)

/** The oldest first, those after an id. */
export function listSteps(
  reader: Reader,
  { kind, after }: { kind: string | null; after: string },
  limit: number,
): Promise<Omit<StepRow, 'payload'>[]> {
  const ofKind = kind === null ? sql`1 = 1` : sql`kind = ${kind}`
  return reader.all(sql`
    SELECT id, kind, key, did, created_at AS "createdAt", due_at AS "dueAt", tries, tried_at AS "triedAt", last_error AS "lastError"
    FROM step WHERE id > ${after} AND ${ofKind} ORDER BY id LIMIT ${limit}`)
}

/** One step, or all of a kind. */
export type StepChoice = { id: string } | { kind: string }

const chosen = (choice: StepChoice): Sql => ('id' in choice ? sql`id = ${choice.id}` : sql`kind = ${choice.kind}`)

/** Whoever is at one goes on with it. */
export const makeStepsDue = (tx: Tx, choice: StepChoice, now: Millis): Promise<number> =>
  tx.run(sql`UPDATE step SET due_at = ${now}, tries = 0, taken_until = NULL WHERE ${sqlAnd([chosen(choice), isFree(now)])}`)

export const dropSteps = (tx: Tx, choice: StepChoice): Promise<number> => tx.run(sql`DELETE FROM step WHERE ${chosen(choice)}`)
