/**
 * Abuse notices: a moderation service that the operator trusts reports accounts, records or blobs. Each becomes a case.
 *
 * Source: atproto proposal 0012, "Infrastructure Abuse Notices". Its lexicon does not exist yet, so the path is our
 * own, while tokens name the method of the proposal.
 */
import { Type, type Static } from '@sinclair/typebox'
import { route, type Guard } from '../../../http/endpoint.ts'
import { authenticationRequired, invalidRequest } from '../../../http/errors.ts'
import { plainName } from '../../../http/html.ts'
import { readJson } from '../../../http/json-input.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import { parseDid, type Did } from '../../../protocol/identifiers.ts'
import { serviceKind, type ServiceCaller } from '../../access/callers/callers.ts'
import { verifyServiceToken } from '../../access/service-auth/service-auth.ts'
import { fileReport, MAX_REASON_CHARS, MAX_TEXT_CHARS } from './case-intake.ts'
import { findCaseWith, type Said } from './case-store.ts'
import { accountSubject, blobSubject, isHere, recordSubject, type CaseSubject } from './case-subjects.ts'

const METHOD = 'com.atproto.moderation.sendAbuseNotice'
const MAX_SUBJECTS = 20
const MAX_ITEMS = 50
/** Subjects in one transaction, so that a long notice does not delay other writers. */
const PIECE = 20

const notice = Type.Object({
  noticeId: Type.Integer({ minimum: 0 }),
  authority: Type.String(),
  subjects: Type.Array(
    Type.Object({
      accountDid: Type.String(),
      records: Type.Optional(
        Type.Array(Type.Object({ uri: Type.String(), cid: Type.Optional(Type.String()) }), { maxItems: MAX_ITEMS }),
      ),
      blobCids: Type.Optional(Type.Array(Type.String({ maxLength: 200 }), { maxItems: MAX_ITEMS })),
    }),
    { minItems: 1, maxItems: MAX_SUBJECTS },
  ),
  abuseType: Type.String({ minLength: 1, maxLength: 100 }),
  comment: Type.Optional(Type.String({ maxLength: 10 * MAX_TEXT_CHARS })),
})
type Subject = Static<typeof notice>['subjects'][number]

/** A moderation service whose notices the configuration accepts. */
const authority: Guard<ServiceCaller> = {
  personal: true,
  takes: [serviceKind.name],
  async check({ ctx, authorization: given }) {
    if (given?.scheme !== 'bearer') throw authenticationRequired()
    const accepts = ({ iss }: ServiceCaller) => ctx.config.cases.noticeAuthorities.includes(iss)
    return verifyServiceToken(ctx, given.value, { lxm: METHOD, accepts })
  },
}

/** Returns what a notice is about: its records and blobs, or the account if it names none. Throws `InvalidRequest`. */
async function subjectsOf(
  reader: Reader,
  { accountDid, records = [], blobCids = [] }: Subject,
): Promise<CaseSubject[]> {
  const did = parseDid(accountDid)
  if (did === null) throw invalidRequest('accountDid must be a DID')
  const named: CaseSubject[] = []
  for (const { uri } of records) {
    const record = await recordSubject(reader, uri)
    if (record?.did !== did) throw invalidRequest('uri must name a record of the account')
    named.push(record)
  }
  named.push(...blobCids.map((cid) => blobSubject(did as Did, cid)))
  return named.length === 0 ? [accountSubject(did)] : named
}

/** Returns each subject's case, perhaps a decided one if the same was said before; null if the subject is not here. */
async function casesAbout(
  ctx: Context,
  tx: Tx,
  subjects: readonly CaseSubject[],
  said: Said,
): Promise<(number | null)[]> {
  const cases: (number | null)[] = []
  for (const subject of subjects)
    cases.push(
      (await isHere(tx, subject))
        ? ((await findCaseWith(tx, subject, said)) ?? (await fileReport(ctx, tx, subject, said)).caseSeq)
        : null,
    )
  return cases
}

export const noticeRoutes = [
  /** Sending the same notice again adds nothing. A notice that was cut off has to be sent again. */
  route('POST', '/v1/abuse-notices', {
    auth: authority,
    capability: 'abuseNotices',
    async handler({ ctx, caller: { iss }, body }) {
      const { noticeId, authority: named, subjects, abuseType, comment = '' } = await readJson(body, notice)
      if (named !== iss) throw invalidRequest('authority must be the issuer of the token')
      const all: CaseSubject[] = []
      for (const given of subjects) all.push(...(await subjectsOf(ctx.db, given)))
      const said = {
        source: 'notice',
        by: iss,
        reason: plainName(`${abuseType} (notice ${noticeId})`, MAX_REASON_CHARS),
        text: comment,
      } as const
      const cases = new Set<number>()
      const unknown = []
      for (let start = 0; start < all.length; start += PIECE) {
        const piece = all.slice(start, start + PIECE)
        const found = await ctx.db.transaction((tx) => casesAbout(ctx, tx, piece, said))
        for (const [i, { did, item }] of piece.entries()) {
          const seq = found[i]!
          if (seq === null) unknown.push({ accountDid: did, item })
          else cases.add(seq)
        }
      }
      return { noticeId, cases: [...cases], unknown }
    },
  }),
]
