/** Decisions about cases: effect, audit entry and mail share one transaction. */
import type { Exchange } from '../../../http/endpoint.ts'
import { invalidRequest, notFound, Refusal } from '../../../http/errors.ts'
import { plainText, type Wording } from '../../../http/html.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import { newToken } from '../../../platform/secrets/new-token.ts'
import { wireTime, type Millis } from '../../../protocol/identifiers.ts'
import { endQuarantine, findQuarantine, QUARANTINE, quarantineBlob } from '../../data/blobs/blobs.ts'
import { accountOf } from '../../identity/accounts/accounts.ts'
import { addMail, decisionMail, type ToldDecision } from '../../identity/mails/mails.ts'
import { actorOf, recordAudit, type Operator, type OperatorAction } from '../operators/operators.ts'
import { appealableUntil } from './case-appeals.ts'
import { fileReport, MAX_TEXT_CHARS } from './case-intake.ts'
import {
  countNotes,
  findCase,
  findDecision,
  findQuarantineSince,
  findTakedownSince,
  insertDecision,
  insertNote,
  moveCase,
  setAnswer,
  setDeadline,
  type CaseRow,
  type DecisionRow,
} from './case-store.ts'
import { accountSubject, isHere, subjectNamed, subjectText, takedownOf, type CaseSubject } from './case-subjects.ts'
import { decisionTexts as texts } from './decision-texts.ts'
import { setTakedown } from './subject-takedowns.ts'

const MAX_NOTES = 500

interface DecisionAct {
  kinds: ReadonlySet<CaseSubject['kind']>
  /** What the person is told was done. Null for an act that takes nothing from the person: then there is no mail. */
  told: Wording | null
  /** The subject that the act takes down. */
  target?(subject: CaseSubject): CaseSubject
  /** The act puts the blob into quarantine. */
  isQuarantine?: true
}

const anything: DecisionAct['kinds'] = new Set(['account', 'record', 'blob'])
const whole = (subject: CaseSubject): CaseSubject => subject

/**
 * All decisions. Reversing one lifts its takedown, if that takedown is still in force. If another decision took the
 * same subject down meanwhile, the takedown passes to that decision. The same applies to a quarantine.
 */
export const decisionActs: Readonly<Record<string, DecisionAct>> = {
  nothing: { kinds: anything, told: null },
  warn: {
    kinds: anything,
    told: texts.warned,
  },
  takedown: {
    kinds: anything,
    told: texts.takenDown,
    target: whole,
  },
  'takedown-account': {
    kinds: new Set(['record', 'blob']),
    told: texts.accountTakenDown,
    target: ({ did }) => accountSubject(did),
  },
  quarantine: {
    kinds: new Set(['blob']),
    told: texts.setAside,
    isQuarantine: true,
  },
}

const noCase = () => notFound('No such case')
const isDecided = () => new Refusal(409, 'CaseDecided', 'The state of the case does not allow this')

export async function existingCase(reader: Reader, seq: number): Promise<CaseRow> {
  const found = await findCase(reader, seq)
  if (found === null) throw noCase()
  return found
}

const caseName = (seq: number): string => `case:${seq}`
/** Reference of a takedown made by a case. */
const takedownRef = (seq: number): string => `case-${seq}`

/** Text that an operator wrote. Throws `InvalidRequest` if it says nothing. */
function written(name: string, text: string): string {
  const plain = plainText(text, MAX_TEXT_CHARS)
  if (plain === '') throw invalidRequest(`${name} must not be empty`)
  return plain
}

/** The request of an operator. */
type Call = Exchange & { caller: Operator }

/** Records an action of the operator who sent the request. */
const audit = (call: Call, tx: Tx, action: Omit<OperatorAction, 'actor'>): Promise<void> =>
  recordAudit(call, tx, { actor: actorOf(call.caller), ...action })

/** Open a case, or add to the open one. Throws `InvalidRequest` if this server has no such subject. */
export function openCase(call: Call, name: string, text: string): Promise<CaseRow> {
  return call.ctx.db.transaction(async (tx) => {
    const subject = await subjectNamed(tx, name)
    if (!(await isHere(tx, subject))) throw invalidRequest('The subject is not on this server')
    const reason = written('reason', text)
    const { caseSeq } = await fileReport(call.ctx, tx, subject, {
      source: 'operator',
      by: actorOf(call.caller),
      reason: '',
      text: reason,
    })
    const detail = subjectText(subject)
    await audit(call, tx, { action: 'case_opened', subject: caseName(caseSeq), detail, reason })
    return existingCase(tx, caseSeq)
  })
}

