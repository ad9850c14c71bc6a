/**
 * Wallet consents: authorization requests that may be decided in a wallet. A consent is created when the page of a
 * request is opened, unless the request names an account with a password, or no account here has a wallet.
 *
 * A consent contains no data of the client: it points to the pushed request, which has the client's metadata from the
 * time of the push. Consuming the pushed request (by the form of the page, or by expiry) ends the consent too.
 */
import { randomBytes } from 'node:crypto'
import { DAY_MILLIS, HOUR_SECS } from '../../../base/durations.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { isStorageOutage } from '../../../http/errors.ts'
import { chargesOf } from '../../../http/limiting.ts'
import { requestOrigin } from '../../../http/origin.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import { newToken } from '../../../platform/secrets/new-token.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { grantsOf, type ExpandedScope } from '../../../protocol/scopes.ts'
import { shortCode, twoDigits } from '../../../protocol/short-code.ts'
import { type Account, accountAt, accountOf, furtherHandlesOf } from '../../identity/accounts/accounts.ts'
import { activityOf } from '../../../protocol/account-status.ts'
import { hasKnownWallets } from '../wallet-proofs/wallet-proofs.ts'
import type { OpenRequest } from './authorization-request-store.ts'
import { mayNotify, notifyDevices } from './wallet-consent-push.ts'
import {
  deleteConsentEventsAbout,
  deleteConsentEventsBefore,
  deleteConsentEventsOf,
  insertConsentEvent,
  type NewConsentEvent,
} from './wallet-consent-event-store.ts'
import {
  type Consent,
  deleteConsents,
  deleteConsentsNaming,
  deleteLapsedConsentOf,
  findConsentState,
  findOpenConsentOf,
  findPendingConsent,
  findPendingConsentByCode,
  insertConsent,
  latchMatchCode,
  listLapsedConsents,
  type NewConsent,
  pendingConsentsFor,
} from './wallet-consent-store.ts'

/** How long a consent is kept after it has lapsed. An approval can be completed until then. */
export const CONSENT_KEPT_SECS = HOUR_SECS
/** How long the events of a decided request are kept. */
const EVENTS_KEPT_DAYS = 90
/** Most consents that are deleted in one transaction, and how many are deleted whenever another one is created. */
const MAX_FORGOTTEN = 500
const MAX_FORGOTTEN_AT_CREATION = 20
/** Most requests that are shown to the account that they name. */
const MAX_AWAITING = 20
/** A scheme, a host name and a port fit; a longer header is ignored. */
const MAX_ORIGIN_CHARS = 270

const REQUEST_ID_PREFIX = 'poauth_'
const requestIdForm = /^poauth_[A-Za-z0-9_-]{43}$/

/** Returns the id if it has the form of ids that are issued here; null otherwise. */
export const parseRequestId = (text: string): string | null => (requestIdForm.test(text) ? text : null)

/** Returns a code as it is stored. Case and the hyphen do not matter. Returns null for any other text. */
function parseUserCode(text: string): string | null {
  const bare = text.trim().toUpperCase().replace('-', '')
  return /^[A-Z0-9]{8}$/.test(bare) ? hyphenated(bare) : null
}

const hyphenated = (code: string): string => `${code.slice(0, 4)}-${code.slice(4)}`

export interface OpenedRequest {
  idHash: string
  pending: OpenRequest
}

/**
 * Returns the consent of a request whose page is being shown: the existing one, or a new one. Returns null if no
 * account here is known to have a wallet, if the account that the request names (`hinted`) has a password, or if the
 * client or the address has made too many consents. After a failure, logs it and returns null, so that the page still
 * offers the password. Throws the failure if nothing can be stored at all, because a password would not help then
 * either.
 */
export async function consentFor(
  exchange: Exchange,
  opened: OpenedRequest,
  scopes: readonly ExpandedScope[],
  hinted: Account | null,
) {
  return orNone(
    exchange,
    opened,
    async () => (await knownConsent(exchange, opened)) ?? openConsent(exchange, opened, scopes, hinted),
  )
}

/** Returns the consent of a request whose page is shown once more, if it has one. Fails as `consentFor` does. */
export const consentAgain = (exchange: Exchange, opened: OpenedRequest): Promise<Consent | null> =>
  orNone(exchange, opened, () => knownConsent(exchange, opened))

async function orNone(
  { ctx }: Exchange,
  { pending }: OpenedRequest,
  find: () => Promise<Consent | null>,
): Promise<Consent | null> {
  try {
    return await find()
  } catch (error) {
    if (isStorageOutage(error)) throw error
    ctx.log.error('could not offer a wallet consent', { clientId: pending.request.clientId, error })
    return null
  }
}

