/**
 * Makes a child: an account of its own for an agent, whose identity belongs to the wallet of the account that asks. Of
 * its keys, this server has only the one that signs its repository.
 *
 * The order survives a kill between any two steps, because a repeated request continues:
 *
 * 1. in one transaction, create the account and its repository, deactivated and unannounced. This decides races for the
 *    handle, the identity and the signing key;
 * 2. submit the identity to the directory, and store that the directory has it;
 * 3. in one transaction, add the registration of the agent, and activate and announce the account.
 */
import type { Exchange } from '../../../http/endpoint.ts'
import { forbidden, invalidClaim, Refusal } from '../../../http/errors.ts'
import { forgetAccount } from '../../../http/hooks.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import { PlcDirectoryError } from '../../../platform/network/directory-client.ts'
import { checkBroughtGenesis, type CeremonyIdentity } from '../../../protocol/ceremony-identity.ts'
import { wireTime, type Did, type Handle, type Millis } from '../../../protocol/identifiers.ts'
import type { Operation } from '../../../protocol/plc.ts'
import { accountOf, accountStatus, addAccount, activate } from '../../identity/accounts/accounts.ts'
import { announceIn } from '../../identity/account-events/account-events.ts'
import { signingKeyOf } from '../../identity/account-keys/account-keys.ts'
import {
  enterRegistration,
  assertionExpiry,
  clampedScopes,
  findRegistration,
  issueAssertion,
  newAgentId,
  updateAssertionExpiry,
  type Registration,
} from '../agents/agents.ts'
import {
  countLivingChildren,
  deleteChild,
  findChild,
  insertChild,
  lineOf,
  setChildFinished,
  setChildPublished,
  type Child,
} from './child-store.ts'
import { sequenceEvents } from '../../data/firehose/firehose.ts'
import { bindReservedKey, reservedKeyNamed, takeReservedKey } from '../../identity/reserved-keys/reserved-keys.ts'
import { handleNotAvailable, isHandleFree } from '../../identity/handles/handles.ts'
import { keepDidDocument, submitOperation, verdictOf } from '../../identity/identity/identity.ts'
import { createRepo, repoNews, requireConfirmedAddress } from '../../data/repo/repo.ts'

/** Most children of an account that exist: all are listed at once, and are deleted with their parent. */
const MAX_CHILDREN = 500

type ChildIdentity = CeremonyIdentity & { genesis: Operation; signingKey: string }

const didAlreadyExists = () => new Refusal(409, 'DidAlreadyExists', 'This server already knows the DID')
const tooManyChildren = () =>
  new Refusal(409, 'Conflict', `An account may have at most ${MAX_CHILDREN} children: delete some first`)
const notReserved = () =>
  invalidClaim('verificationMethods.atproto must be a key from com.atproto.server.reserveSigningKey')

/**
 * Make the child, or continue an interrupted attempt. Returns what the parent gets. If the request is repeated after
 * the child was made, returns the child again, with a new assertion.
 *
 * Throws `Forbidden` unless the parent is active, `EmailNotConfirmed` if the parent must confirm its address before its
 * own first record, `InvalidClaim` if the operation does not fit, `HandleNotAvailable`, `DidAlreadyExists` and, if
 * there are too many, `Conflict` (409), and `PlcDirectoryError` (502).
 */
export async function makeChild(exchange: Exchange, parent: Did, handle: Handle, plcOp: unknown): Promise<object> {
  const { ctx } = exchange
  await requireActiveParent(ctx.db, parent)
  await requireConfirmedAddress(ctx, parent)
  const identity = checkIdentity(ctx, handle, plcOp)
  if (identity.did === parent) throw invalidClaim('The operation creates the identity of the parent account itself')
  const begun = await begin(exchange, parent, handle, identity)
  if (begun.child.publishedAt === null) await publish(ctx, begun)
  const registration = await finish(exchange, parent, identity.did, handle)
  return replyAbout(ctx, registration, handle, identity)
}

async function requireActiveParent(reader: Reader, parent: Did): Promise<void> {
  if ((await accountStatus(reader, parent)) !== 'active') throw forbidden('The account is not active')
}

function checkIdentity({ config }: Context, handle: Handle, plcOp: unknown): ChildIdentity {
  const outcome = checkBroughtGenesis(plcOp, null, { handle, publicUrl: config.publicUrl })
  if (!outcome.ok) throw invalidClaim(outcome.fault)
  return outcome.identity
}

// 1. The account

/** A child, and whether this request is the first that sends its identity to the directory. */
interface Begun {
  child: Child
  isFirst: boolean
}

function begin({ ctx, revalidate }: Exchange, parent: Did, handle: Handle, identity: ChildIdentity): Promise<Begun> {
  const { did, document, genesis, signingKey } = identity
  return ctx.db.transaction(async (tx) => {
    await revalidate(tx)
    const now = ctx.clock.now()
    // Check again: if the parent was deleted meanwhile, nothing would ever delete the child.
    await requireActiveParent(tx, parent)
    const known = await findChild(tx, did)
    if (known) return { child: await requireResumable(tx, known, parent), isFirst: false }
    if (await accountOf(tx, did)) throw didAlreadyExists()
    if ((await lineOf(tx, parent)).includes(did)) throw didAlreadyExists()
    if ((await countLivingChildren(tx, parent)) >= MAX_CHILDREN) throw tooManyChildren()
    // Check the key first, so that a caller without one of our keys cannot probe handles.
    if ((await reservedKeyNamed(tx, signingKey, did)) === null) throw notReserved()
    if (!(await isHandleFree(tx, handle, now))) throw handleNotAvailable(handle)
    const key = await takeKey(tx, { did, signingKey, parent })
    const registrationId = newAgentId('reg')
    await addAccount(tx, {
      did,
      handle,
      email: `${registrationId}@agents.invalid`,
      passwordHash: null,
      ...key,
      createdAt: now,
      deactivatedAt: now,
      deleteAfter: null,
    })
    await keepDidDocument(tx, document, now)
    const child = {
      did,
      parentDid: parent,
      registrationId,
      genesis,
      createdAt: now,
      publishedAt: null,
      finishedAt: null,
      deleteAfter: null,
    }
    await insertChild(tx, child)
    await createRepo(ctx, tx, did, (await signingKeyOf(ctx, tx, did))!)
    return { child, isFirst: true }
  })
}

