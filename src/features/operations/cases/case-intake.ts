/** How cases begin: reports, labels, abuse notices and operators. */
import { DAY_MILLIS } from '../../../base/durations.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { invalidRequest, Refusal } from '../../../http/errors.ts'
import { plainName, plainText } from '../../../http/html.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import { parseDid, wireTime, type Did } from '../../../protocol/identifiers.ts'
import type { LexMethods } from '../../../protocol/lexicons/generated/types.ts'
import { accountStatus } from '../../identity/accounts/accounts.ts'
import { appealAgainst } from './case-appeals.ts'
import {
  countFurtherReport,
  countReports,
  countReportsBy,
  findAppealable,
  findReport,
  insertReport,
  putCase,
  type ReportRow,
  type Said,
} from './case-store.ts'
import { accountSubject, isHere, recordSubject, type CaseSubject } from './case-subjects.ts'

export const MAX_TEXT_CHARS = 2000
export const MAX_REASON_CHARS = 200
/** Most reports of a case that are stored; further ones are only counted. */
const MAX_REPORTS = 200
/** Most reports by one account within a day. */
const MAX_REPORTS_BY_ACCOUNT = 100

export interface FiledReport extends Pick<ReportRow, 'seq' | 'at'> {
  caseSeq: number
}

/**
 * Add a report to the open case of its subject, or open one. A repeated report by the same reporter for the same reason
 * changes nothing. `subject` must exist here.
 */
export async function fileReport(ctx: Context, tx: Tx, subject: CaseSubject, given: Said): Promise<FiledReport> {
  const said = {
    ...given,
    reason: plainName(given.reason, MAX_REASON_CHARS),
    text: plainText(given.text, MAX_TEXT_CHARS),
  }
  const now = ctx.clock.now()
  const caseSeq = await putCase(tx, subject, { now, deadlineAt: now + ctx.config.cases.deadlineSecs * 1000 })
  const known = await findReport(tx, caseSeq, said)
  if (known !== null) return { seq: known.seq, at: known.at, caseSeq }
  if ((await countReports(tx, caseSeq)) >= MAX_REPORTS) {
    await countFurtherReport(tx, caseSeq)
    return { seq: caseSeq, at: now, caseSeq }
  }
  return { seq: await insertReport(tx, caseSeq, subject.did, said, now), at: now, caseSeq }
}

type ReportInput = LexMethods['com.atproto.moderation.createReport']['input']
type ReportOutput = LexMethods['com.atproto.moderation.createReport']['output']

interface Reporter {
  did: Did
  credential: string
}

const elsewhere = () => invalidRequest('The subject of the report is not on this server')
const takendown = () => new Refusal(400, 'AccountTakedown', 'Report not accepted from takendown account')
const tooMany = () => new Refusal(429, 'RateLimitExceeded', 'This account has sent too many reports today')

/**
 * Take a report that is addressed to this server. An appeal of the holder goes to the newest decision about its
 * subject. Throws `InvalidRequest` if the subject is not here, `AccountTakedown` if the reporter was taken down and
 * does not appeal, and `RateLimitExceeded` if the account sent too many reports today.
 */
export function takeReport(call: Exchange, caller: Reporter, input: ReportInput): Promise<ReportOutput> {
  return call.ctx.db.transaction(async (tx) => {
    await call.revalidate(tx)
    const { seq, at } = await fileReportOf(call.ctx, tx, caller, input)
    return { ...input, id: seq, reportedBy: caller.did, createdAt: wireTime(at) }
  })
}

/** Open a case for a report that names no service, if this server would accept it. The report is forwarded as it is. */
export async function copyReport(call: Exchange, caller: Reporter, input: ReportInput): Promise<void> {
  await call.ctx.db.transaction(async (tx) => {
    await call.revalidate(tx)
    try {
      await fileReportOf(call.ctx, tx, caller, input)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
    }
  })
}

/** The account or record that a report is about; null for anything else, such as a message in a chat. */
async function reportedSubject(reader: Reader, given: ReportInput['subject']): Promise<CaseSubject | null> {
  const { $type, did = '', uri = '' } = given as Readonly<Record<string, unknown>>
  if ($type === 'com.atproto.repo.strongRef') return recordSubject(reader, String(uri))
  const account = $type === 'com.atproto.admin.defs#repoRef' ? parseDid(String(did)) : null
  return account && accountSubject(account)
}

/** Throws what `takeReport` does, before anything is written. */
async function fileReportOf(
  ctx: Context,
  tx: Tx,
  { did, credential }: Reporter,
  { subject: given, reasonType, reason = '' }: ReportInput,
): Promise<{ seq: number; at: number }> {
  const subject = await reportedSubject(tx, given)
  if (subject === null || !(await isHere(tx, subject))) throw elsewhere()
  if (subject.did === did && reasonType.endsWith('#reasonAppeal')) {
    const appealed = await appealAgainst(ctx, tx, await findAppealable(tx, subject), reason)
    if (appealed !== null) return { seq: appealed, at: ctx.clock.now() }
  }
  // The account may have been taken down after the session began. A reporter from another server has no account here.
  if (credential === 'takendown' || (await accountStatus(tx, did)) === 'takendown') throw takendown()
  if ((await countReportsBy(tx, did, ctx.clock.now() - DAY_MILLIS)) >= MAX_REPORTS_BY_ACCOUNT) throw tooMany()
  return fileReport(ctx, tx, subject, { source: 'report', by: did, reason: reasonType, text: reason })
}
