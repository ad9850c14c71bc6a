/**
 * The events of accounts, in one table: each with its log line, and whether the holder finds it in the list of the
 * account's events and gets a mail that says what to do if it was not them. The code that causes an event announces it
 * once.
 *
 * The row of the list is written, and the mail ordered, in the transaction that they report, so that neither exists
 * without the other. A mail is sent after the response and never fails a request. Each account gets a bounded number of
 * mails per kind of event, so that one kind cannot use up the allowance of another.
 */
import { createHash } from 'node:crypto'
import { timeInWords } from '../../../base/time-words.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { plainName } from '../../../http/html.ts'
import { requestOrigin, type Origin } from '../../../http/origin.ts'
import { byPair, pageOf, type Pages } from '../../../http/paged-list.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import type { StepKind } from '../../../platform/running/steps.ts'
import { wireTime, type Did } from '../../../protocol/identifiers.ts'
import { accountOf, type Account } from '../accounts/accounts.ts'
import { listEvents, oldestKept, putEvent, type EventPlace, type StoredEvent } from './account-event-store.ts'
import { changedWords, undoWords } from './identity-change-words.ts'
import { formerAddresses } from './former-address-store.ts'
import { forgetOldPlaces, insertPlace, isKnownPlace } from './known-place-store.ts'
import { addMail, noticeMail, type EventDetails, type Notice, type Told } from '../mails/mails.ts'

export { changedWords, undoWords } from './identity-change-words.ts'
export { EVENT_KEPT_DAYS, type StoredEvent } from './account-event-store.ts'
export { insertPlace as rememberPlace } from './known-place-store.ts'

interface AccountEvent {
  /** The log message, at level `info`. */
  message: string
  notice?: Notice
  /** The mail to addresses that the account had in the last 30 days: an attacker may have replaced them. */
  formerNotice?: Notice
  /** Is only logged: it changes no access, or deletes the account with its list. */
  isUnlisted?: true
  /** Strangers can cause it, so that the list has it once a day. */
  isDaily?: true
}

const FORMERLY = 'This was the address of the account until recently.'

/** A sentence about a program, if it may be told what the program calls itself. */
const ownName = (name: string | undefined): string =>
  name === undefined ? '' : ` It calls itself "${plainName(name)}".`

