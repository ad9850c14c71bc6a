/**
 * What happens to accounts, said in one place: each event with its line in the log and, where it matters to the account
 * holder, the mail that says what to do if it was not them. Whoever makes it happen names it once.
 *
 * A mail is ordered in the transaction that it tells of, so that neither is without the other. It is sent behind the
 * answer, and fails nobody. Each account gets a bounded number for each kind of event, so that one kind cannot use up the
 * mail of another.
 */
import type { Exchange } from '../../http/endpoint.ts'
import { originOf, type Origin } from '../../http/origin.ts'
import type { Context } from '../../platform/context.ts'
import type { Tx } from '../../platform/database/database.ts'
import type { StepKind } from '../../platform/running/steps.ts'
import { wireTime, type Did } from '../../protocol/identifiers.ts'
import { accountOf, type Account } from './account-store.ts'
import { forgetOldPlaces, insertPlace, isKnownPlace } from './known-place-store.ts'
import { addMail } from './mail-steps.ts'
import { inWords, noticeMail, type EventDetails, type Notice, type Told } from './mails.ts'

interface AccountEvent {
  /** In the log, at `info`. */
  message: string
  notice?: Notice
}

const accountEvents = {
  created: { message: 'account created' },
  arrived: { message: 'account moves in' },
  signedIn: { message: 'signed in' },
  appLetIn: { message: 'app let in' },
  handleChanged: {
    message: 'handle changed',
    notice: { subject: 'Your handle was changed', what: ({ handle }) => `The handle of your account is now ${handle}.`, remedies: ['password', 'account', 'operator'] },
  },
  emailChanged: {
    message: 'email address changed',
    notice: {
      subject: 'Your email address was changed',
      what: () => 'Your account has another email address now. This mail goes to the address that it had; the next ones go to the new one.',
      // A code to set a password would go to the new address.
      remedies: ['operator', 'account'],
    },
  },
  emailConfirmed: { message: 'email address confirmed' },
  passwordChanged: {
    message: 'password changed',
    notice: { subject: 'Your password was changed', what: () => 'Your account has a new password. What was signed in with the old one is signed out.', remedies: ['password', 'account', 'operator'] },
  },
  passwordReset: {
    message: 'password reset',
    notice: {
      subject: 'Your password was reset',
      what: () => 'A new password was set with a code that we had mailed to you. Every app and browser is signed out.',
      // Somebody else reads these mails.
      remedies: ['mailbox', 'password', 'operator'],
    },
  },
  appPasswordMade: {
    message: 'app password made',
    notice: { subject: 'An app password was made', what: ({ name }) => `There is a new app password${name === undefined ? '' : `, called "${name.replaceAll(/\p{Cc}+/gu, ' ')}"`}. Whoever has it can use your account.`, remedies: ['account', 'password', 'operator'] },
  },
  appPasswordRevoked: { message: 'app password revoked' },
  identityOperationSigned: { message: 'identity operation signed' },
  identityChanged: { message: 'identity changed' },
  deletionRequested: { message: 'deletion requested' },
  deactivated: { message: 'account deactivated' },
  deletionScheduled: {
    message: 'account deactivated and to be deleted',
    notice: {
      subject: 'Your account is to be deleted',
      what: ({ deleteAfter }) => `Your account is deactivated, and will be deleted after ${deleteAfter === undefined ? 'a time' : inWords(deleteAfter)}. To keep it, activate it again before.`,
      remedies: ['account', 'password', 'operator'],
    },
  },
  activated: { message: 'account activated' },
  deleted: { message: 'account deleted' },
  imported: { message: 'repository imported' },
} as const satisfies Record<string, AccountEvent>

/** No event of its own: it is told of a sign-in from a place where the account was never signed in. */
const signInNotice: Notice = {
  subject: 'New sign-in to your account',
  what: () => 'Somebody signed in to your account with its password, with an app or a browser, or from a network, that did not do so before.',
  remedies: ['password', 'account', 'operator'],
}

/** On whose request something happens; without a request, when the server does it by itself. */
export type By = Exchange | { ctx: Context }

interface Details extends EventDetails {
  means?: Means
  clientId?: string
  /** Where the mail goes, when it is not the address that the account has now. Not in the log. */
  to?: string | null
}