export async function addNote(call: Call, seq: number, text: string): Promise<void> {
  await call.ctx.db.transaction(async (tx) => {
    const found = await existingCase(tx, seq)
    if ((await countNotes(tx, seq)) >= MAX_NOTES) throw invalidRequest(`A case may have at most ${MAX_NOTES} notes`)
    const note = { actor: actorOf(call.caller), text: written('text', text), now: call.ctx.clock.now() }
    await insertNote(tx, found, note)
    await audit(call, tx, { action: 'case_noted', subject: caseName(seq) })
  })
}

export async function postpone(call: Call, seq: number, deadlineAt: Millis): Promise<void> {
  await call.ctx.db.transaction(async (tx) => {
    await existingCase(tx, seq)
    if ((await setDeadline(tx, seq, deadlineAt, call.ctx.clock.now())) === 0) throw isDecided()
    const detail = new Date(deadlineAt).toISOString()
    await audit(call, tx, { action: 'case_deadline_set', subject: caseName(seq), detail })
  })
}

interface Wish {
  act: string
  /** Mailed to the account holder, unless the act is "nothing". */
  reason: string
  /** Length of a quarantine. By default `cases.quarantine_secs`. */
  secs?: number
}

/** Decide a case that is open, and carry the decision out. Throws `CaseDecided` (409) if another decided it before. */
export async function decide(call: Call, seq: number, wish: Wish): Promise<void> {
  const { ctx } = call
  const actor = actorOf(call.caller)
  const reason = written('reason', wish.reason)
  await ctx.db.transaction(async (tx) => {
    const found = await existingCase(tx, seq)
    const acts = actsFor(found.kind)
    const act = acts.includes(wish.act) ? decisionActs[wish.act] : undefined
    if (act === undefined) throw invalidRequest(`act must be one of ${acts.join(', ')}`)
    const now = ctx.clock.now()
    if (!(await moveCase(tx, seq, ['open'], { state: 'decided', now }))) throw isDecided()
    const detail = JSON.stringify({ act: wish.act, subject: subjectText(found) })
    const audited = { action: 'case_decided', subject: caseName(seq), detail, reason } as const
    // Record it first, because a takedown may end the operator's session.
    await audit(call, tx, act.told === null ? audited : { ...audited, account: found.did })
    const target = act.target?.(found)
    // An existing takedown does not belong to this decision: reversing the decision would lift it.
    if (target && !isStanding((await takedownOf(tx, target))?.ref ?? null))
      if (!(await setTakedown(call, tx, target, { ref: takedownRef(seq), actor })))
        throw invalidRequest('The subject no longer exists on this server')
    if (act.target === undefined && !act.isQuarantine) await release(call, tx, found)
    const actUntil = act.isQuarantine ? now + (wish.secs ?? ctx.config.cases.quarantineSecs) * 1000 : null
    if (actUntil !== null) await setAside(call, tx, found, { now, endsAt: actUntil })
    const code = act.told === null ? null : newToken()
    const decision = {
      caseSeq: seq,
      did: found.did,
      act: wish.act,
      reason,
      decidedBy: actor,
      decidedAt: now,
      actUntil,
    }
    const until = now + ctx.config.cases.appealSecs * 1000
    const url = `${ctx.config.publicUrl}/account/appeal?code=${code?.token ?? ''}`
    const mailed =
      act.told !== null && (await tell(ctx, tx, found, { done: act.told, reason, appeal: { url, until } }, 'decided'))
    await insertDecision(tx, { ...decision, mailed: mailed ? 1 : 0 }, code?.hash ?? null)
  })
}

const isStanding = (ref: string | null): boolean => ref !== null && ref !== QUARANTINE

/** End the quarantine of a blob, if it is in one. */
async function release(call: Call, tx: Tx, { kind, did, item }: CaseRow): Promise<void> {
  if (kind === 'blob' && (await endQuarantine(tx, did, item, null)))
    await audit(call, tx, { action: 'blob_released', subject: item, account: did, detail: did })
}