const accountEvents = {
  created: { message: 'account created' },
  arrived: { message: 'account created for migration' },
  signedIn: { message: 'signed in' },
  appLetIn: { message: 'app authorized' },
  consentApproved: { message: 'app approved in a wallet', isUnlisted: true },
  consentDenied: { message: 'app denied in a wallet', isUnlisted: true },
  handleChanged: {
    message: 'handle changed',
    notice: {
      subject: 'Your handle was changed',
      what: ({ handle, unpublished }) =>
        `The handle of your account is now ${handle}.${unpublished ? ' Your wallet has to add it to your identity, because only your own key can change that. Until then, others see the account without a valid handle.' : ''}`,
      remedies: ['password', 'account', 'operator'],
    },
  },
  handleAdded: { message: 'handle added' },
  handleRemoved: {
    message: 'handle removed',
    notice: {
      subject: 'A handle was removed from your account',
      what: ({ handle }) => `Your account no longer has the handle ${handle}.`,
      remedies: ['account', 'password', 'operator'],
    },
  },
  emailChanged: {
    message: 'email address changed',
    notice: {
      subject: 'Your email address was changed',
      what: () =>
        'Your account now has a different email address. This email goes to your old address. Later ones go to the new address.',
      // No advice to reset the password: the code would go to the new address.
      remedies: ['operator', 'account'],
    },
  },
  emailConfirmed: { message: 'email address confirmed' },
  passwordChanged: {
    message: 'password changed',
    notice: {
      subject: 'Your password was changed',
      what: () => 'Your account has a new password. Every session opened with the old one has been signed out.',
      remedies: ['password', 'account', 'operator'],
    },
  },
  passwordReset: {
    message: 'password reset',
    notice: {
      subject: 'Your password was reset',
      what: () =>
        'A new password was set with a code that we emailed to you. Every app, browser and program has lost its access.',
      // If it was not the holder, an attacker reads the holder's mail.
      remedies: ['mailbox', 'password', 'operator'],
    },
  },
  emailFactorOn: {
    message: 'mailed sign-in codes turned on',
    notice: {
      subject: 'Signing in now needs a code from your mail',
      what: () =>
        'From now on, a sign-in with your password also needs a code that we email to you. App passwords work without a code.',
      remedies: ['account', 'password', 'operator'],
    },
  },
  emailFactorOff: {
    message: 'mailed sign-in codes turned off',
    notice: {
      subject: 'Signing in no longer needs a code from your mail',
      what: () => 'Your password alone opens your account again: we no longer ask for a code that we email to you.',
      remedies: ['mailbox', 'password', 'operator'],
    },
  },
  totpAdded: {
    message: 'authenticator app added',
    notice: {
      subject: 'An authenticator app was added to your account',
      what: () =>
        'From now on, a sign-in with your password also needs a code of the app, or one of your recovery codes. App passwords work without a code.',
      remedies: ['account', 'operator'],
    },
  },
  totpRemoved: {
    message: 'authenticator app removed',
    notice: {
      subject: 'The authenticator app was removed from your account',
      what: () => 'Signing in no longer needs a code of the app, and the recovery codes no longer work.',
      remedies: ['password', 'account', 'operator'],
    },
  },
  passkeyAdded: {
    message: 'passkey added',
    notice: {
      subject: 'A passkey was added to your account',
      what: () =>
        'Anyone who has the device with the passkey, and its PIN, finger or face, can sign in to your account. From now on, a sign-in with your password also needs the passkey, or one of your recovery codes. App passwords work without it.',
      remedies: ['account', 'operator'],
    },
  },
  passkeyRemoved: {
    message: 'passkey removed',
    notice: {
      subject: 'A passkey was removed from your account',
      what: () => 'The passkey no longer opens your account. Your account page shows what a sign-in needs now.',
      remedies: ['password', 'account', 'operator'],
    },
  },
  passkeyCopied: {
    message: 'passkey refused: its signature counter went back',
    notice: {
      subject: 'One of your passkeys may have been copied',
      what: () =>
        'A passkey of your account was used, but it told that it had been used less often than we know. There may be a copy of it. We have refused the sign-in. If this happens again, remove the passkey and make a new one.',
      remedies: ['account', 'operator'],
    },
  },
  factorsReset: {
    message: 'second factors reset',
    notice: {
      subject: 'The second factors of your account were removed',
      what: () =>
        'The operator of this server removed the second factors of your account, as for a holder who has lost them. Your password alone opens it now.',
      remedies: ['password', 'operator'],
    },
  },
  recoveryCodesMade: {
    message: 'recovery codes replaced',
    notice: {
      subject: 'Your recovery codes were replaced',
      what: () => 'New recovery codes were made for your account. The ones before no longer work.',
      remedies: ['password', 'account', 'operator'],
    },
  },
  recoveryCodeUsed: {
    message: 'recovery code used',
    notice: {
      subject: 'A recovery code was used',
      what: () =>
        'One of the recovery codes of your account was used in place of your second factor, together with your password. It does not work again.',
      remedies: ['password', 'account', 'operator'],
    },
  },
  factorBlocked: {
    message: 'too many wrong codes of a second factor',
    notice: {
      subject: 'Someone entered wrong codes for your account',
      what: () =>
        'A sign-in to your account had the right password, but too many wrong codes. For an hour, no code is accepted.',
      remedies: ['password', 'account', 'operator'],
    },
  },
  appPasswordMade: {
    message: 'app password created',
    notice: {
      subject: 'An app password was created',
      what: ({ name }) =>
        `Your account has a new app password${name === undefined ? '' : `, called "${name.replaceAll(/\p{Cc}+/gu, ' ')}"`}. Anyone who has it can use your account.`,
      remedies: ['account', 'password', 'operator'],
    },
  },
  appPasswordRevoked: { message: 'app password revoked' },
  identityOperationSigned: { message: 'identity operation signed' },
  identityChanged: { message: 'identity changed' },
  identityInDoubt: { message: 'identity operation sent, no response from the directory' },
  identityChangedElsewhere: {
    message: 'identity changed by an operation that did not come from here',
    notice: {
      subject: 'Your identity was changed elsewhere',
      what: ({ change }) =>
        `Your identity was changed by an operation that did not come from this server.${change === undefined ? '' : ` It changed: ${changedWords(change)}. ${undoWords(change)}`} Your own wallet, or another server to which you move, makes such operations too.`,
      remedies: ['undoChange', 'operator'],
    },
  },
  ownKeyAdded: {
    message: 'key of the holder added to the identity',
    notice: {
      subject: 'A key was added to your identity',
      what: () =>
        'A key was added to your identity, above all others. Anyone who has its secret key can move your account without this server. For three days, only a key that ranked above those of this server before could undo this.',
      remedies: ['mailbox', 'password', 'operator'],
    },
  },
  ownKeyInDoubt: {
    message: 'key of the holder sent to the directory, which did not answer',
    notice: {
      subject: 'A key may have been added to your identity',
      what: () =>
        'A key was to be added to your identity, above all others, and the directory of identities did not answer: it may have the key. Your account page shows the keys. Anyone who has the secret key can move your account without this server.',
      remedies: ['mailbox', 'password', 'operator'],
    },
  },
  hostingBegun: {
    message: 'hosting of the identity document begun',
    notice: {
      subject: 'The document of your identity is now served here',
      what: () =>
        'This server now serves the document of your identity at your domain. While it does, anyone signed in to your account can change that document, and with it the keys and the server of your identity.',
      remedies: ['password', 'account', 'operator'],
    },
  },
  hostingEnded: { message: 'hosting of the identity document ended' },
  documentEdited: {
    message: 'identity document edited',
    notice: {
      subject: 'The document of your identity was changed',
      what: () =>
        'The document of your identity, which this server serves at your domain, was changed from a session of your account. It names the server of your account and the key that signs your posts.',
      remedies: ['password', 'account', 'operator'],
    },
  },
  signingKeyStaged: { message: 'signing key staged', isUnlisted: true },
  signingKeyReplaced: {
    message: 'signing key replaced',
    notice: {
      subject: 'The signing key of your account was replaced',
      what: () =>
        'The key that signs the posts of your account was replaced. This required a key of your identity. Nothing changes for your apps.',
      remedies: ['account', 'operator'],
    },
  },
  transferBegun: { message: 'transfer to another device begun' },
  transferAccepted: {
    message: 'transfer to another device accepted',
    notice: {
      subject: 'A device is taking over your account',
      what: () =>
        'A device accepted the transfer of your account, with the code that your wallet showed. Once the transfer is completed, every app that is signed in with your password or your key is signed out.',
      remedies: ['account', 'operator'],
    },
  },
  transferCompleted: {
    message: 'transfer to another device completed',
    notice: {
      subject: 'Your account was transferred to another device',
      what: () =>
        'The transfer of your account to another device was completed. Every app that was signed in with your password or your key has been signed out. App passwords and apps that you authorized still work.',
      remedies: ['account', 'operator'],
    },
  },
  transferCancelled: { message: 'transfer to another device cancelled' },
  agentAsks: {
    message: 'agent asks for an account',
    isDaily: true,
    notice: {
      subject: 'A program requests access to your account',
      what: ({ issuer }) =>
        `A program${issuer === undefined ? '' : `, which ${issuer} says acts for you,`} has registered here and requests access to your account. It can do nothing until you enter the code that it shows.`,
      remedies: ['noCode', 'operator'],
    },
  },
  agentConfirmed: {
    message: 'agent confirmed',
    notice: {
      subject: 'A program now has access to your account',
      what: ({ name }) =>
        `A program can now act for your account, because the code that it showed was entered.${ownName(name)} You can end its access at any time.`,
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
      subject: 'A program no longer has access to your account',
      what: ({ name }) =>
        `The operator of this server ended the access of a program that acted for your account, or its request for access.${ownName(name)}`,
      remedies: ['operator'],
    },
  },
  agentRefused: {
    message: 'agent refused',
    isDaily: true,
    notice: {
      subject: 'A program was refused access to your account',
      what: () =>
        'A program that requested access to your account was refused: its access was ended earlier, or someone else entered its code.',
      remedies: ['noCode', 'account', 'operator'],
    },
  },
  delegateInvited: { message: 'delegate invited' },
  delegationTaken: { message: 'delegation accepted' },
  delegationEnded: { message: 'delegation ended' },
  delegationOffered: {
    message: 'delegation offered',
    isDaily: true,
    notice: {
      subject: 'You are invited to act for another account',
      what: ({ name }) =>
        `The account ${name === undefined ? 'of someone else' : `"${plainName(name)}"`} invites you to act for it. Your account page shows what you could do for it, and there you can accept or decline within seven days. Until you accept, nothing changes. If you do not know the account, decline the invitation or ignore it.`,
      remedies: [],
    },
  },
  delegateAccepted: {
    message: 'delegate accepted',
    notice: {
      subject: 'Someone now acts for your account',
      what: ({ name }) =>
        `The account ${name === undefined ? 'that was invited' : `"${plainName(name)}"`} accepted the invitation to act for your account. Your account page shows what it may do and what it did, and there you can end it at any time.`,
      remedies: ['account', 'password', 'operator'],
    },
  },
  delegationEndedByOperator: {
    message: 'delegation ended by the operator',
    notice: {
      subject: 'Someone no longer acts for your account',
      what: () => 'The operator of this server ended the access of an account that acted for yours.',
      remedies: ['operator'],
    },
  },
  deviceRevoked: { message: 'device revoked' },
  deletionRequested: { message: 'deletion requested' },
  deactivated: { message: 'account deactivated' },
  deletionScheduled: {
    message: 'account deactivated and scheduled for deletion',
    notice: {
      subject: 'Your account is scheduled for deletion',
      what: ({ deleteAfter }) =>
        `Your account is deactivated, and will be deleted after ${deleteAfter === undefined ? 'a time' : timeInWords(deleteAfter)}. To keep it, activate it again before then.`,
      remedies: ['account', 'password', 'operator'],
    },
  },
  activated: { message: 'account activated' },
  deleted: { message: 'account deleted', isUnlisted: true },
  imported: { message: 'repository imported' },
  exported: { message: 'account exported' },
  takenDown: { message: 'account taken down' },
  restored: { message: 'takedown of the account lifted' },
  accessEnded: { message: 'all access to the account ended' },
  appEnded: { message: 'access of an app ended' },
  signedOutElsewhere: { message: 'session ended by the holder' },
  resetCodeMade: { message: 'password reset code created by the operator' },
  shareDeposited: { message: 'recovery share deposited' },
  shareRotated: {
    message: 'recovery share replaced',
    notice: {
      subject: 'Your recovery share was replaced',
      what: () =>
        'The share of your recovery key that this server holds was replaced. The new share works only with the other shares made at the same time.',
      remedies: ['account', 'password', 'operator'],
    },
  },
  shareDeleted: {
    message: 'recovery share deleted',
    notice: {
      subject: 'Your recovery share was deleted',
      what: () =>
        'This server no longer holds a share of your recovery key. Without it, your identity can be recovered only with both of your own shares.',
      remedies: ['account', 'password', 'operator'],
    },
  },
  releaseOpened: {
    message: 'release of the recovery share opened',
    notice: {
      subject: 'Recovery of your account was requested',
      what: ({ collectableAt }) =>
        `Someone used a code that we emailed to you to request the share of your recovery key that this server holds. It can be collected from ${collectableAt === undefined ? 'now' : timeInWords(collectableAt)} on. Together with one of your other shares, it gives control of your identity.`,
      remedies: ['cancelRecovery', 'mailbox', 'operator'],
    },
    formerNotice: {
      subject: 'Recovery of your account was requested',
      what: ({ collectableAt }) =>
        `${FORMERLY} Someone used a code that was sent to its current address to request the share of its recovery key that this server holds. It can be collected from ${collectableAt === undefined ? 'now' : timeInWords(collectableAt)} on. Together with one of the other shares, it gives control of the identity.`,
      remedies: ['cancelRecovery', 'operator'],
    },
  },
  releaseCancelled: { message: 'release of the recovery share cancelled' },
  shareReleased: {
    message: 'recovery share handed out',
    notice: {
      subject: 'Your recovery share was handed out',
      what: () =>
        'The server handed out the share of your recovery key that it holds. Together with one of your other shares, from your keychain or from paper, it gives control of your identity.',
      remedies: ['newKeys', 'mailbox', 'operator'],
    },
    formerNotice: {
      subject: 'Your recovery share was handed out',
      what: () =>
        `${FORMERLY} The server handed out the share of its recovery key that it holds. Together with one of the other shares, it gives control of the identity.`,
      remedies: ['newKeys', 'operator'],
    },
  },
} as const satisfies Record<string, AccountEvent>

