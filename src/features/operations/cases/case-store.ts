/** SQL of the tables of cases. */
import { sql, sqlAnd, sqlList, type Reader, type Sql, type Tx } from '../../../platform/database/database.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import type { CaseSubject } from './case-subjects.ts'

export const caseStates = ['open', 'decided', 'appealed', 'closed'] as const
export type CaseState = (typeof caseStates)[number]

export interface CaseRow extends CaseSubject {
  /** The number by which people name the case. */
  seq: number
  handle: string | null
  state: CaseState
  openedAt: Millis
  changedAt: Millis
  deadlineAt: Millis
  furtherReports: number
}

const caseColumns = sql`moderation_case.seq AS seq, moderation_case.did AS did, kind, item, state,
  opened_at AS "openedAt", changed_at AS "changedAt", deadline_at AS "deadlineAt", further_reports AS "furtherReports",
  (SELECT handle FROM account WHERE account.did = moderation_case.did) AS handle`

export const findCase = (reader: Reader, seq: number): Promise<CaseRow | null> =>
  reader.get(sql`SELECT ${caseColumns} FROM moderation_case WHERE seq = ${seq}`)

export interface CaseFilter {
  states: readonly CaseState[]
  did: Did | null
  /** Only cases with a smaller number; null for all. */
  beforeSeq: number | null
}

/** Returns matching cases, newest first. Chooses them by their numbers before it reads anything else of them. */
export function listCases(reader: Reader, { states, did, beforeSeq }: CaseFilter, limit: number): Promise<CaseRow[]> {
  const conditions: Sql[] = states.length === caseStates.length ? [] : [sql`state IN ${sqlList(states)}`]
  if (did !== null) conditions.push(sql`did = ${did}`)
  if (beforeSeq !== null) conditions.push(sql`seq < ${beforeSeq}`)
  return reader.all(sql`
    SELECT ${caseColumns} FROM moderation_case WHERE seq IN
      (SELECT seq FROM moderation_case WHERE ${sqlAnd(conditions)} ORDER BY seq DESC LIMIT ${limit})
    ORDER BY seq DESC`)
}

const isWaiting = sql`state IN ('open', 'appealed')`

/** Returns how many cases wait for a decision, and how many of these are past their deadline. */
export async function countWaiting(reader: Reader, now: Millis): Promise<{ waiting: number; overdue: number }> {
  return (await reader.get<{ waiting: number; overdue: number }>(sql`
    SELECT count(*) AS waiting, count(CASE WHEN deadline_at <= ${now} THEN 1 END) AS overdue
    FROM moderation_case WHERE ${isWaiting}`))!
}

/** Open a case, or find the open one of the subject. Returns its number. */
export async function putCase(
  tx: Tx,
  { did, kind, item }: CaseSubject,
  { now, deadlineAt }: { now: Millis; deadlineAt: Millis },
): Promise<number> {
  const row = await tx.get<{ seq: number }>(sql`
    INSERT INTO moderation_case (did, kind, item, state, opened_at, changed_at, deadline_at, further_reports)
    VALUES (${did}, ${kind}, ${item}, 'open', ${now}, ${now}, ${deadlineAt}, 0)
    ON CONFLICT (did, kind, item) WHERE state = 'open' DO UPDATE SET changed_at = ${now}
    RETURNING seq`)
  return row!.seq
}

/** Returns whether the case was in one of the states before. */
export async function moveCase(
  tx: Tx,
  seq: number,
  from: readonly CaseState[],
  { state, now, deadlineAt }: { state: CaseState; now: Millis; deadlineAt?: Millis },
): Promise<boolean> {
  const deadline = deadlineAt === undefined ? sql`deadline_at` : sql`${deadlineAt}`
  const count = await tx.run(sql`
    UPDATE moderation_case SET state = ${state}, changed_at = ${now}, deadline_at = ${deadline}
    WHERE seq = ${seq} AND state IN ${sqlList(from)}`)
  return count > 0
}

export const setDeadline = (tx: Tx, seq: number, deadlineAt: Millis, now: Millis): Promise<number> =>
  tx.run(
    sql`UPDATE moderation_case SET deadline_at = ${deadlineAt}, changed_at = ${now} WHERE seq = ${seq} AND ${isWaiting}`,
  )

// Reports

const reportSources = ['report', 'label', 'notice', 'check', 'operator'] as const

export interface Said {
  source: (typeof reportSources)[number]
  /** The DID of the reporter, or the name of an operator in the audit log. */
  by: string
  /** Type of the report, or value of the label. */
  reason: string
  text: string
}

export interface ReportRow extends Said {
  seq: number
  at: Millis
}

const reportColumns = sql`seq, source, reported_by AS "by", reason, text, reported_at AS "at"`

export const listReports = (reader: Reader, caseSeq: number, limit: number): Promise<ReportRow[]> =>
  reader.all(sql`SELECT ${reportColumns} FROM case_report WHERE case_seq = ${caseSeq} ORDER BY seq LIMIT ${limit}`)