/** What somebody signed in with. */
export type Means = 'password' | 'app password' | 'password on a page'

type EventName = keyof typeof accountEvents
/** Events that the account holder is told by mail. */
type NoticedEvent = { [Name in EventName]: (typeof accountEvents)[Name] extends { notice: unknown } ? Name : never }[EventName]

/** Say that something has happened that the log alone is told. To be called when it is durable. */
export const announce = (by: By, event: Exclude<EventName, NoticedEvent>, did: Did, details: Details = {}): void => logEvent(by, event, did, details)

/** Say that something happens of which its holder is told by mail, in the transaction that makes it happen. */
export async function announceIn(tx: Tx, by: By, event: NoticedEvent, did: Did, details: Details = {}): Promise<void> {
  const { ctx } = by
  tx.afterCommit(() => logEvent(by, event, did, details))
  // Who has the address now is told: whoever takes an account over may give it another one in a moment.
  const to = details.to === undefined ? (await accountOf(tx, did))?.email : details.to
  if (!to) return
  const told = { ...details, at: ctx.clock.now(), origin: originFor(by, details) }
  // Each of them is told: a second change must not do away with what is told of the first.
  await ctx.steps.add(tx, noticeStep, { key: `${event} ${did} ${crypto.randomUUID()}`, did, payload: { event, to, told } })
}

const originFor = (by: By, { actor }: Details): Origin | null => (actor === undefined && 'request' in by ? originOf(by) : null)

function logEvent(by: By, event: EventName, did: Did, details: Details): void {
  const { actor, handle, means, clientId, deleteAfter } = details
  const origin = originFor(by, details)
  by.ctx.log.info(accountEvents[event].message, {
    // Said here: after a commit the log does not know whose request it was.
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

interface OrderedNotice {
  event: NoticedEvent
  to: string
  told: Told
}

/** Makes the mail out of what was ordered. */
export const noticeStep: StepKind<OrderedNotice> = {
  name: 'notice',
  // In the order in which things happened.
  concurrency: 1,
  maxSteps: 5000,
  maxTries: 10,
  firstWaitSecs: 1,
  maxWaitSecs: 60,
  async take(ctx, { did, payload: { event, to, told }, end }) {
    if (did === null || ctx.limits.charge({ name: 'accountNotice', key: `${event} ${did}` })?.allowed === false) return
    await ctx.db.transaction(async (tx) => {
      const account = await accountOf(tx, did)
      if ((await end(tx)) && account) await addNotice(ctx, tx, { ...account, email: to }, accountEvents[event].notice, told)
    })
  },
}

const addNotice = (ctx: Context, tx: Tx, account: Account & { email: string }, notice: Notice, told: Told): Promise<void> =>
  addMail(ctx, tx, { key: `notice ${account.did} ${crypto.randomUUID()}`, did: account.did, mail: noticeMail(ctx, account, notice, told) })

/**
 * Say that somebody has signed in. The holder is told by mail where the password of the account was given in a place
 * that is new: another app or browser, or another network. A browser that was signed in already is none, wherever it is
 * now; an app password is none, for its making was told. A place counts as known once its mail is on its way, so what
 * the bound leaves out is told at the next sign-in from there.
 */
export function announceSignIn(exchange: Exchange, did: Did, means: Means, { isKnownBrowser = false } = {}): void {
  const { ctx } = exchange
  announce(exchange, 'signedIn', did, { means })
  if (means === 'app password') return
  const origin = originOf(exchange)
  ctx.background.run('mail about a sign-in', async () => {
    if (await isKnownPlace(ctx.db, did, origin)) return
    if (!isKnownBrowser && ctx.limits.charge({ name: 'signInNotice', key: did })?.allowed === false) return
    await ctx.db.transaction(async (tx) => {
      if ((await insertPlace(tx, did, origin)) === 0) return
      await forgetOldPlaces(tx, did)
      const account = await accountOf(tx, did)
      const email = account?.email
      if (!isKnownBrowser && account && email) await addNotice(ctx, tx, { ...account, email }, signInNotice, { at: origin.openedAt, origin })
    })
  })
}
