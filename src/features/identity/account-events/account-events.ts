/**
 * The events of accounts, in one table: each with its log line, whether it appears in the list of the account's events,
 * and whether the holder gets a mail that says what to do if it was not them. The code that causes an event announces
 * it once.
 *
 * The list entry is written and the mail is ordered in the transaction that they report, so that none of the three
 * exists without the others. A mail is sent after the response and never fails a request. Each account gets a bounded
 * number of mails per kind of event, so that one kind cannot use up the allowance of another.
 */
import { createHash } from 'node:crypto'
import type { Exchange } from '../../../http/endpoint.ts'
import { plainName, type Phrase } from '../../../http/html.ts'
import { requestOrigin, type Origin } from '../../../http/origin.ts'
import { byPair, pageOf, type Pages } from '../../../http/paged-list.ts'
import { timePhrase } from '../../../http/texts.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import type { StepKind } from '../../../platform/running/steps.ts'
import { wireTime, type Did } from '../../../protocol/identifiers.ts'
import { accountOf, type Account } from '../accounts/accounts.ts'
import {
  countEventsNamed,
  listEvents,
  oldestKept,
  putEvent,
  type EventPlace,
  type StoredEvent,
} from './account-event-store.ts'
import { changedElsewhere } from './identity-change-words.ts'
import { formerAddresses } from './former-address-store.ts'
import { forgetOldPlaces, insertPlace, isKnownPlace } from './known-place-store.ts'
import { addMail, loadMailTexts, noticeMail, type Notice, type Told } from '../mails/mails.ts'
import { noticeTexts as texts } from './notice-texts.ts'

export { changedElsewhere, changedWords, undoWords } from './identity-change-words.ts'
export { EVENT_KEPT_DAYS, type StoredEvent } from './account-event-store.ts'
export { insertPlace as rememberPlace, isKnownNetwork } from './known-place-store.ts'

interface AccountEvent {
  /** The log message, at level `info`. */
  message: string
  notice?: Notice
  /**
   * The mail to addresses that the account had in the last 30 days, because an attacker may have replaced the holder's.
   */
  formerNotice?: Notice
  /** The event is only logged, because it changes no access, or because the account and its list are deleted. */
  isUnlisted?: true
  /** Strangers can cause the event, so the list shows it once a day. */
  isDaily?: true
  /** The event ends all sessions and forgets all known places. */
  endsAccess?: true
}

/** A text with the name that a program or an account gives itself, if the mail may contain that name. */
const named = (name: string | undefined, plain: Phrase, withName: (values: { name: string }) => Phrase): Phrase =>
  name === undefined ? plain : withName({ name: plainName(name.replaceAll(/\p{Cc}+/gu, ' ')) })

/** Names of texts that say all about an event, and that have a subject. */
type PlainText = {
  [Name in keyof typeof texts]: `${Name}Subject` extends keyof typeof texts
    ? (typeof texts)[Name] extends Phrase
      ? Name
      : never
    : never
}[keyof typeof texts]

/** The mail that says the same about every such event. */
const plainNotice = (name: PlainText, ...remedies: Notice['remedies']): Notice => ({
  subject: texts[`${name}Subject`],
  what: () => texts[name],
  remedies,
})