export const findReport = (reader: Reader, caseSeq: number, { source, by, reason }: Said): Promise<ReportRow | null> =>
  reader.get(sql`
    SELECT ${reportColumns} FROM case_report
    WHERE case_seq = ${caseSeq} AND source = ${source} AND reported_by = ${by} AND reason = ${reason} ORDER BY seq LIMIT 1`)

/** Returns the case, in any state, in which the same was said about the subject before; null if there is none. */
export const findCaseWith = async (
  reader: Reader,
  { did, kind, item }: CaseSubject,
  { source, by, reason }: Said,
): Promise<number | null> =>
  (
    await reader.get<{ seq: number }>(sql`
      SELECT case_seq AS seq FROM case_report
      WHERE source = ${source} AND reported_by = ${by} AND reason = ${reason} AND case_seq IN
        (SELECT seq FROM moderation_case WHERE did = ${did} AND kind = ${kind} AND item = ${item})
      ORDER BY case_seq LIMIT 1`)
  )?.seq ?? null

export const countReports = async (reader: Reader, caseSeq: number): Promise<number> =>
  (await reader.get<{ count: number }>(sql`SELECT count(*) AS count FROM case_report WHERE case_seq = ${caseSeq}`))!
    .count

/** Returns how many reports by one reporter were stored since a time. */
export const countReportsBy = async (reader: Reader, by: string, since: Millis): Promise<number> =>
  (await reader.get<{ count: number }>(
    sql`SELECT count(*) AS count FROM case_report WHERE reported_by = ${by} AND reported_at > ${since}`,
  ))!.count

/** Returns the number of the report. */
export async function insertReport(tx: Tx, caseSeq: number, did: Did, said: Said, now: Millis): Promise<number> {
  const { source, by, reason, text } = said
  const row = await tx.get<{ seq: number }>(sql`
    INSERT INTO case_report (case_seq, did, source, reported_by, reason, text, reported_at)
    VALUES (${caseSeq}, ${did}, ${source}, ${by}, ${reason}, ${text}, ${now}) RETURNING seq`)
  return row!.seq
}

export const countFurtherReport = (tx: Tx, seq: number): Promise<number> =>
  tx.run(sql`UPDATE moderation_case SET further_reports = further_reports + 1 WHERE seq = ${seq}`)

// Notes

export interface NoteRow {
  seq: number
  actor: string
  text: string
  writtenAt: Millis
}

export const listNotes = (reader: Reader, caseSeq: number, limit: number): Promise<NoteRow[]> =>
  reader.all(sql`
    SELECT seq, actor, text, written_at AS "writtenAt" FROM case_note WHERE case_seq = ${caseSeq} ORDER BY seq LIMIT ${limit}`)

export const countNotes = async (reader: Reader, caseSeq: number): Promise<number> =>
  (await reader.get<{ count: number }>(sql`SELECT count(*) AS count FROM case_note WHERE case_seq = ${caseSeq}`))!.count

export const insertNote = (
  tx: Tx,
  { seq, did }: Pick<CaseRow, 'seq' | 'did'>,
  { actor, text, now }: { actor: string; text: string; now: Millis },
): Promise<number> =>
  tx.run(sql`
    INSERT INTO case_note (case_seq, did, actor, text, written_at) VALUES (${seq}, ${did}, ${actor}, ${text}, ${now})`)

// Decisions

export interface DecisionRow {
  caseSeq: number
  did: Did
  act: string
  reason: string
  decidedBy: string
  decidedAt: Millis
  /** Whether a mail was ordered: 0 or 1. */
  mailed: number
  /** When the quarantine of a blob ends. */
  actUntil: Millis | null
  /** 1 if the person may appeal, or has. */
  isAppealable: number
  appeal: string | null
  appealedAt: Millis | null
  outcome: 'upheld' | 'reversed' | null
  answer: string | null
  answeredBy: string | null
  answeredAt: Millis | null
}

const decisionColumns = sql`case_seq AS "caseSeq", did, act, reason, decided_by AS "decidedBy",
  decided_at AS "decidedAt", mailed, act_until AS "actUntil", CASE WHEN code_hash IS NULL THEN 0 ELSE 1 END AS "isAppealable",
  appeal, appealed_at AS "appealedAt", outcome, answer, answered_by AS "answeredBy", answered_at AS "answeredAt"`

export const findDecision = (reader: Reader, caseSeq: number): Promise<DecisionRow | null> =>
  reader.get(sql`SELECT ${decisionColumns} FROM case_decision WHERE case_seq = ${caseSeq}`)

export const findDecisionByCode = (reader: Reader, codeHash: string): Promise<DecisionRow | null> =>
  reader.get(sql`SELECT ${decisionColumns} FROM case_decision WHERE code_hash = ${codeHash}`)

