/** Moderation: com.atproto.admin.updateSubjectStatus and getSubjectStatus, for accounts, records and blobs. */
import { procedure, query, type Exchange } from '../../../http/endpoint.ts'
import { invalidRequest, Refusal } from '../../../http/errors.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import { parseDid, recordUri, recordUriParts, wireTime, type AtUri, type Did } from '../../../protocol/identifiers.ts'
import type { LexDefs } from '../../../protocol/lexicons/generated/types.ts'
import { activateAccount, deactivateAccount } from '../../identity/account-changes/account-changes.ts'
import { accountAt, accountOf, addStatusEvent, takeDown } from '../../identity/accounts/accounts.ts'
import { moderator } from '../../access/auth/auth.ts'
import { blobTakedown, setBlobTakedown } from '../../data/blobs/blobs.ts'
import { recordAudit, requireStanding } from '../operators/operators.ts'
import { readRecord, setRecordTakedown } from '../../data/repo/repo.ts'

type StatusAttr = LexDefs['com.atproto.admin.defs#statusAttr']

const subjectNotFound = () => new Refusal(400, 'NotFound', 'Subject not found')
const attr = (ref: string | null): StatusAttr => (ref === null ? { applied: false } : { applied: true, ref })

/**
 * Returns the reference under which the takedown is stored; the default is the current time. Null lifts the takedown.
 */
const takedownRef = ({ clock }: Context, takedown: StatusAttr): string | null =>
  takedown.applied ? (takedown.ref ?? wireTime(clock.now())) : null

/**
 * Take an account down, or lift its takedown. Does nothing if it is already in that state. Throws NotFound for an
 * unknown DID.
 */
async function takeAccountDown(exchange: Exchange, tx: Tx, did: Did, ref: string | null, actor: string): Promise<void> {
  const account = await accountOf(tx, did)
  if (!account) throw subjectNotFound()
  if ((account.takedownRef === null) === (ref === null)) return
  // First, because a takedown ends the sessions of an operator too.
  await recordAudit(exchange, tx, {
    actor,
    action: ref === null ? 'account_restore' : 'account_takedown',
    subject: did,
  })
  await takeDown(exchange.ctx, tx, did, ref)
}

async function updateAccount(
  exchange: Exchange,
  did: Did,
  { takedown, deactivated, actor }: { takedown?: StatusAttr; deactivated?: StatusAttr; actor: string },
): Promise<void> {
  const { ctx } = exchange
  if (!(await accountOf(ctx.db, did))) throw subjectNotFound()
  if (takedown) await ctx.db.transaction((tx) => takeAccountDown(exchange, tx, did, takedownRef(ctx, takedown), actor))
  if (!takedown && !deactivated) await ctx.db.transaction((tx) => addStatusEvent(ctx, tx, did))
  if (!deactivated) return
  const action = deactivated.applied ? 'account_deactivated' : 'account_activated'
  await ctx.db.transaction((tx) => requireStanding(exchange, tx, { actor, action, subject: did }))
  await (deactivated.applied ? deactivateAccount(exchange, did, null, actor) : activateAccount(exchange, did, actor))
  await ctx.db.transaction((tx) => recordAudit(exchange, tx, { actor, action, subject: did, isDone: true }))
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
          const place = await placeOf(ctx.db, subject.uri)
          const uri = recordUri(place.did, place.path)
          const action = ref === null ? 'record_restore' : 'record_takedown'
          if (ref !== undefined)
            await ctx.db.transaction(async (tx) => {
              if (!(await setRecordTakedown(tx, { ...place, ref }))) throw subjectNotFound()
              await recordAudit(call, tx, { actor: caller.actor, action, subject: uri, account: place.did })
            })
          break
        }
        case 'com.atproto.admin.defs#repoBlobRef': {
          const { did, cid } = subject
          const action = ref === null ? 'blob_restore' : 'blob_takedown'
          if (ref !== undefined)
            await ctx.db.transaction(async (tx) => {
              if (!(await setBlobTakedown(tx, { did, cid, ref }))) throw subjectNotFound()
              await recordAudit(call, tx, { actor: caller.actor, action, subject: cid, account: did, detail: did })
            })
          break
        }
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
