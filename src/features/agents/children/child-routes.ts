/** How accounts make and end their children: accounts of their own for agents. */
import { Type } from '@sinclair/typebox'
import { perAccount, route, type Exchange, type RouteCall } from '../../../http/endpoint.ts'
import { notFound } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import { charge } from '../../../http/limiting.ts'
import { requireMasterKey } from '../../../http/master-key-guard.ts'
import type { Context } from '../../../platform/context.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { INVALID_HANDLE, parseDid, wireTime, type Did } from '../../../protocol/identifiers.ts'
import { scheduleChildDeletion } from './child-deletion.ts'
import { announceIn } from '../../identity/account-events/account-events.ts'
import { childrenOf, findChild, lineOf, parentOf, type Child } from './child-store.ts'
import { endRegistration, findRegistration } from '../agents/agents.ts'
import { parent, type OwnerCaller } from '../../access/auth/auth.ts'
import { admitServedHandle } from '../../identity/handles/handles.ts'
import { makeChild } from './child-making.ts'

/** Largest body: the directory takes operations of a few kilobytes. */
const MAX_BODY_BYTES = 16 * 1024

const childRequest = Type.Object({ handle: Type.String(), plcOp: Type.Object({}) })
const didRequest = Type.Object({ did: Type.String() })

/**
 * Children count toward the limit of their parent; otherwise, one account could create any number without an invite.
 */
async function chargeFamily(call: RouteCall<OwnerCaller>): Promise<void> {
  const first = (await lineOf(call.ctx.db, call.caller.did)).at(-1)!
  if (first !== call.caller.did) await charge(call, { name: 'makeChild', key: first })
}

async function create(call: RouteCall<OwnerCaller>): Promise<object> {
  const { ctx, caller, body, replyHeaders } = call
  requireMasterKey(ctx)
  await chargeFamily(call)
  replyHeaders.set('Cache-Control', 'no-store')
  const { handle, plcOp } = await readJson(body, childRequest, MAX_BODY_BYTES)
  return makeChild(call, caller.did, admitServedHandle(ctx, handle), plcOp)
}

const list = async ({ ctx, caller }: RouteCall<OwnerCaller>): Promise<object> => ({
  children: (await childrenOf(ctx.db, caller.did)).map(({ handle, createdAt, ...child }) => ({
    ...child,
    handle: handle ?? INVALID_HANDLE,
    createdAt: wireTime(createdAt),
  })),
})

/**
 * Runs `work` with the child that the body names, in one transaction. Throws the same `NotFound` for unknown children
 * and for children of others.
 */
async function withChild<Outcome>(
  call: RouteCall<OwnerCaller>,
  work: (ctx: Context, tx: Tx, child: Child) => Promise<Outcome | null>,
): Promise<{ did: Did; outcome: Outcome }> {
  const { ctx, caller, body } = call
  const did = parseDid((await readJson(body, didRequest, MAX_BODY_BYTES)).did)
  const outcome = await ctx.db.transaction(async (tx) => {
    await call.revalidate(tx)
    const child = did && (await findChild(tx, did))
    return child?.parentDid === caller.did ? work(ctx, tx, child) : null
  })
  if (did === null || outcome === null) throw notFound('There is no such child of this account')
  return { did, outcome }
}

async function endAgent(by: Exchange, tx: Tx, { did, registrationId }: Child): Promise<number | null> {
  const registration = await findRegistration(tx, registrationId)
  const ended = registration && (await endRegistration(tx, registration, by.ctx.clock.now()))
  if (ended) await announceIn(tx, by, 'childEnded', did)
  return ended
}

async function revoke(call: RouteCall<OwnerCaller>): Promise<object> {
  const { did } = await withChild(call, (_, tx, child) => endAgent(call, tx, child))
  return { did, status: 'revoked' }
}

async function remove(call: RouteCall<OwnerCaller>): Promise<object> {
  const { did, outcome: deleteAfter } = await withChild(call, async (ctx, tx, child) => {
    const deleteAfter = await scheduleChildDeletion(ctx, tx, child.did)
    // An account that came back by itself is not the child any more, and its holder must not read that it will go.
    if (deleteAfter !== null && (await parentOf(tx, child.did)) !== null)
      await announceIn(tx, call, 'childDeletionScheduled', child.did, { deleteAfter })
    return deleteAfter
  })
  return { did, status: 'deletion_scheduled', deleteAfter: wireTime(deleteAfter) }
}

export const childRoutes = [
  route('POST', '/agent/child', {
    auth: parent,
    limit: perAccount('makeChild'),
    handler: create,
  }),
  route('GET', '/agent/child', { auth: parent, handler: list }),
  route('POST', '/agent/child/revoke', { auth: parent, handler: revoke }),
  route('POST', '/agent/child/delete', { auth: parent, handler: remove }),
]
