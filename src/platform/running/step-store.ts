/** SQL of the `step` table. */
import { DAY_MILLIS, MINUTE_MILLIS } from '../../base/durations.ts'
import type { Did, Millis } from '../../protocol/identifiers.ts'
import {
  sql,
  sqlAnd,
  sqlRows,
  type Database,
  type Reader,
  type Sql,
  type Tx,
  type Writer,
} from '../database/database.ts'
import { isHolderGone } from '../database/row-holders.ts'
import { MAX_SKEW_MILLIS } from './clock.ts'

/**
 * No step waits longer for its next try. A later due time was written while the clock was ahead, so the step is due.
 */
export const MAX_WAIT_MILLIS = DAY_MILLIS
/** How long a step that was taken is reserved for that try. */
export const LEASE_MILLIS = 5 * MINUTE_MILLIS

export interface StepRow {
  id: string
  kind: string
  key: string
  did: Did | null
  share: string
  payload: string
  createdAt: Millis
  /** Null if the step failed permanently. */
  dueAt: Millis | null
  tries: number
  triedAt: Millis | null
  lastError: string | null
}

const columns = sql`id, kind, key, did, share, payload_wrapped AS payload, created_at AS "createdAt", due_at AS "dueAt", tries, tried_at AS "triedAt", last_error AS "lastError"`

/** `turn`: in a queue, steps with a lower turn come first. */
export type NewStep = Pick<StepRow, 'id' | 'kind' | 'key' | 'did' | 'share' | 'payload' | 'createdAt' | 'dueAt'> & {
  turn: number
}

const insertion = (steps: readonly NewStep[]) => sql`
  INSERT INTO step (id, kind, key, did, share, turn, payload_wrapped, created_at, due_at, tries)
  VALUES ${sqlRows(steps.map(({ id, kind, key, did, share, turn, payload, createdAt, dueAt }) => [id, kind, key, did, share, turn, payload, createdAt, dueAt, 0]))}`

/** Insert steps, or replace those with the same keys. The new id makes a try of a replaced step ineffective. */
export const putSteps = (tx: Tx, steps: readonly NewStep[]): Promise<number> =>
  tx.run(sql`${insertion(steps)} ON CONFLICT (kind, key) DO UPDATE SET
    id = excluded.id, did = excluded.did, share = excluded.share, turn = excluded.turn, payload_wrapped = excluded.payload_wrapped, created_at = excluded.created_at, due_at = excluded.due_at,
    tries = 0, taken_until = NULL, tried_at = NULL, last_error = NULL`)

/** Insert steps unless others with their keys exist. */
export const insertSteps = (tx: Tx, steps: readonly NewStep[]): Promise<number> =>
  tx.run(sql`${insertion(steps)} ON CONFLICT (kind, key) DO NOTHING`)

/**
 * Delete all but the newest `keep` steps of a kind. Returns how many. Ids sort by the time at which steps were added.
 */
export const trimSteps = (tx: Tx, kind: string, keep: number): Promise<number> =>
  tx.run(
    sql`DELETE FROM step WHERE kind = ${kind} AND id <= (SELECT id FROM step WHERE kind = ${kind} ORDER BY id DESC LIMIT 1 OFFSET ${keep})`,
  )

/**
 * Returns the turn of a step that is added to a share of a queue: after the last turn of that share, and after the
 * present turn, because shares that always have a step waiting would keep the present turn from ending. A step with the
 * same key does not count, since the new one replaces it. `isLast`: after the turns of all other steps.
 */
export async function nextTurn(
  tx: Tx,
  kind: string,
  { key, share }: Pick<StepRow, 'key' | 'share'>,
  isLast: boolean,
): Promise<number> {
  const waiting = sql`SELECT turn FROM step WHERE kind = ${kind} AND due_at IS NOT NULL`
  const { present, last } = (await tx.get<{ present: number | null; last: number | null }>(sql`
    SELECT (${waiting} ORDER BY turn LIMIT 1) AS present,
      (${waiting} AND ${isLast ? sql`1 = 1` : sql`share = ${share} AND key <> ${key}`} ORDER BY turn DESC LIMIT 1) AS last`))!
  return Math.max(present ?? -1, last ?? -1) + 1
}

/** Delete the oldest steps of the share that has most, so that `keep` of the queue are left. Returns how many. */
export async function trimShares(tx: Tx, kind: string, keep: number): Promise<number> {
  const { count } = (await tx.get<{ count: number }>(sql`SELECT count(*) AS count FROM step WHERE kind = ${kind}`))!
  if (count <= keep) return 0
  const largest = sql`SELECT share FROM step WHERE kind = ${kind} GROUP BY share ORDER BY count(*) DESC, share LIMIT 1`
  const oldest = sql`SELECT id FROM step WHERE kind = ${kind} AND share = (${largest}) ORDER BY id LIMIT ${count - keep}`
  return tx.run(sql`DELETE FROM step WHERE id IN (${oldest})`)
}

