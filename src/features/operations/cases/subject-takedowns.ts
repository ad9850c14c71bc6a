/** Takedowns of accounts, records and blobs by operators, and their end. */
import type { Exchange } from '../../../http/endpoint.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { announceIn } from '../../identity/account-events/account-events.ts'
import { recordUri } from '../../../protocol/identifiers.ts'
import { setBlobTakedown } from '../../data/blobs/blobs.ts'
import { sequenceEvents } from '../../data/firehose/firehose.ts'
import { repoNews, setRecordTakedown } from '../../data/repo/repo.ts'
import { accountOf, takeDown, type Account } from '../../identity/accounts/accounts.ts'
import { recordAudit } from '../operators/operators.ts'
import type { CaseSubject } from './case-subjects.ts'

interface Takedown {
  /** The reference under which it is stored; null lifts the takedown. */
  ref: string | null
  actor: string
}

/**
 * Take a subject down, or lift its takedown, and write the audit entry. Returns false if there is no such subject. If
 * it is taken down already, its reference is replaced. Lifting the takedown of an account that has none does nothing,
 * and writes no entry. Throws what `recordAudit` throws, which rolls the change back.
 */
export const setTakedown = (exchange: Exchange, tx: Tx, subject: CaseSubject, takedown: Takedown): Promise<boolean> =>
  takedowns[subject.kind](exchange, tx, subject, takedown)

const takedowns: Readonly<
  Record<
    CaseSubject['kind'],
    (exchange: Exchange, tx: Tx, subject: CaseSubject, takedown: Takedown) => Promise<boolean>
  >
> = {
  async account(exchange, tx, { did }, { ref, actor }) {
    const account = await accountOf(tx, did)
    if (!account) return false
    if (account.takedownRef === null && ref === null) return true
    // Record it first, because a takedown also ends the sessions of an operator.
    await recordAudit(exchange, tx, {
      actor,
      action: ref === null ? 'account_restore' : 'account_takedown',
      subject: did,
    })
    if (!(await takeDown(exchange.ctx, tx, account, ref))) return true
    if (ref === null) await tellState(exchange.ctx, tx, account)
    await announceIn(tx, exchange, ref === null ? 'restored' : 'takenDown', did, { actor })
    return true
  },
  async record(exchange, tx, { did, item }, { ref, actor }) {
    if (!(await setRecordTakedown(tx, { did, path: item, ref }))) return false
    const action = ref === null ? 'record_restore' : 'record_takedown'
    await recordAudit(exchange, tx, { actor, action, subject: recordUri(did, item), account: did })
    return true
  },
  async blob(exchange, tx, { did, item }, { ref, actor }) {
    if (!(await setBlobTakedown(tx, { did, cid: item, ref }))) return false
    const action = ref === null ? 'blob_restore' : 'blob_takedown'
    await recordAudit(exchange, tx, { actor, action, subject: item, account: did, detail: did })
    return true
  },
}

/** Announce the head of an account that is active again: its next commit builds on it. */
async function tellState(ctx: Context, tx: Tx, { did, deactivatedAt }: Account): Promise<void> {
  const state = deactivatedAt === null ? await repoNews.untoldState(tx, did) : null
  if (state !== null) await sequenceEvents(ctx, tx, [state])
}
