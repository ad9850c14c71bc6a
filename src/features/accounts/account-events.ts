/**
 * What happens to accounts, said in one place: each event with its line in the log and, where it matters to the account
 * holder, the mail that says what to do if it was not them. Whoever makes it happen names it once, when it is durable.
 *
 * Mail is a step that is added behind the answer, and fails nobody. Each account gets a bounded number for each kind of event, so that one
 * kind cannot use up the mail of another.
 */
import type { Exchange } from '../../http/endpoint.ts'
import { originOf } from '../../http/origin.ts'
import type { Context } from '../../platform/context.ts'
import { wireTime, type Did } from '../../protocol/identifiers.ts'
import { accountOf } from './account-store.ts'
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

/** Say that something has happened. To be called when it is durable; returns at once. */
export function announce(by: By, event: keyof typeof accountEvents, did: Did, details: Details = {}): void {
  const { ctx } = by
  const { message, notice }: AccountEvent = accountEvents[event]
  const { actor, handle, means, clientId, deleteAfter } = details
  const origin = actor === undefined && 'request' in by ? originOf(by) : null
  ctx.log.info(message, {
    did,
    actor,
    handle,
    means,
    clientId,
    deleteAfter: deleteAfter === undefined ? null : wireTime(deleteAfter),
    program: origin?.openedWith,
    network: origin?.openedFrom,
  })
  if (!notice || details.to === null) return
  const told = { ...details, at: ctx.clock.now(), origin }
  ctx.background.run('mail about an account', async () => {
    if (ctx.limits.charge({ name: 'accountNotice', key: `${event} ${did}` })?.allowed !== false) await mailNotice(ctx, did, notice, told)
  })
}

async function mailNotice(ctx: Context, did: Did, notice: Notice, { to, ...told }: Told & Pick<Details, 'to'>): Promise<void> {
  const account = await accountOf(ctx.db, did)
  const email = to ?? account?.email
  if (!account || !email) return
  const mail = noticeMail(ctx, { ...account, email }, notice, told)
  // Each of them is sent: a second change must not do away with what is told of the first.
  await ctx.db.transaction((tx) => addMail(ctx, tx, { key: `notice ${did} ${crypto.randomUUID()}`, did, mail }))
}

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
    const isNew = (await insertPlace(ctx.db, did, origin)) > 0
    if (!isNew) return
    await forgetOldPlaces(ctx.db, did)
    if (!isKnownBrowser) await mailNotice(ctx, did, signInNotice, { at: origin.openedAt, origin })
  })
}