/** Returns the existing consent of a request, if it can still be decided or completed; null otherwise. */
const knownConsent = ({ ctx: { db, clock } }: Exchange, { idHash }: OpenedRequest): Promise<Consent | null> =>
  findOpenConsentOf(db, idHash, clock.now())

/**
 * Returns the active account that a request names; null if there is none. Looks only on this server, because a request
 * may name any handle.
 */
export async function hintedAccount({ db }: Context, { request: { loginHint } }: OpenRequest): Promise<Account | null> {
  const account = loginHint === null ? null : await accountAt(db, loginHint)
  return account && activityOf(account).active ? account : null
}

async function openConsent(
  exchange: Exchange,
  opened: OpenedRequest,
  scopes: readonly ExpandedScope[],
  hinted: Account | null,
): Promise<Consent | null> {
  const { ctx, client } = exchange
  const { idHash, pending } = opened
  const { loginHint, clientId } = pending.request
  if (hinted?.hasPassword || !(await hasKnownWallets(ctx.db))) return null
  const ofClient = chargesOf(client, 'oauthConsentCreate').map((charge) => ({ ...charge, key: `ip:${charge.key}` }))
  const limit = await ctx.limits.chargeShared(...ofClient, { name: 'oauthConsentCreate', key: `client:${clientId}` })
  if (limit?.allowed === false) return null
  const consent = newConsent(exchange, {
    requestHash: idHash,
    clientId,
    loginHint,
    requestedScopes: grantsOf(scopes),
    expiresAt: pending.expiresAt,
  })
  if (hinted && (await mayNotify(ctx, hinted.did)))
    await storeAndOffer(ctx, consent, { did: hinted.did, clientName: pending.client.name ?? clientId })
  else await ctx.db.transaction((tx) => storeConsent(tx, consent))
  return knownConsent(exchange, opened)
}

type Asked = Pick<NewConsent, 'requestHash' | 'clientId' | 'loginHint' | 'requestedScopes' | 'expiresAt'>

/** Returns a consent that an app asks for, with fresh codes. */
export function newConsent(exchange: Exchange, asked: Asked): NewConsent {
  const now = exchange.ctx.clock.now()
  return {
    ...asked,
    requestId: REQUEST_ID_PREFIX + newToken().token,
    userCode: hyphenated(shortCode(8, randomBytes)),
    webOrigin: webOriginOf(exchange.request),
    ip: exchange.ip,
    openedWith: requestOrigin(exchange).openedWith,
    matchCode: null,
    browserHash: null,
    createdAt: now,
  }
}

/** Returns the origin of the site that the browser comes from; null if the browser does not say. */
function webOriginOf({ headers }: Request): string | null {
  const given = headers.get('origin') ?? headers.get('referer')
  const url = given === null ? null : URL.parse(given)
  return url && /^https?:$/.test(url.protocol) && url.origin.length <= MAX_ORIGIN_CHARS ? url.origin : null
}

/**
 * Store a consent. Returns false if the request has got a consent meanwhile or, which is unlikely, if the code is
 * taken: the page then offers no wallet.
 */
export async function storeConsent(tx: Tx, consent: NewConsent): Promise<boolean> {
  const { requestHash, clientId, requestedScopes, webOrigin, loginHint, createdAt } = consent
  await forgetLapsedConsents(tx, createdAt, MAX_FORGOTTEN_AT_CREATION)
  await deleteLapsedConsentOf(tx, requestHash, createdAt)
  if ((await insertConsent(tx, consent)) === 0) return false
  await insertConsentEvent(tx, {
    requestHash,
    action: 'request_created',
    accountDid: null,
    clientId,
    detail: {
      client_id: clientId,
      requested_scope: requestedScopes.join(' '),
      origin: webOrigin,
      login_hint: loginHint,
    },
    createdAt,
  })
  return true
}

interface Offer {
  did: Did
  /** What the app calls itself, or its id. */
  clientName: string
}

/**
 * Store a consent and tell the devices of the account, in one transaction: the response time of the page then hardly
 * depends on whether there are devices. If that fails, stores the consent alone, because its code on the page still
 * works.
 */
async function storeAndOffer(ctx: Context, consent: NewConsent, offer: Offer): Promise<void> {
  try {
    await ctx.db.transaction(async (tx) => {
      if (await storeConsent(tx, consent)) await offerByPush(ctx, tx, consent, offer)
    })
  } catch (error) {
    ctx.log.error('could not queue the push about a wallet consent', {
      did: offer.did,
      clientId: consent.clientId,
      error,
    })
    await ctx.db.transaction((tx) => storeConsent(tx, consent))
  }
}