/** Returns the newest decision about an account, a record or a blob against which the person has not appealed. */
export const findAppealable = (reader: Reader, { did, kind, item }: CaseSubject): Promise<DecisionRow | null> =>
  reader.get(sql`
    SELECT ${decisionColumns} FROM case_decision
    WHERE did = ${did} AND code_hash IS NOT NULL AND appealed_at IS NULL AND case_seq IN
      (SELECT seq FROM moderation_case WHERE did = ${did} AND (${kind} = 'account' OR kind = ${kind} AND item = ${item}))
    ORDER BY case_seq DESC LIMIT 1`)

/**
 * Returns the case of the oldest decision since another one that takes the same subject down and was not reversed; null
 * if there is none.
 */
export const findTakedownSince = async (
  reader: Reader,
  { did, kind, item }: CaseSubject,
  { caseSeq, decidedAt }: Pick<DecisionRow, 'caseSeq' | 'decidedAt'>,
): Promise<number | null> =>
  (
    await reader.get<{ seq: number }>(sql`
      SELECT case_seq AS seq FROM case_decision JOIN moderation_case ON seq = case_seq
      WHERE case_decision.did = ${did} AND case_seq <> ${caseSeq} AND decided_at >= ${decidedAt}
        AND COALESCE(outcome, '') <> 'reversed'
        AND (act = 'takedown' AND kind = ${kind} AND item = ${item} OR act = 'takedown-account' AND ${kind} = 'account')
      ORDER BY decided_at, case_seq LIMIT 1`)
  )?.seq ?? null

/**
 * Returns the latest end of a quarantine of the same blob by the decision of another case since then that was not
 * reversed; null if there is none.
 */
export const findQuarantineSince = async (
  reader: Reader,
  { seq, did, item }: CaseRow,
  { since, now }: { since: Millis; now: Millis },
): Promise<Millis | null> =>
  (
    await reader.get<{ until: Millis | null }>(sql`
      SELECT max(act_until) AS until FROM case_decision JOIN moderation_case ON seq = case_seq
      WHERE case_decision.did = ${did} AND kind = 'blob' AND item = ${item} AND act = 'quarantine'
        AND case_seq <> ${seq} AND COALESCE(outcome, '') <> 'reversed'
        AND decided_at >= ${since} AND act_until > ${now}`)
  )?.until ?? null

export async function insertDecision(
  tx: Tx,
  decision: Pick<DecisionRow, 'caseSeq' | 'did' | 'act' | 'reason' | 'decidedBy' | 'decidedAt' | 'mailed' | 'actUntil'>,
  codeHash: string | null,
): Promise<void> {
  const { caseSeq, did, act, reason, decidedBy, decidedAt, mailed, actUntil } = decision
  await tx.run(sql`
    INSERT INTO case_decision (case_seq, did, act, reason, decided_by, decided_at, mailed, act_until, code_hash)
    VALUES (${caseSeq}, ${did}, ${act}, ${reason}, ${decidedBy}, ${decidedAt}, ${mailed}, ${actUntil}, ${codeHash})`)
}

/** Returns false if there was an appeal already. */
export const setAppeal = async (tx: Tx, caseSeq: number, text: string, now: Millis): Promise<boolean> =>
  (await tx.run(sql`
    UPDATE case_decision SET appeal = ${text}, appealed_at = ${now} WHERE case_seq = ${caseSeq} AND appealed_at IS NULL`)) >
  0

export const setAnswer = (
  tx: Tx,
  caseSeq: number,
  { outcome, answer, actor, now }: { outcome: 'upheld' | 'reversed'; answer: string; actor: string; now: Millis },
): Promise<number> =>
  tx.run(sql`
    UPDATE case_decision SET outcome = ${outcome}, answer = ${answer}, answered_by = ${actor}, answered_at = ${now}
    WHERE case_seq = ${caseSeq}`)

/** Returns at most `limit` cases that have not changed since `before` and wait for nothing. */
export async function findFinishedBefore(reader: Reader, before: Millis, limit: number): Promise<number[]> {
  const rows = await reader.all<{ seq: number }>(sql`
    SELECT seq FROM moderation_case WHERE state IN ('decided', 'closed') AND changed_at < ${before} ORDER BY seq LIMIT ${limit}`)
  return rows.map(({ seq }) => seq)
}

/** `seqs` must not be empty. */
export async function deleteCases(tx: Tx, seqs: readonly number[]): Promise<void> {
  for (const table of [sql`case_report`, sql`case_note`, sql`case_decision`])
    await tx.run(sql`DELETE FROM ${table} WHERE case_seq IN ${sqlList(seqs)}`)
  await tx.run(sql`DELETE FROM moderation_case WHERE seq IN ${sqlList(seqs)}`)
}

/** Delete the cases about an account, and remove its name from what it reported. */
export async function deleteCasesOf(tx: Tx, did: Did): Promise<void> {
  for (const table of [sql`case_report`, sql`case_note`, sql`case_decision`, sql`moderation_case`])
    await tx.run(sql`DELETE FROM ${table} WHERE did = ${did}`)
  await tx.run(sql`UPDATE case_report SET reported_by = '' WHERE reported_by = ${did}`)
}