const accountEvents = {
  created: { message: 'account created' },
  arrived: { message: 'account created for migration', endsAccess: true },
  signedIn: { message: 'signed in' },
  appLetIn: { message: 'app authorized' },
  consentApproved: { message: 'app approved in a wallet', isUnlisted: true },
  consentDenied: { message: 'app denied in a wallet', isUnlisted: true },
  handleChanged: {
    message: 'handle changed',
    notice: {
      subject: texts.handleChangedSubject,
      what: ({ handle = '', unpublished }) =>
        unpublished ? texts.handleUnpublished({ handle }) : texts.handleChanged({ handle }),
      remedies: ['password', 'account', 'operator'],
    },
  },
  handleAdded: { message: 'handle added' },
  handleRemoved: {
    message: 'handle removed',
    notice: {
      subject: texts.handleRemovedSubject,
      what: ({ handle = '' }) => texts.handleRemoved({ handle }),
      remedies: ['account', 'password', 'operator'],
    },
  },
  emailChanged: {
    message: 'email address changed',
    // No advice to reset the password, because the reset code would go to the new address.
    notice: plainNotice('emailChanged', 'operator', 'account'),
  },
  emailConfirmed: { message: 'email address confirmed' },
  passwordChanged: {
    message: 'password changed',
    notice: plainNotice('passwordChanged', 'password', 'account', 'operator'),
  },
  passwordReset: {
    message: 'password reset',
    endsAccess: true,
    // If it was not the holder, an attacker reads the holder's mail.
    notice: plainNotice('passwordReset', 'mailbox', 'password', 'operator'),
  },
  emailFactorOn: {
    message: 'mailed sign-in codes turned on',
    notice: plainNotice('emailFactorOn', 'account', 'password', 'operator'),
  },
  emailFactorOff: {
    message: 'mailed sign-in codes turned off',
    notice: plainNotice('emailFactorOff', 'mailbox', 'password', 'operator'),
  },
  totpAdded: { message: 'authenticator app added', notice: plainNotice('totpAdded', 'account', 'operator') },
  totpRemoved: {
    message: 'authenticator app removed',
    notice: plainNotice('totpRemoved', 'password', 'account', 'operator'),
  },
  passkeyAdded: { message: 'passkey added', notice: plainNotice('passkeyAdded', 'account', 'operator') },
  passkeyRemoved: {
    message: 'passkey removed',
    notice: plainNotice('passkeyRemoved', 'password', 'account', 'operator'),
  },
  passkeyCopied: {
    message: 'passkey refused: its signature counter went back',
    notice: plainNotice('passkeyCopied', 'account', 'operator'),
  },
  factorsReset: { message: 'second factors reset', notice: plainNotice('factorsReset', 'password', 'operator') },
  recoveryCodesMade: {
    message: 'recovery codes replaced',
    notice: plainNotice('recoveryCodesMade', 'password', 'account', 'operator'),
  },
  recoveryCodeUsed: {
    message: 'recovery code used',
    notice: plainNotice('recoveryCodeUsed', 'password', 'account', 'operator'),
  },
  factorBlocked: {
    message: 'too many wrong codes of a second factor',
    notice: plainNotice('factorBlocked', 'password', 'account', 'operator'),
  },
  appPasswordMade: {
    message: 'app password created',
    notice: {
      subject: texts.appPasswordMadeSubject,
      what: ({ name }) => named(name, texts.appPasswordMade, texts.appPasswordNamed),
      remedies: ['account', 'password', 'operator'],
    },
  },
  appPasswordRevoked: { message: 'app password revoked' },
  identityOperationSigned: { message: 'identity operation signed' },
  identityChanged: { message: 'identity changed' },
  identityInDoubt: { message: 'identity operation sent, no response from the directory' },
  identityChangedElsewhere: {
    message: 'identity changed by an operation that this server did not send',
    notice: {
      subject: texts.changedElsewhereSubject,
      what: ({ change }) => (change === undefined ? texts.changedElsewhere : changedElsewhere(change)),
      remedies: ['undoChange', 'operator'],
    },
  },
  ownKeyAdded: {
    message: 'key of the holder added to the identity',
    notice: plainNotice('ownKeyAdded', 'mailbox', 'password', 'operator'),
  },
  ownKeyInDoubt: {
    message: 'key of the holder sent to the directory, which did not respond',
    notice: plainNotice('ownKeyInDoubt', 'mailbox', 'password', 'operator'),
  },
  hostingBegun: {
    message: 'hosting of the identity document begun',
    notice: plainNotice('hostingBegun', 'password', 'account', 'operator'),
  },
  hostingEnded: { message: 'hosting of the identity document ended' },
  documentEdited: {
    message: 'identity document edited',
    notice: plainNotice('documentEdited', 'password', 'account', 'operator'),
  },
  signingKeyStaged: { message: 'signing key staged', isUnlisted: true },
  signingKeyReplaced: {
    message: 'signing key replaced',
    notice: plainNotice('signingKeyReplaced', 'account', 'operator'),
  },
  transferBegun: { message: 'transfer to another device begun' },
  transferAccepted: {
    message: 'transfer to another device accepted',
    notice: plainNotice('transferAccepted', 'account', 'operator'),
  },
  transferCompleted: {
    message: 'transfer to another device completed',
    notice: plainNotice('transferCompleted', 'account', 'operator'),
  },
  transferCancelled: { message: 'transfer to another device cancelled' },
  agentAsks: {
    message: 'agent asks for an account',
    isDaily: true,
    notice: {
      subject: texts.agentAsksSubject,
      what: ({ issuer }) => (issuer === undefined ? texts.agentAsks : texts.agentAsksOf({ issuer })),
      remedies: ['noCode', 'operator'],
    },
  },
  agentConfirmed: {
    message: 'agent confirmed',
    notice: {
      subject: texts.agentConfirmedSubject,
      what: ({ name }) => named(name, texts.agentConfirmed, texts.agentConfirmedNamed),
      remedies: ['account', 'password', 'operator'],
    },
  },
  agentDenied: { message: 'agent denied', isUnlisted: true },
  childEnded: { message: 'agent of a child account ended by its parent' },
  childDeletionScheduled: { message: 'deletion of a child account scheduled' },
  agentEndedByProvider: { message: 'agent ended by its provider' },
  agentEnded: { message: 'agent ended' },
  agentEndedByOperator: {
    message: 'agent ended',
    notice: {
      subject: texts.agentEndedSubject,
      what: ({ name }) => named(name, texts.agentEnded, texts.agentEndedNamed),
      remedies: ['operator'],
    },
  },
  agentRefused: {
    message: 'agent refused',
    isDaily: true,
    notice: plainNotice('agentRefused', 'noCode', 'account', 'operator'),
  },
  delegateInvited: { message: 'delegate invited' },
  delegationTaken: { message: 'delegation accepted' },
  delegationEnded: { message: 'delegation ended' },
  delegationOffered: {
    message: 'delegation offered',
    isDaily: true,
    notice: {
      subject: texts.delegationOfferedSubject,
      what: ({ name }) => named(name, texts.delegationOffered, texts.delegationOfferedBy),
      remedies: [],
    },
  },
  delegateAccepted: {
    message: 'delegate accepted',
    notice: {
      subject: texts.delegateAcceptedSubject,
      what: ({ name }) => named(name, texts.delegateAccepted, texts.delegateAcceptedNamed),
      remedies: ['account', 'password', 'operator'],
    },
  },
  delegationEndedByOperator: {
    message: 'delegation ended by the operator',
    notice: plainNotice('delegationEnded', 'operator'),
  },
  deviceRevoked: { message: 'device revoked' },
  deletionRequested: { message: 'deletion requested' },
  deactivated: { message: 'account deactivated' },
  deletionScheduled: {
    message: 'account deactivated and scheduled for deletion',
    notice: {
      subject: texts.deletionScheduledSubject,
      what: ({ deleteAfter }) =>
        deleteAfter === undefined
          ? texts.deletionScheduled
          : texts.deletionScheduledAt({ time: timePhrase(deleteAfter) }),
      remedies: ['account', 'password', 'operator'],
    },
  },
  activated: { message: 'account activated' },
  deleted: { message: 'account deleted', isUnlisted: true },
  imported: { message: 'repository imported' },
  exported: { message: 'account exported' },
  takenDown: { message: 'account taken down', endsAccess: true },
  restored: { message: 'takedown of the account lifted', endsAccess: true },
  accessEnded: { message: 'all access to the account ended', endsAccess: true },
  appEnded: { message: 'access of an app ended' },
  signedOutElsewhere: { message: 'session ended by the holder' },
  resetCodeMade: { message: 'password reset code created by the operator' },
  shareDeposited: { message: 'recovery share deposited' },
  shareRotated: {
    message: 'recovery share replaced',
    notice: plainNotice('shareRotated', 'account', 'password', 'operator'),
  },
  shareDeleted: {
    message: 'recovery share deleted',
    notice: plainNotice('shareDeleted', 'account', 'password', 'operator'),
  },
  releaseOpened: {
    message: 'release of the recovery share opened',
    notice: {
      subject: texts.releaseOpenedSubject,
      what: ({ collectableAt }) =>
        collectableAt === undefined ? texts.releaseOpenedNow : texts.releaseOpened({ time: timePhrase(collectableAt) }),
      remedies: ['cancelRecovery', 'mailbox', 'operator'],
    },
    formerNotice: {
      subject: texts.releaseOpenedSubject,
      what: ({ collectableAt }) =>
        collectableAt === undefined
          ? texts.releaseOpenedNowFormer
          : texts.releaseOpenedFormer({ time: timePhrase(collectableAt) }),
      remedies: ['cancelRecovery', 'operator'],
    },
  },
  releaseCancelled: { message: 'release of the recovery share cancelled' },
  shareReleased: {
    message: 'recovery share handed out',
    notice: plainNotice('shareReleased', 'newKeys', 'mailbox', 'operator'),
    formerNotice: {
      subject: texts.shareReleasedSubject,
      what: () => texts.shareReleasedFormer,
      remedies: ['newKeys', 'operator'],
    },
  },
} as const satisfies Record<string, AccountEvent>