/**
 * If a device is notified, require the code that the page shows: it distinguishes this request from one that a stranger
 * made.
 */
async function offerByPush(ctx: Context, tx: Tx, consent: NewConsent, { did, clientName }: Offer): Promise<void> {
  const devices = await notifyDevices(ctx, tx, did, consent, clientName)
  if (devices === 0) return
  const { requestId, requestHash, clientId, createdAt } = consent
  await latchMatchCode(tx, requestId, twoDigits(randomBytes), createdAt)
  const event: NewConsentEvent = {
    requestHash,
    action: 'push_dispatched',
    accountDid: null,
    clientId,
    detail: { devices, pushed_to: did },
    createdAt,
  }
  await insertConsentEvent(tx, event)
}

// Reading

/** Returns a consent that can still be decided, by its id; null if there is none. */
export async function pendingConsent({ db, clock }: Context, requestId: string): Promise<Consent | null> {
  const id = parseRequestId(requestId)
  return id === null ? null : findPendingConsent(db, id, clock.now())
}

/** Like `pendingConsent`, by the code that a person typed. */
export async function pendingConsentByCode({ db, clock }: Context, userCode: string): Promise<Consent | null> {
  const code = parseUserCode(userCode)
  return code === null ? null : findPendingConsentByCode(db, code, clock.now())
}

export type ShownStatus = 'pending' | 'approved' | 'denied' | 'completed' | 'expired'

/** Returns the state that a waiting page is told. `expired` also stands for unknown. */
export async function shownStatus({ db, clock }: Context, requestId: string): Promise<ShownStatus> {
  const now = clock.now()
  const state = await findConsentState(db, requestId, now)
  if (state === null) return 'expired'
  const { status, expiresAt, isOpen } = state
  if (status === 'pending') return isOpen && expiresAt > now ? 'pending' : 'expired'
  return status === 'approved' && !isOpen ? 'expired' : status
}

/**
 * Returns the requests that wait for the account's wallet: the newest of those whose client names the account.
 * Strangers can make many such requests, so show each with its origin.
 */
export const consentsAwaiting = async ({ db, clock }: Context, account: NamedAccount): Promise<Consent[]> =>
  pendingConsentsFor(db, await namesOf(db, account), clock.now(), MAX_AWAITING)

/** Returns the request with this id, if it names the account and waits for its wallet; null otherwise. */
export async function consentAwaiting(ctx: Context, account: NamedAccount, requestId: string): Promise<Consent | null> {
  const consent = await pendingConsent(ctx, requestId)
  const names = await namesOf(ctx.db, account)
  return consent?.loginHint != null && names.includes(consent.loginHint) ? consent : null
}

type NamedAccount = Pick<Account, 'did' | 'handle'>

/** The names by which a client may call the account. */
const namesOf = async (reader: Reader, { did, handle }: NamedAccount): Promise<string[]> => [
  did,
  ...(handle === null ? [] : [handle]),
  ...(await furtherHandlesOf(reader, did)),
]

// Forgetting

/**
 * Delete consents that lapsed an hour ago, with their events if they were not decided. Returns how many were deleted.
 */
async function forgetLapsedConsents(tx: Tx, now: Millis, limit: number): Promise<number> {
  const lapsed = await listLapsedConsents(tx, now - CONSENT_KEPT_SECS * 1000, limit)
  if (lapsed.length === 0) return 0
  const undecided = lapsed.filter(({ accountDid }) => accountDid === null)
  await deleteConsentEventsOf(
    tx,
    undecided.map(({ requestHash }) => requestHash),
  )
  return deleteConsents(
    tx,
    lapsed.map(({ requestId }) => requestId),
  )
}

/** Delete lapsed consents and old events, in small transactions. Returns how many of each. */
export async function forgetOldConsents({ db, clock }: Context): Promise<{ consents: number; consentEvents: number }> {
  const now = clock.now()
  let consents = 0
  for (let deleted = MAX_FORGOTTEN; deleted === MAX_FORGOTTEN; consents += deleted)
    deleted = await db.transaction((tx) => forgetLapsedConsents(tx, now, MAX_FORGOTTEN))
  return { consents, consentEvents: await deleteConsentEventsBefore(db, now - EVENTS_KEPT_DAYS * DAY_MILLIS) }
}

/** Delete every consent and event about an account that is being deleted. Its handles must still be there. */
export async function deleteConsentsAbout(tx: Tx, did: Did): Promise<void> {
  const names = await namesOf(tx, { did, handle: (await accountOf(tx, did))?.handle ?? null })
  await deleteConsentEventsAbout(tx, did, names)
  await deleteConsentsNaming(tx, names)
}