/** A lease that ends later than any lease could was written while a clock was wrong, and does not count. */
const isFree = (now: Millis) =>
  sql`(taken_until IS NULL OR taken_until <= ${now} OR taken_until > ${now + LEASE_MILLIS + MAX_SKEW_MILLIS})`

/** As in `StepKindOf`. */
interface Queue {
  name: string
  inOrder?: boolean
}

/** The waiting steps of a kind: all of them or, in order, only the one whose turn it is. */
const waitingSteps = ({ name, inOrder }: Queue) => {
  const waiting = sql`SELECT * FROM step WHERE kind = ${name} AND due_at IS NOT NULL`
  return inOrder ? sql`(${waiting} ORDER BY turn, id LIMIT 1) AS waiting` : sql`(${waiting}) AS waiting`
}

/** Returns the kinds that have waiting steps. Most looks find none, and end with this statement. */
export const listWaitingKinds = async (reader: Reader, kinds: readonly Queue[]): Promise<ReadonlySet<string>> => {
  // The database calls the first column of VALUES `column1`.
  const rows = await reader.all<Queue>(sql`
    SELECT column1 AS name FROM (VALUES ${sqlRows(kinds.map(({ name }) => [name]))}) AS kinds
    WHERE EXISTS (SELECT 1 FROM step WHERE kind = column1 AND due_at IS NOT NULL)`)
  return new Set(rows.map(({ name }) => name))
}

/**
 * Returns steps that can be taken now, fewest tries first: steps of an unreachable service must not delay new ones. A
 * step that was last tried in the future, or added there and not tried yet, waits by a clock that has been set back
 * since, and counts as due.
 */
export const listDueSteps = (reader: Reader, kind: Queue, now: Millis, limit: number): Promise<StepRow[]> =>
  reader.all(sql`
    SELECT ${columns} FROM ${waitingSteps(kind)}
    WHERE (due_at <= ${now} OR due_at > ${now + MAX_WAIT_MILLIS} OR coalesce(tried_at, created_at) > ${now + MAX_SKEW_MILLIS}) AND ${isFree(now)}
    ORDER BY tries, due_at LIMIT ${limit}`)

/** Returns when the next step of a kind can be taken, or null if none is waiting. */
export const nextStepAt = async (reader: Reader, kind: Queue): Promise<Millis | null> =>
  (await reader.get<{ at: Millis | null }>(
    sql`SELECT min(coalesce(taken_until, due_at)) AS at FROM ${waitingSteps(kind)}`,
  ))!.at

/** Take a step for `holder` and count the try. Returns 0 if another holder took it or it is gone. */
export const takeStep = (
  tx: Tx,
  { id, tries }: Pick<StepRow, 'id' | 'tries'>,
  now: Millis,
  holder: string | null,
): Promise<number> =>
  tx.run(sql`
    UPDATE step SET taken_until = ${now + LEASE_MILLIS}, taken_by = ${holder}, tried_at = ${now}, tries = ${tries + 1}
    WHERE id = ${id} AND tries = ${tries} AND due_at IS NOT NULL AND ${isFree(now)}`)

/** `dueAt` is null if that was the last try. */
export type StepReturn = Pick<StepRow, 'dueAt' | 'lastError' | 'tries'>

/** Return a step that was taken and not performed. */
export const returnStep = (
  writer: Writer,
  { id, tries }: Pick<StepRow, 'id' | 'tries'>,
  { dueAt, lastError, tries: counted }: StepReturn,
): Promise<number> =>
  writer.run(
    sql`UPDATE step SET due_at = ${dueAt}, taken_until = NULL, last_error = ${lastError}, tries = ${counted} WHERE id = ${id} AND tries = ${tries}`,
  )

/** How far a step has come, for callers that wait for the end of a try. */
export type StepProgress = Pick<StepRow, 'id' | 'tries' | 'triedAt' | 'lastError'> & { takenUntil: Millis | null }

const progress = sql`id, tries, tried_at AS "triedAt", last_error AS "lastError", taken_until AS "takenUntil"`

const isStep = ({ kind, key }: Pick<StepRow, 'kind' | 'key'>) => sql`kind = ${kind} AND key = ${key}`

/** Returns null if the step no longer exists. */
export const findProgress = (reader: Reader, step: Pick<StepRow, 'kind' | 'key'>): Promise<StepProgress | null> =>
  reader.get(sql`SELECT ${progress} FROM step WHERE ${isStep(step)}`)