const signInNotice = (what: Phrase, remedies: Notice['remedies']): Notice => ({
  subject: texts.signInSubject,
  what: () => what,
  remedies,
})
const passwordNotice = signInNotice(texts.signInPassword, ['password', 'account', 'operator'])

/**
 * Means of signing in, each with the mail about a sign-in from a new place. App passwords have no such mail, because
 * their creation was announced.
 */
const signIns = {
  password: passwordNotice,
  'password on a page': passwordNotice,
  'app password': null,
  passkey: signInNotice(texts.signInPasskey, ['account', 'operator']),
  wallet: signInNotice(texts.signInWallet, ['identityKey', 'account', 'operator']),
} as const satisfies Record<string, Notice | null>

export type Means = keyof typeof signIns

/** The request that causes an event, or the context alone if the server acts on its own. */
export type By = Exchange | { ctx: Context }

/** An operator's action on an account. */
export interface Operated {
  /** The operator, as named in the audit log. */
  actor: string
  /**
   * Writes the audit entry, and throws a `Refusal` if the operator may not, or may no longer, do this. Called in the
   * transaction that makes the change; if the change takes several transactions, in the first of them, before the
   * change leaves this server. Omitted if the server itself acts.
   */
  record?(tx: Tx): Promise<void>
}

/**
 * Throws a `Refusal` if the caller's access has ended since the request was admitted. Never throws for the server
 * itself.
 */