/** Put a blob into quarantine. If it was to be taken down after an earlier quarantine, it still is. */
async function setAside(
  call: Call,
  tx: Tx,
  { did, item }: CaseRow,
  { now, endsAt }: { now: Millis; endsAt: Millis },
): Promise<void> {
  const thenRef = (await findQuarantine(tx, did, item))?.thenRef ?? null
  if (!(await quarantineBlob(tx, { did, cid: item, endsAt, thenRef }, now)))
    throw invalidRequest('The blob no longer exists, or is taken down')
  const detail = `${did} until ${wireTime(endsAt)}`
  await audit(call, tx, { action: 'blob_quarantined', subject: item, account: did, detail })
}

export const actsFor = (kind: CaseSubject['kind']): string[] =>
  Object.entries(decisionActs)
    .filter(([, { kinds }]) => kinds.has(kind))
    .map(([name]) => name)

/** Order a mail to the holder. Returns false if the account has no address. */
async function tell(
  ctx: Context,
  tx: Tx,
  found: CaseRow,
  told: Pick<ToldDecision, 'done' | 'reason' | 'appeal'>,
  what: 'decided' | 'answered',
): Promise<boolean> {
  const account = await accountOf(tx, found.did)
  if (account === null || account.email === null) return false
  const { seq, did } = found
  const mail = await decisionMail(
    ctx,
    { ...account, email: account.email },
    { caseSeq: seq, subject: subjectText(found), ...told },
  )
  await addMail(ctx, tx, { key: `case ${seq} ${what}`, did, what: 'case', causedBy: 'operator', mail })
  return true
}

interface Answer {
  outcome: 'upheld' | 'reversed'
  reason: string
}

/** Answer an appeal. If the decision is reversed, what it took down is restored. Throws `CaseDecided` (409). */
export async function answerAppeal(call: Call, seq: number, given: Answer): Promise<void> {
  const { ctx } = call
  const { outcome } = given
  const answer = written('reason', given.reason)
  await ctx.db.transaction(async (tx) => {
    const found = await existingCase(tx, seq)
    const decision = await findDecision(tx, seq)
    const now = ctx.clock.now()
    if (decision === null || !(await moveCase(tx, seq, ['appealed'], { state: 'closed', now }))) throw isDecided()
    await audit(call, tx, {
      action: 'case_appeal_answered',
      subject: caseName(seq),
      account: found.did,
      detail: outcome,
      reason: answer,
    })
    if (outcome === 'reversed') await undo(call, tx, found, decision)
    await setAnswer(tx, seq, { outcome, answer, actor: actorOf(call.caller), now })
    await tell(ctx, tx, found, { done: texts[outcome], reason: answer, appeal: null }, 'answered')
  })
}

async function undo(call: Call, tx: Tx, found: CaseRow, { act, caseSeq, decidedAt }: DecisionRow): Promise<void> {
  if (decisionActs[act]?.isQuarantine) await undoQuarantine(call, tx, found)
  const target = decisionActs[act]?.target?.(found)
  // The takedown in force may be another one, made before this one or after it was lifted.
  if (!target || (await takedownOf(tx, target))?.ref !== takedownRef(caseSeq)) return
  // Other decisions may have taken the subject down while this takedown was in force.
  const other = await findTakedownSince(tx, target, { caseSeq, decidedAt })
  const ref = other === null ? null : takedownRef(other)
  await setTakedown(call, tx, target, { ref, actor: actorOf(call.caller) })
}

/** Other decisions may also have put the blob into this quarantine. It then lasts until the last of their ends. */
async function undoQuarantine(call: Call, tx: Tx, found: CaseRow): Promise<void> {
  const now = call.ctx.clock.now()
  const quarantine = await findQuarantine(tx, found.did, found.item)
  if (quarantine === null) return
  const endsAt = await findQuarantineSince(tx, found, { since: quarantine.placedAt, now })
  await (endsAt === null ? release(call, tx, found) : setAside(call, tx, found, { now, endsAt }))
}

/** Until when the person may appeal; null if there is nothing to appeal against, or the person has appealed. */
export const openAppealUntil = (ctx: Context, decision: DecisionRow): Millis | null =>
  decision.isAppealable === 0 || decision.appealedAt !== null ? null : appealableUntil(ctx, decision)