/** Only its parent can continue a child, and only until its deletion is requested or it is taken down. */
async function requireResumable(tx: Tx, child: Child, parent: Did): Promise<Child> {
  const account = await accountOf(tx, child.did)
  if (child.parentDid !== parent || child.deleteAfter !== null) throw didAlreadyExists()
  if (account === null || account.takedownRef !== null) throw didAlreadyExists()
  return child
}

async function takeKey(tx: Tx, { did, signingKey, parent }: { did: Did; signingKey: string; parent: Did }) {
  if ((await bindReservedKey(tx, { signingKey, did, boundTo: parent })) === 0) throw notReserved()
  return (await takeReservedKey(tx, did))!
}

// 2. The directory

async function publish(ctx: Context, { child: { did, genesis }, isFirst }: Begun): Promise<void> {
  try {
    await submitOperation(ctx, did, genesis, 'first')
  } catch (error) {
    if (!(error instanceof PlcDirectoryError)) throw error
    // The directory will not accept it later either, so free the handle. But if an earlier request sent it, the
    // directory may have it after all.
    if (isFirst && verdictOf(error) === 'invalid') await undo(ctx, did)
    ctx.log.warn('could not submit the identity of a child account to the PLC directory', { did, status: error.status })
    throw new Refusal(502, 'PlcDirectoryError', 'The PLC directory did not accept the identity')
  }
  await setChildPublished(ctx.db, did, ctx.clock.now())
}

/** Remove the child, which was never announced. */
async function undo(ctx: Context, did: Did): Promise<void> {
  const sequel = await ctx.db.transaction(async (tx) =>
    (await deleteChild(tx, did)) === 0 ? null : forgetAccount(ctx, tx, did),
  )
  await sequel?.()
}

// 3. The agent

/** Returns the registration, which an earlier request may have added. */
function finish(exchange: Exchange, parent: Did, did: Did, handle: Handle): Promise<Registration> {
  const { ctx } = exchange
  return ctx.db.transaction(async (tx) => {
    // The directory may have taken a while, so revalidate the parent.
    await exchange.revalidate(tx)
    await requireActiveParent(tx, parent)
    const now = ctx.clock.now()
    const child = await findChild(tx, did)
    if (child === null) throw didAlreadyExists()
    await requireResumable(tx, child, parent)
    if ((await setChildFinished(tx, did, now)) === 0) return assertedAgain(ctx, tx, child, now)
    const registration = registrationOf(ctx, child, now)
    await enterRegistration(tx, registration, now)
    // Skip this if an operator has activated the account, which announced it too.
    if ((await accountStatus(tx, did)) === 'deactivated') {
      const repoEvents = await repoNews.opening(ctx, tx, did)
      await activate(tx, did)
      await sequenceEvents(ctx, tx, [...repoEvents, { type: 'account', did, status: 'active' }])
    }
    await announceIn(tx, exchange, 'created', did, { handle })
    return registration
  })
}

/**
 * The registration of the child's agent. The parent has confirmed it by making the child. Its issuer is this server,
 * its subject the account.
 */
const registrationOf = (ctx: Context, { did, parentDid, registrationId }: Child, now: Millis): Registration => ({
  id: registrationId,
  did,
  type: 'child',
  issuer: ctx.config.publicUrl,
  clientName: null,
  openedWith: null,
  openedFrom: null,
  subject: did,
  parentDid,
  email: null,
  scopes: ctx.config.agentAuth.grantedScopes,
  privateReads: true,
  assertionExpiresAt: assertionExpiry(ctx),
  claimTokenHash: null,
  claimTokenExpiresAt: null,
  confirmedAt: now,
  status: 'claimed',
  createdAt: now,
  updatedAt: now,
})

async function assertedAgain(ctx: Context, tx: Tx, { registrationId }: Child, now: Millis): Promise<Registration> {
  const registration = await findRegistration(tx, registrationId)
  if (registration?.status !== 'claimed') throw didAlreadyExists()
  await updateAssertionExpiry(tx, registrationId, assertionExpiry(ctx), now)
  return registration
}

async function replyAbout(
  ctx: Context,
  registration: Registration,
  handle: Handle,
  { did, document: didDocument }: CeremonyIdentity,
): Promise<object> {
  const scopes = clampedScopes(ctx.config, registration)
  const expiresAt = assertionExpiry(ctx)
  return {
    registrationId: registration.id,
    did,
    handle,
    didDocument,
    identityAssertion: await issueAssertion(ctx, registration, { subject: did, scopes, expiresAt }),
    assertionExpires: wireTime(expiresAt),
    scopes,
  }
}