export const revalidate = async (by: By, reader: Reader): Promise<void> => {
  if ('revalidate' in by) await by.revalidate(reader)
}

interface Details extends Omit<Told, 'at' | 'origin'> {
  means?: Means
  clientId?: string
  /** Recipient of the mail, if not the account's current address; null for no mail. Not logged. */
  to?: string | null
  /** Whether the account had confirmed the address `to`. */
  isConfirmed?: boolean
  /** Origin of the request that caused the event, if that was an earlier request. */
  origin?: Origin
  /**
   * The other account of this server that `name` refers to: when that account is deleted, the name is deleted from the
   * list.
   */
  namedDid?: Did
}

type EventName = keyof typeof accountEvents
type EventWith<Member extends keyof AccountEvent> = {
  [Name in EventName]: Member extends keyof (typeof accountEvents)[Name] ? Name : never
}[EventName]
/** Events that are reported to the account holder by mail. */
type NoticedEvent = EventWith<'notice'>
type UnlistedEvent = EventWith<'isUnlisted'>
/** Events that the account holder finds in the list. */
export type ListedEvent = Exclude<EventName, UnlistedEvent>

/** Log an event that is not listed. Call it once the change is durable. */
export const announce = (by: By, event: UnlistedEvent, did: Did, details: Details = {}): void =>
  logEvent(by, event, did, details)

/**
 * List an event, and order the mail about it if there is one, in the transaction that causes it. The event is logged
 * after the commit. An event about a deleted account is only logged.
 */
export async function announceIn(tx: Tx, by: By, event: ListedEvent, did: Did, details: Details = {}): Promise<void> {
  tx.afterCommit(() => logEvent(by, event, did, details))
  const account = await accountOf(tx, did)
  if (account === null) return
  await listEvent(tx, by, event, did, details)
  if (!isNoticed(event)) return
  const { email: to, emailConfirmedAt } = account
  await orderNotice(tx, by, event, did, { to, isConfirmed: emailConfirmedAt !== null, ...details })
}

const declarationOf = (event: EventName): AccountEvent => accountEvents[event]
const isNoticed = (event: EventName): event is NoticedEvent => declarationOf(event).notice !== undefined

/**
 * Sign-ins by the same means and from the same place share one row a day. So do events that strangers can cause, from
 * any place.
 */
