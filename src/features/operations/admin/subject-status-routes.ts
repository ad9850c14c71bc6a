/** Moderation: com.atproto.admin.updateSubjectStatus and getSubjectStatus, for accounts, records and blobs. */
import { procedure, query, type Exchange } from '../../../http/endpoint.ts'
import { invalidRequest, Refusal } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader } from '../../../platform/database/database.ts'
import { parseDid, recordUri, recordUriParts, wireTime, type AtUri, type Did } from '../../../protocol/identifiers.ts'
import type { LexDefs } from '../../../protocol/lexicons/generated/types.ts'
import { activateAccount, deactivateAccount } from '../../identity/account-changes/account-changes.ts'
import { accountAt, accountOf, addStatusEvent } from '../../identity/accounts/accounts.ts'
import { moderator } from '../../access/auth/auth.ts'
import { blobTakedown } from '../../data/blobs/blobs.ts'
import { operatedBy } from '../operators/operators.ts'
import { readRecord } from '../../data/repo/repo.ts'
import { accountSubject, blobSubject, setTakedown, type CaseSubject } from '../cases/cases.ts'

type StatusAttr = LexDefs['com.atproto.admin.defs#statusAttr']

const subjectNotFound = () => new Refusal(400, 'NotFound', 'Subject not found')
const attr = (ref: string | null): StatusAttr => (ref === null ? { applied: false } : { applied: true, ref })

/**
 * Returns the reference under which the takedown is stored. By default it is the reference of the existing takedown,
 * `stands`, or the current time. Null lifts the takedown.
 */
const takedownRef = ({ clock }: Context, takedown: StatusAttr, stands: string | null = null): string | null =>
  takedown.applied ? (takedown.ref ?? stands ?? wireTime(clock.now())) : null

async function updateAccount(
  exchange: Exchange,
  did: Did,
  { takedown, deactivated, actor }: { takedown?: StatusAttr; deactivated?: StatusAttr; actor: string },
): Promise<void> {
  const { ctx } = exchange
  const account = await accountOf(ctx.db, did)
  if (!account) throw subjectNotFound()
  if (takedown)
    await setStatus(exchange, accountSubject(did), { ref: takedownRef(ctx, takedown, account.takedownRef), actor })
  if (!takedown && !deactivated) await ctx.db.transaction((tx) => addStatusEvent(ctx, tx, did))
  if (!deactivated) return
  const action = deactivated.applied ? 'account_deactivated' : 'account_activated'
  const operated = operatedBy(exchange, { actor, action, subject: did })
  await (deactivated.applied
    ? deactivateAccount(exchange, did, null, operated)
    : activateAccount(exchange, did, operated))
}

/** Throws NotFound if there is no such subject. */
async function setStatus(
  exchange: Exchange,
  subject: CaseSubject,
  takedown: { ref: string | null; actor: string },
): Promise<void> {
  await exchange.ctx.db.transaction(async (tx) => {
    if (!(await setTakedown(exchange, tx, subject, takedown))) throw subjectNotFound()
  })
}

interface RecordPlace {
  did: Did
  path: string
}

/** Resolve an AT URI to a record. Its authority may be a handle. Throws NotFound if no account here has that handle. */
async function placeOf(reader: Reader, uri: AtUri): Promise<RecordPlace> {
  const { authority, collection, rkey } = recordUriParts(uri)
  const did = parseDid(authority) ?? (await accountAt(reader, authority))?.did
  if (!did) throw subjectNotFound()
  return { did, path: `${collection}/${rkey}` }
}

async function recordStatus({ db }: Context, uri: AtUri) {
  const place = await placeOf(db, uri)
  const record = await readRecord(db, place.did, place.path)
  if (!record) throw subjectNotFound()
  const subject = {
    $type: 'com.atproto.repo.strongRef' as const,
    uri: recordUri(place.did, place.path),
    cid: record.cid.toString(),
  }
  return { subject, takedown: attr(record.takedownRef) }
}

async function blobStatus({ db }: Context, did: Did | undefined, cid: string) {
  if (did === undefined) throw invalidRequest('Must provide a did to request blob state')
  const blob = await blobTakedown(db, did, cid)
  if (!blob) throw subjectNotFound()
  return { subject: { $type: 'com.atproto.admin.defs#repoBlobRef' as const, did, cid }, takedown: attr(blob.ref) }
}

async function accountState({ db }: Context, did: Did) {
  const account = await accountOf(db, did)
  if (!account) throw subjectNotFound()
  const subject = { $type: 'com.atproto.admin.defs#repoRef' as const, did }
  return { subject, takedown: attr(account.takedownRef), deactivated: { applied: account.deactivatedAt !== null } }
}

export const subjectStatusRoutes = [
  procedure('com.atproto.admin.updateSubjectStatus', {
    auth: moderator,
    async handler(call) {
      const { ctx, caller, input } = call
      const { subject, takedown, deactivated } = input
      if (takedown?.applied === true && deactivated?.applied === false)
        throw invalidRequest('Cannot activate and takedown an account at the same time')
      const ref = takedown && takedownRef(ctx, takedown)
      switch (subject.$type) {
        case 'com.atproto.admin.defs#repoRef':
          await updateAccount(call, subject.did, { takedown, deactivated, actor: caller.actor })
          break
        case 'com.atproto.repo.strongRef': {
          const { did, path } = await placeOf(ctx.db, subject.uri)
          if (ref !== undefined)
            await setStatus(call, { kind: 'record', did, item: path }, { ref, actor: caller.actor })
          break
        }
        case 'com.atproto.admin.defs#repoBlobRef':
          if (ref !== undefined)
            await setStatus(call, blobSubject(subject.did, subject.cid), { ref, actor: caller.actor })
          break
        default:
          throw invalidRequest(`Invalid subject (${String((subject as { $type: unknown }).$type)})`)
      }
      return { subject, ...(takedown ? { takedown } : {}) }
    },
  }),
  query('com.atproto.admin.getSubjectStatus', {
    auth: moderator,
    async handler({ ctx, params: { did, uri, blob } }) {
      if (blob !== undefined) return blobStatus(ctx, did, blob)
      if (uri !== undefined) return recordStatus(ctx, uri)
      if (did !== undefined) return accountState(ctx, did)
      throw invalidRequest('No provided subject')
    },
  }),
]