/**
 * Makes a step due, unless a try of it is under way. Returns how far it has come, or null if there is no such step, or
 * if it has failed for good.
 */
export async function hastenStep(
  tx: Tx,
  step: Pick<StepRow, 'kind' | 'key'>,
  now: Millis,
): Promise<StepProgress | null> {
  const waits = sql`${isStep(step)} AND due_at IS NOT NULL`
  await tx.run(sql`UPDATE step SET due_at = ${now} WHERE ${waits} AND ${isFree(now)}`)
  return tx.get(sql`SELECT ${progress} FROM step WHERE ${waits}`)
}

export const deleteStep = (writer: Writer, id: string): Promise<number> =>
  writer.run(sql`DELETE FROM step WHERE id = ${id}`)

/** Releases the steps whose holders are dead. Returns how many. */
export async function releaseSteps(db: Database): Promise<number> {
  const left = sql`taken_until IS NOT NULL AND ${isHolderGone(db, sql`taken_by`)}`
  if ((await db.get(sql`SELECT 1 FROM step WHERE ${left} LIMIT 1`)) === null) return 0
  return db.run(sql`UPDATE step SET taken_until = NULL WHERE ${left}`)
}

/** Whether a step with this key waits, or is being performed. */
export const isStepWaiting = async (reader: Reader, { name }: Pick<Queue, 'name'>, key: string): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 FROM step WHERE kind = ${name} AND key = ${key} AND due_at IS NOT NULL`)) !== null

/** Whether a step with this key has failed permanently. */
export const hasStepFailed = async (reader: Reader, { name }: Pick<Queue, 'name'>, key: string): Promise<boolean> =>
  (await reader.get(sql`SELECT 1 FROM step WHERE kind = ${name} AND key = ${key} AND due_at IS NULL`)) !== null

/** Makes the steps of a kind due at once that wait for another try. Returns how many. */
export const hastenSteps = (writer: Writer, { name }: Pick<Queue, 'name'>, now: Millis): Promise<number> =>
  writer.run(sql`UPDATE step SET due_at = ${now} WHERE kind = ${name} AND due_at > ${now} AND ${isFree(now)}`)

/** Delete the step of a kind with this key. Returns 0 if there is none. */
export const withdrawStep = (tx: Tx, { name }: Pick<Queue, 'name'>, key: string): Promise<number> =>
  tx.run(sql`DELETE FROM step WHERE kind = ${name} AND key = ${key}`)

export const deleteStepsOf = (tx: Tx, did: Did): Promise<number> => tx.run(sql`DELETE FROM step WHERE did = ${did}`)

export const deleteFailedBefore = (writer: Writer, instant: Millis): Promise<number> =>
  writer.run(sql`DELETE FROM step WHERE due_at IS NULL AND tried_at < ${instant}`)

/** Counts and times of the steps of one kind. */
export interface StepSummary {
  kind: string
  waiting: number
  failed: number
  /** When the oldest waiting step was created; null if none waits. */
  oldestAt: Millis | null
  nextAt: Millis | null
  /** Error of the latest failed try; null if there is none. */
  lastError: string | null
}

/** Returns a summary of every kind that has steps. */
export const summariseSteps = (reader: Reader): Promise<StepSummary[]> =>
  reader.all(sql`
    SELECT kind, count(due_at) AS waiting, count(*) - count(due_at) AS failed, min(CASE WHEN due_at IS NOT NULL THEN created_at END) AS "oldestAt", min(due_at) AS "nextAt",
      (SELECT last_error FROM step latest WHERE latest.kind = step.kind AND last_error IS NOT NULL ORDER BY tried_at DESC LIMIT 1) AS "lastError"
    FROM step GROUP BY kind ORDER BY kind`)

/** Returns the steps after an id, oldest first. A null `kind` means all kinds. */
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

/** One step, or all steps of a kind. */
export type StepChoice = { id: string } | { kind: string }

const chosen = (choice: StepChoice): Sql => ('id' in choice ? sql`id = ${choice.id}` : sql`kind = ${choice.kind}`)

/** Make steps due now and reset their tries. Leaves steps in progress alone. Returns how many were changed. */
export const makeStepsDue = (tx: Tx, choice: StepChoice, now: Millis): Promise<number> =>
  tx.run(
    sql`UPDATE step SET due_at = ${now}, tries = 0, taken_until = NULL WHERE ${sqlAnd([chosen(choice), isFree(now)])}`,
  )

export const dropSteps = (tx: Tx, choice: StepChoice): Promise<number> =>
  tx.run(sql`DELETE FROM step WHERE ${chosen(choice)}`)