const signInNotice = (using: string, remedies: Notice['remedies']): Notice => ({
  subject: 'New sign-in to your account',
  what: () => `Someone signed in to your account with ${using}, from a new app, browser or network.`,
  remedies,
})
const passwordNotice = signInNotice('its password', ['password', 'account', 'operator'])

/**
 * What the holder signed in with, and the mail about a sign-in from a new place. There is none about an app password,
 * because its creation was announced.
 */
const signIns = {
  password: passwordNotice,
  'password on a page': passwordNotice,
  'app password': null,
  passkey: signInNotice('a passkey', ['account', 'operator']),
  wallet: signInNotice('a wallet that holds a key of its identity', ['identityKey', 'account', 'operator']),
} as const satisfies Record<string, Notice | null>

export type Means = keyof typeof signIns

/** The request that causes an event, or the context alone if the server acts on its own. */
export type By = Exchange | { ctx: Context }

/**
 * Throws a `Refusal` if the caller's access has ended since the request was admitted. Never throws for the server
 * itself.
 */
export const revalidate = async (by: By, reader: Reader): Promise<void> => {
  if ('revalidate' in by) await by.revalidate(reader)
}

interface Details extends EventDetails {
  means?: Means
  clientId?: string
  /** Recipient of the mail, if not the account's current address; null for no mail. Not logged. */
  to?: string | null
  /** Where the event was asked for, if that was an earlier request. */
  origin?: Origin
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
 * after the commit. One about a deleted account is only logged.
 */
export async function announceIn(tx: Tx, by: By, event: ListedEvent, did: Did, details: Details = {}): Promise<void> {
  tx.afterCommit(() => logEvent(by, event, did, details))
  const account = await accountOf(tx, did)
  if (account === null) return
  await listEvent(tx, by, event, did, details)
  if (isNoticed(event)) await orderNotice(tx, by, event, did, { to: account.email, ...details })
}

const declarationOf = (event: EventName): AccountEvent => accountEvents[event]
const isNoticed = (event: EventName): event is NoticedEvent => declarationOf(event).notice !== undefined

/** Sign-ins of one kind and from one place are one row a day. So is what strangers can cause, wherever they are. */
async function listEvent(tx: Tx, by: By, event: ListedEvent, did: Did, details: Details): Promise<void> {
  const { means = null, actor, handle, name, clientId } = details
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
  })
}