async function listEvent(tx: Tx, by: By, event: ListedEvent, did: Did, details: Details): Promise<void> {
  const { means = null, actor, handle, name, namedDid = null, clientId } = details
  const at = by.ctx.clock.now()
  const { openedWith = null, openedFrom = null } = originFor(by, details) ?? {}
  const day = wireTime(at).slice(0, 10)
  await putEvent(tx, did, {
    id:
      means !== null
        ? createHash('sha256')
            .update(JSON.stringify([day, means, openedWith, openedFrom]))
            .digest('base64url')
        : declarationOf(event).isDaily
          ? `${event} ${day}`
          : crypto.randomUUID(),
    at,
    event,
    means,
    program: openedWith,
    network: openedFrom,
    byOperator: actor === undefined ? 0 : 1,
    subject: handle ?? name ?? clientId ?? null,
    subjectDid: namedDid,
  })
}

/**
 * Stores the current address with the order, because an attacker may change the address before the mail is composed.
 */
async function orderNotice(
  tx: Tx,
  by: By,
  event: NoticedEvent,
  did: Did,
  { to = null, isConfirmed = false, ...details }: Details,
): Promise<void> {
  const { ctx } = by
  const former = formerNoticeOf(event) === null ? [] : await formerAddresses(tx, did, to, ctx.clock.now())
  if (to === null && former.length === 0) return
  const told = { ...details, at: ctx.clock.now(), origin: originFor(by, details) }
  // A unique key for each: the mail about a second change must not replace the mail about the first.
  await ctx.steps.add(tx, noticeStep, {
    key: `${event} ${did} ${crypto.randomUUID()}`,
    did,
    payload: { event, to, isConfirmed, former, told },
  })
}

const originFor = (by: By, { actor, origin }: Details): Origin | null =>
  actor === undefined && 'request' in by ? requestOrigin(by) : (origin ?? null)

function logEvent(by: By, event: EventName, did: Did, details: Details): void {
  const { actor, handle, means, clientId, deleteAfter } = details
  const origin = originFor(by, details)
  by.ctx.log.info(accountEvents[event].message, {
    // Passed explicitly: after a commit the log no longer knows the current request.
    requestId: 'requestId' in by ? by.requestId : null,
    did,
    actor,
    handle,
    means,
    clientId,
    deleteAfter: deleteAfter === undefined ? null : wireTime(deleteAfter),
    program: origin?.openedWith,
    network: origin?.openedFrom,
  })
}

/** Returns the mail to former addresses about an event; null if they get none. */
function formerNoticeOf(event: NoticedEvent): Notice | null {
  return declarationOf(event).formerNotice ?? null
}

interface OrderedNotice {
  event: NoticedEvent
  to: string | null
  /** Whether the account had confirmed it when the event happened. Absent in steps of an earlier version. */
  isConfirmed?: boolean
  /** Addresses that the account had before. Absent in steps of an earlier version. */
  former?: readonly string[]
  told: Told
}

/** Composes the ordered mail. */
export const noticeStep: StepKind<OrderedNotice> = {
  name: 'notice',
  // One at a time, so that mails follow the order of events.
  concurrency: 1,
  maxSteps: 5000,
  maxTries: 10,
  firstWaitSecs: 1,
  maxWaitSecs: 60,
  async take(ctx, { did, payload: { event, to, isConfirmed = false, former = [], told }, end }) {
    if (did === null) return
    const state = await ctx.limits.chargeShared({ name: 'accountNotice', key: `${event} ${did}` })
    if (state?.allowed === false) return
    await loadMailTexts(ctx, await accountOf(ctx.db, did), texts.signInSubject)
    await ctx.db.transaction(async (tx) => {
      const account = await accountOf(tx, did)
      if (!(await end(tx)) || !account) return
      const causedBy = isConfirmed ? 'former' : causeOf(event, told)
      if (to !== null)
        await addNotice(ctx, tx, { ...account, email: to }, accountEvents[event].notice, told, {
          what: event,
          causedBy,
        })
      const formerNotice = formerNoticeOf(event)
      if (formerNotice === null) return
      for (const email of former)
        await addNotice(ctx, tx, { ...account, email, emailConfirmedAt: null }, formerNotice, told, {
          what: event,
          causedBy: 'former',
        })
    })
  },
}

type Caused = Pick<Parameters<typeof addMail>[2], 'what' | 'causedBy'>

const causeOf = (event: NoticedEvent, { actor }: Told): Caused['causedBy'] => {
  if (actor !== undefined) return 'operator'
  return declarationOf(event).isDaily ? 'anyone' : 'holder'
}

