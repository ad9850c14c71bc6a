/** Bursts of sign-ups: list their accounts, and undo them together. */
import { Type } from '@sinclair/typebox'
import { DAY_MILLIS, HOUR_MILLIS } from '../../../base/durations.ts'
import { route, type Exchange } from '../../../http/endpoint.ts'
import { invalidRequest, Refusal } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import { didCursor, pageOf } from '../../../http/paged-list.ts'
import { statusOf } from '../../../protocol/account-status.ts'
import { parseDid, wireTime, type Did, type Millis } from '../../../protocol/identifiers.ts'
import { deleteAccount } from '../../identity/account-changes/account-changes.ts'
import { accountOf } from '../../identity/accounts/accounts.ts'
import { accountSubject, setTakedown } from '../cases/cases.ts'
import { actorOf, operatedBy, operator, recordAudit, requireMay, type Operator } from '../operators/operators.ts'
import { countSignUps, findSignUp, listSignUps, signUpsByHour, type SignUpRow, type Window } from './sign-up-store.ts'

const DAYS_OF_HOURS = 7
const MAX_WINDOW_MILLIS = 31 * DAY_MILLIS
/** Most accounts in one request. Clients send further requests. */
const MAX_ACCOUNTS = 100
/** Prefix of the references of takedowns made here. */
const REF = 'sign-ups '

const instant = (name: string, text: string | null, fallback: Millis): Millis => {
  if (text === null || text === '') return fallback
  const at = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : NaN
  if (Number.isNaN(at)) throw invalidRequest(`${name} must be a time in RFC 3339`)
  return at
}

/** Returns the period that the request names; by default, the last hour. */
function windowOf(now: Millis, from: string | null, until: string | null): Window {
  const end = instant('until', until, now + 1)
  const window = { from: instant('from', from, end - HOUR_MILLIS), until: end }
  if (window.from >= end || end - window.from > MAX_WINDOW_MILLIS)
    throw invalidRequest('from must be before until, by at most 31 days')
  return window
}

const view = ({
  did,
  handle,
  email,
  createdAt,
  takedownRef,
  deactivatedAt,
  role,
  records,
  blobs,
  arrived,
}: SignUpRow) => ({
  did,
  handle,
  emailDomain: email?.split('@').at(-1) ?? null,
  createdAt: wireTime(createdAt),
  status: statusOf({ takedownRef, deactivatedAt }),
  role,
  records,
  blobs,
  arrived: arrived === 1,
})

type Outcome = 'done' | 'kept'

/** Acts on an account of a burst. Repeating one has no effect. */
const undoings: Readonly<
  Record<'takedown' | 'restore' | 'delete', (call: Exchange, row: SignUpRow, actor: string) => Promise<Outcome>>
> = {
  takedown: (call, { did, createdAt }, actor) => change(call, did, actor, `${REF}${wireTime(createdAt)}`),
  /** Lifts the takedowns made here. */
  restore: async (call, { did, takedownRef }, actor) =>
    takedownRef?.startsWith(REF) ? change(call, did, actor, null) : 'kept',
  async delete(call, { did }, actor) {
    await deleteAccount(call, did, operatedBy(call, { actor, action: 'account_deleted', subject: did }))
    return 'done'
  },
}

async function change(call: Exchange, did: Did, actor: string, ref: string | null): Promise<Outcome> {
  const isThere = await call.ctx.db.transaction(async (tx) => {
    // Leave an account that is already taken down alone: `restore` would lift a takedown that is not part of this
    // burst.
    const standing = (await accountOf(tx, did))?.takedownRef ?? null
    if (ref !== null && standing !== null) return true
    return setTakedown(call, tx, accountSubject(did), { ref, actor })
  })
  return isThere ? 'done' : 'kept'
}

/** Undo one account. Says why it keeps one: it has a role, was made at another time, or ranks above the operator. */
async function undo(call: Exchange, who: Operator, window: Window, name: string, act: keyof typeof undoings) {
  const did = parseDid(name)
  const row = did && (await findSignUp(call.ctx.db, window, did))
  if (!row) return { did: name, outcome: 'kept', why: 'it was not created in this period' }
  if (row.role !== null) return { did: name, outcome: 'kept', why: `it is ${row.role}` }
  // The data that the account brought from another server may be nowhere else.
  if (act === 'delete' && row.arrived === 1)
    return { did: name, outcome: 'kept', why: 'it moved here from another server: delete it individually' }
  try {
    return { did: name, outcome: await undoings[act](call, row, actorOf(who)) }
  } catch (error) {
    if (!(error instanceof Refusal) || error.status >= 500 || error.status === 401) throw error
    return { did: name, outcome: 'kept', why: error.message }
  }
}

export const signUpRoutes = [
  /** The accounts made in a period, and how many were made in each hour of the last days. */
  route('GET', '/v1/admin/sign-ups', {
    auth: operator('readAccounts'),
    async handler({ ctx: { db, clock, config }, url: { searchParams } }) {
      const now = clock.now()
      const window = windowOf(now, searchParams.get('from'), searchParams.get('until'))
      const { rows, cursor } = await pageOf(searchParams, { cursor: didCursor, maxRows: 100 }, (after, limit) =>
        listSignUps(db, window, after, limit),
      )
      const hours = await signUpsByHour(db, { from: now - DAYS_OF_HOURS * DAY_MILLIS, until: now + 1 })
      return {
        from: wireTime(window.from),
        until: wireTime(window.until),
        count: await countSignUps(db, window),
        accounts: rows.map(view),
        hours: hours.map(({ hour, count }) => ({ hour: wireTime(hour), count })),
        burst: config.alerts.signUpsPerHour,
        cursor,
      }
    },
  }),

  /**
   * Take down, restore or delete accounts made in a period. The request names them one by one, so that it changes only
   * accounts that the operator has looked at. Repeating the request does no harm.
   */
  route('POST', '/v1/admin/sign-ups/undo', {
    auth: operator('moderate'),
    async handler(call) {
      const { ctx, caller, body } = call
      const given = await readJson(
        body,
        Type.Object({
          from: Type.String(),
          until: Type.String(),
          act: Type.Union([Type.Literal('takedown'), Type.Literal('restore'), Type.Literal('delete')]),
          dids: Type.Array(Type.String(), { minItems: 1, maxItems: MAX_ACCOUNTS }),
        }),
      )
      const { act, dids } = given
      if (act === 'delete') requireMay(caller, 'deleteAccounts')
      const window = windowOf(ctx.clock.now(), given.from, given.until)
      const detail = `${act} of ${dids.length} accounts created from ${wireTime(window.from)} until ${wireTime(window.until)}`
      await ctx.db.transaction((tx) =>
        recordAudit(call, tx, { actor: actorOf(caller), action: 'sign_ups_undone', detail }),
      )
      const accounts = []
      for (const did of new Set(dids)) accounts.push(await undo(call, caller, window, did, act))
      return { accounts, done: accounts.filter(({ outcome }) => outcome === 'done').length }
    },
  }),
]