/** The mail goes to the current address: an attacker may change the address a moment later. */
async function orderNotice(
  tx: Tx,
  by: By,
  event: NoticedEvent,
  did: Did,
  { to = null, ...details }: Details,
): Promise<void> {
  const { ctx } = by
  const former = formerNoticeOf(event) === null ? [] : await formerAddresses(tx, did, to, ctx.clock.now())
  if (to === null && former.length === 0) return
  const told = { ...details, at: ctx.clock.now(), origin: originFor(by, details) }
  // A unique key for each: the mail about a second change must not replace the mail about the first.
  await ctx.steps.add(tx, noticeStep, {
    key: `${event} ${did} ${crypto.randomUUID()}`,
    did,
    payload: { event, to, former, told },
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

/** Returns what former addresses are told of an event; null if nothing. */
function formerNoticeOf(event: NoticedEvent): Notice | null {
  return declarationOf(event).formerNotice ?? null
}

interface OrderedNotice {
  event: NoticedEvent
  to: string | null
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
  async take(ctx, { did, payload: { event, to, former = [], told }, end }) {
    if (did === null || ctx.limits.charge({ name: 'accountNotice', key: `${event} ${did}` })?.allowed === false) return
    await ctx.db.transaction(async (tx) => {
      const account = await accountOf(tx, did)
      if (!(await end(tx)) || !account) return
      if (to !== null) await addNotice(ctx, tx, { ...account, email: to }, accountEvents[event].notice, told)
      const formerNotice = formerNoticeOf(event)
      if (formerNotice === null) return
      for (const email of former)
        await addNotice(ctx, tx, { ...account, email, emailConfirmedAt: null }, formerNotice, told)
    })
  },
}

const addNotice = async (
  ctx: Context,
  tx: Tx,
  account: Account & { email: string },
  notice: Notice,
  told: Told,
): Promise<void> =>
  addMail(ctx, tx, {
    key: `notice ${account.did} ${crypto.randomUUID()}`,
    did: account.did,
    mail: await noticeMail(ctx, account, notice, told),
  })

/**
 * Announce a sign-in, in the transaction that opens it. The holder gets a mail if it came from a new place: a new app,
 * browser or network. A browser that was already signed in never counts as new. A place becomes known once its mail is
 * queued, so that a mail which the limit suppressed is sent after the next sign-in from that place.
 */
export async function announceSignIn(
  tx: Tx,
  exchange: Exchange,
  did: Did,
  means: Means,
  { isKnownBrowser = false } = {},
): Promise<void> {
  await listEvent(tx, exchange, 'signedIn', did, { means })
  tx.afterCommit(() => {
    logEvent(exchange, 'signedIn', did, { means })
    const notice = signIns[means]
    if (notice === null) return
    exchange.ctx.background.run('mail about a sign-in', () => noteNewPlace(exchange, did, notice, isKnownBrowser))
  })
}

async function noteNewPlace(exchange: Exchange, did: Did, notice: Notice, isKnownBrowser: boolean): Promise<void> {
  const { ctx } = exchange
  const origin = requestOrigin(exchange)
  if (await isKnownPlace(ctx.db, did, origin)) return
  if (!isKnownBrowser && ctx.limits.charge({ name: 'signInNotice', key: did })?.allowed === false) return
  await ctx.db.transaction(async (tx) => {
    if ((await insertPlace(tx, did, origin)) === 0) return
    await forgetOldPlaces(tx, did)
    const account = await accountOf(tx, did)
    const email = account?.email
    if (!isKnownBrowser && account && email)
      await addNotice(ctx, tx, { ...account, email }, notice, { at: origin.openedAt, origin })
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

/** Returns what an event is called in the log; its name if a newer version has written it. */
const eventMessage = ({ event }: Pick<StoredEvent, 'event'>): string =>
  Object.hasOwn(accountEvents, event) ? accountEvents[event as EventName].message : event