const addNotice = async (
  ctx: Context,
  tx: Tx,
  account: Account & { email: string },
  notice: Notice,
  told: Told,
  caused: Caused,
): Promise<void> =>
  addMail(ctx, tx, {
    ...caused,
    key: `notice ${account.did} ${crypto.randomUUID()}`,
    did: account.did,
    mail: await noticeMail(ctx, account, notice, told),
  })

/**
 * Announce a sign-in, in the transaction that opens it. The holder gets a mail if it came from a new place: a new app,
 * browser or network. A browser that was already signed in never counts as new. A place becomes known when its mail is
 * queued. So if the limit suppresses the mail, the next sign-in from that place causes another.
 */
export async function announceSignIn(
  tx: Tx,
  exchange: Exchange,
  did: Did,
  means: Means,
  { isKnownBrowser = false } = {},
): Promise<void> {
  await listEvent(tx, exchange, 'signedIn', did, { means })
  const notice = signIns[means]
  const accessEnds = notice === null ? 0 : await countAccessEnds(tx, did)
  tx.afterCommit(() => {
    logEvent(exchange, 'signedIn', did, { means })
    if (notice === null) return
    exchange.ctx.background.run('mail about a sign-in', () =>
      noteNewPlace(exchange, did, { notice, isKnownBrowser, accessEnds }),
    )
  })
}

const accessEndNames = Object.keys(accountEvents).filter((name) => declarationOf(name as EventName).endsAccess)

/** Returns how many events in the list have ended all access. */
const countAccessEnds = (reader: Reader, did: Did): Promise<number> => countEventsNamed(reader, did, accessEndNames)

interface NotedSignIn {
  notice: Notice
  isKnownBrowser: boolean
  /** How often access to the account had ended before. */
  accessEnds: number
}

async function noteNewPlace(
  exchange: Exchange,
  did: Did,
  { notice, isKnownBrowser, accessEnds }: NotedSignIn,
): Promise<void> {
  const { ctx } = exchange
  const origin = requestOrigin(exchange)
  if (await isKnownPlace(ctx.db, did, origin)) return
  if (!isKnownBrowser && (await ctx.limits.chargeShared({ name: 'signInNotice', key: did }))?.allowed === false) return
  await loadMailTexts(ctx, await accountOf(ctx.db, did), texts.signInSubject)
  await ctx.db.transaction(async (tx) => {
    const account = await accountOf(tx, did)
    // The account may have been deleted since the sign-in.
    if (account === null) return
    // If access was ended after this sign-in, an intruder may have signed in, so the place does not become known.
    if ((await countAccessEnds(tx, did)) === accessEnds) {
      if ((await insertPlace(tx, did, origin)) === 0) return
      await forgetOldPlaces(tx, did)
    }
    const { email } = account
    if (!isKnownBrowser && email)
      await addNotice(
        ctx,
        tx,
        { ...account, email },
        notice,
        { at: origin.openedAt, origin },
        { what: 'signedIn', causedBy: 'holder' },
      )
  })
}

/** Returns a page of an account's events of the last 90 days, newest first. */
export const eventsOf = (
  { db, clock }: Pick<Context, 'db' | 'clock'>,
  did: Did,
  { after, limit }: { after: EventPlace | null; limit: number },
): Promise<StoredEvent[]> => listEvents(db, did, { after, since: oldestKept(clock.now()), limit })

export const eventPages: Pages<EventPlace> = { cursor: byPair('at', '|', 'id'), maxRows: 100 }

/** Returns a page of an account's events as programs get it. Throws `InvalidRequest`. */
export async function eventPage(ctx: Context, did: Did, params: URLSearchParams) {
  const { rows, cursor } = await pageOf(params, eventPages, (after, limit) => eventsOf(ctx, did, { after, limit }))
  return {
    events: rows.map((row) => ({
      at: wireTime(row.at),
      event: row.event,
      message: eventMessage(row),
      means: row.means ?? undefined,
      subject: row.subject ?? undefined,
      program: row.program ?? undefined,
      network: row.network ?? undefined,
      byOperator: row.byOperator === 1,
      times: row.times,
    })),
    cursor,
  }
}

/** Returns the log message of an event; its name if a newer version wrote the event and this one does not know it. */
const eventMessage = ({ event }: Pick<StoredEvent, 'event'>): string =>
  Object.hasOwn(accountEvents, event) ? accountEvents[event as EventName].message : event
