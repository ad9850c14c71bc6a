/** The mails to account holders, in plain text. A code is alone on its line, so that it is easy to copy. */
import { timeInWords } from '../../../base/time-words.ts'
import { invalidRequest } from '../../../http/errors.ts'
import type { Origin } from '../../../http/origin.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import type { Context } from '../../../platform/context.ts'
import type { Mail } from '../../../platform/network/mailer.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import type { ForeignChange } from '../../../protocol/plc-changes.ts'
import { knownProgramOf } from '../../../protocol/user-agent.ts'
import type { Account } from '../accounts/accounts.ts'
import type { CodePurpose } from './mailed-code-store.ts'

interface Text {
  subject: string
  /** Completes the sentence "Use this code to …". */
  purpose: string
  warning(keepOut: string): string
}

const texts: Record<CodePurpose, Text> = {
  confirm_email: {
    subject: 'Confirm your email address',
    purpose: 'confirm that this address is yours',
    warning: () =>
      'If you did not request it, you can ignore this email: someone probably entered your address by mistake.',
  },
  update_email: {
    subject: 'Email address change requested',
    purpose: 'change the address of your account',
    warning: (keepOut) => `If you did not request it, someone else is signed in to your account: ${keepOut}.`,
  },
  reset_password: {
    subject: 'Password reset requested',
    purpose: 'set a new password',
    warning: () =>
      'A new password signs out every app and browser. If you did not request it, you can ignore this email. Do not share the code.',
  },
  delete_account: {
    subject: 'Account deletion requested',
    purpose: 'delete your account permanently',
    warning: (keepOut) => `If you did not request it, someone else is signed in to your account: ${keepOut}.`,
  },
  plc_operation: {
    subject: 'Identity change requested',
    purpose: 'change your identity, for example to move your account to another server',
    warning: (keepOut) => `Anyone with this code can take over your account. If you did not request it, ${keepOut}.`,
  },
  sign_in: {
    subject: 'Sign-in code',
    purpose: 'sign in to your account',
    warning: (keepOut) =>
      `Do not share the code. If you are not signing in, someone else knows your password: ${keepOut}.`,
  },
}

/** Completes a sentence: how to lock out an intruder who is signed in. */
const keepOut = ({ publicUrl }: Config, { hasPassword }: Addressee): string =>
  hasPassword ? 'change your password' : `end every session that you do not recognise at ${publicUrl}/account`

/** Returns the account's email address. Throws `InvalidRequest` if it has none. */
export function addressOf({ email }: Account): string {
  if (email === null) throw invalidRequest('account does not have an email address')
  return email
}

type Addressee = Pick<Account, 'handle' | 'did' | 'emailConfirmedAt' | 'hasPassword'> & { email: string }

export function codeMail(
  { config }: Pick<Context, 'config'>,
  account: Addressee,
  purpose: CodePurpose,
  code: string,
  told: Told,
): Mail {
  const { host } = new URL(config.publicUrl)
  const { subject, purpose: use, warning } = texts[purpose]
  const said = purpose === 'reset_password' ? withoutClaims(told) : sayable(told, account)
  const text = `${about(account, host)}\n\nUse this code to ${use}. It works once, within 15 minutes:\n\n${code}\n\n${warning(keepOut(config, account))}\n\n${circumstances(said)}\n\nYour account: ${config.publicUrl}/account\n`
  return { to: account.email, subject: `${subject} (${host})`, text }
}

/** The mail with a code that opens the release of a recovery share. A stranger may have asked for it. */
export function recoveryCodeMail(
  { config }: Pick<Context, 'config'>,
  account: Addressee,
  code: string,
  told: Told,
): Mail {
  const { host } = new URL(config.publicUrl)
  const text = `${about(account, host)}\n\nSomeone requested recovery of this account. With this code, your wallet requests the share of your recovery key that this server holds. It works once, within an hour.\n\nRecovery code:\n${code}\n\nIf you did not request it, you can ignore this email. Do not share the code.\n\n${circumstances(withoutClaims(told))}\n\nYour account: ${config.publicUrl}/account\n`
  return { to: account.email, subject: `Account recovery requested (${host})`, text }
}

/** The mail to an account holder who has archives made regularly. */
export function archiveReadyMail({ config }: Pick<Context, 'config'>, account: Addressee, bytes: number): Mail {
  const { host } = new URL(config.publicUrl)
  const size = `${Math.ceil(bytes / 1024 ** 2)} MiB`
  const text = `${about(account, host)}\n\nA new archive of your account is ready (${size}). You find it under "Download your data" at ${config.publicUrl}/account, where you can also change how often one is made. The server keeps the newest ones only.\n`
  return { to: account.email, subject: `An archive of your account is ready (${host})`, text }
}

/** The mail to who alone can change their identity, after the server was renamed. */
export function hostRenamedMail(
  { config }: Pick<Context, 'config'>,
  account: Addressee,
  { isPlc }: { isPlc: boolean },
): Mail {
  const { publicUrl, formerUrls } = config
  const { host } = new URL(publicUrl)
  const task = isPlc
    ? 'In your wallet, sign an operation that changes the endpoint of the service atproto_pds to this address.'
    : 'In the document that you publish for your did:web, change the endpoint of the service #atproto_pds to this address.'
  const text = `${about(account, host)}\n\nThe server of your account has another name. It was ${formerUrls.join(' and ')}, and is now:\n\n${publicUrl}\n\nYour identity still names the former address, and only you can change that. ${task}\n\nYour account works at both addresses for now. Apps find it at the new one once your identity names it, and ask you to sign in again.\n\nYour account: ${publicUrl}/account\n`
  return { to: account.email, subject: `The server of your account has another name (${host})`, text }
}

// Notices

/** The details of an event that its mail mentions. */
export interface EventDetails {
  /** The operator, as named in the audit log; undefined if the account holder acted. */
  actor?: string
  handle?: string
  /** Whether the wallet that holds the keys of the identity has to publish the handle. Not logged. */
  unpublished?: boolean
  deleteAfter?: Millis
  /** From when a recovery share can be collected. */
  collectableAt?: Millis
  /** A trusted provider of agents, as configured. Not logged. */
  issuer?: string
  /** Name of an app password, or what an agent calls itself. Not logged, because others chose it. */
  name?: string
  /** What others have changed in the identity. Not logged. */
  change?: ForeignChange
}

/** When something happened, and from where; `origin` is null if an operator did it. */
export interface Told extends EventDetails {
  at: Millis
  origin: Origin | null
}

export interface Notice {
  subject: string
  what(details: EventDetails): string
  /** What the holder should do if it was someone else, most urgent first. */
  /** What to do if it was someone else; none if the mail is about what someone else did. */
  remedies: readonly (keyof typeof remedies)[]
}

const remedies = {
  noCode: () =>
    'Do not enter a code that you did not request, even if someone sends it to you. Without the code, the program gets no access.',
  cancelRecovery: () => 'Cancel the release now, in your wallet on a device that is still signed in.',
  newKeys: () =>
    'If someone else may have another of your shares, replace the keys and shares of your identity now, in your wallet.',
  undoChange: () =>
    'Use a higher key of your identity now to sign an operation that follows the one before this change: that undoes it. Someone else has a key of your identity, so leave that key out.',
  mailbox: () => 'Someone else can read your mail, so change the password of your mailbox first.',
  // An account without a password was entered by a key of its identity, or from a place that is signed in.
  password: ({ publicUrl }: Config, { hasPassword }: Addressee) =>
    hasPassword
      ? `Set a new password at ${publicUrl}/account/reset-password. That signs out every app and browser.`
      : 'If someone else may have a key of your identity, replace that key in your wallet.',
  // A new password does not help: the holder of the key can sign in again, and can move the account away.
  identityKey: (_config: Config, { hasPassword }: Addressee) =>
    `Replace the key in your wallet${hasPassword ? ': a new password does not lock out someone who has the key' : ''}.`,
  account: ({ publicUrl }: Config) =>
    `Open ${publicUrl}/account to check your sessions and settings, and end every session that you do not recognise.`,
  operator: ({ contact }: Config) =>
    `Contact the operator of this server${contact.email === null ? '' : `: ${contact.email}`}.`,
}

export function noticeMail(
  { config }: Pick<Context, 'config'>,
  account: Addressee,
  { subject, what, remedies: wanted }: Notice,
  told: Told,
): Mail {
  const { host } = new URL(config.publicUrl)
  const steps = wanted.map((remedy) => `- ${remedies[remedy](config, account)}`).join('\n')
  const said = sayable(told, account)
  const closing =
    wanted.length === 0 ? '' : `\nIf this was you, you can ignore this email. If it was not you:\n\n${steps}\n`
  const text = `${about(account, host)}\n\n${what(said)}\n\n${circumstances(said)}\n${closing}`
  return { to: account.email, subject: `${subject} (${host})`, text }
}

/** What a quota counts. */
export type Stored = 'records' | 'blobs'

const storedWords: Record<Stored, { name: string; amount(count: number): string; above: string }> = {
  records: {
    name: 'records',
    amount: (count) => count.toLocaleString('en'),
    above: 'Above that, new posts, likes and follows are refused. Those that you delete make room at once.',
  },
  blobs: {
    name: 'MB of media',
    amount: (bytes) => (bytes / 1e6).toLocaleString('en', { maximumFractionDigits: 1 }),
    above: 'Above that, uploads are refused. What no post shows any more makes room after some hours.',
  },
}

export function quotaMail(
  { config }: Pick<Context, 'config'>,
  account: Addressee,
  { what, used, quota }: { what: Stored; used: number; quota: number },
): Mail {
  const { publicUrl, contact } = config
  const { host } = new URL(publicUrl)
  const { name, amount, above } = storedWords[what]
  const text = `${about(account, host)}

It stores ${amount(used)} of at most ${amount(quota)} ${name}. ${above}

${publicUrl}/account shows how much you store. For a larger quota, contact the operator of this server${contact.email === null ? '' : `: ${contact.email}`}.
`
  return { to: account.email, subject: `Your account is ${Math.floor((used / quota) * 100)} % full (${host})`, text }
}

const about = ({ handle, did }: Addressee, host: string) => `This is about the account ${handle ?? did} at ${host}.`

/**
 * Until an address is confirmed, its mail contains no text that others wrote: strangers could send messages through it.
 */
const sayable = (told: Told, { emailConfirmedAt }: Addressee): Told =>
  emailConfirmedAt === null ? withoutClaims(told) : told

function withoutClaims(told: Told): Told {
  const { origin } = told
  const openedWith = origin?.openedWith ?? null
  return {
    ...told,
    name: undefined,
    origin: origin && { ...origin, openedWith: openedWith && knownProgramOf(openedWith) },
  }
}

const circumstances = ({ at, origin, actor }: Told): string =>
  [
    `When: ${timeInWords(at)}`,
    actor !== undefined && 'By: the operator of this server',
    origin && `With: ${origin.openedWith ?? 'an unknown app'}`,
    origin?.openedFrom && `From: the network ${origin.openedFrom}`,
  ]
    .filter(Boolean)
    .join('\n')

/** What moderators tell the holder of an account. All of it is their own words or names of things. */
export interface ToldDecision {
  caseSeq: number
  /** A sentence: what was done. */
  done: string
  /** A DID, the URI of a record, or the CID of a blob. */
  subject: string
  reason: string
  /** Where the holder can answer once, and until when; null if it is final. */
  appeal: { url: string; until: Millis } | null
}

/** The mail about a decision of moderators, or about their answer to an appeal. */
export function decisionMail(
  { config }: Pick<Context, 'config'>,
  account: Addressee,
  { caseSeq, done, subject, reason, appeal }: ToldDecision,
): Mail {
  const { host } = new URL(config.publicUrl)
  const way =
    appeal === null
      ? ''
      : `\n\nIf you think that this is wrong, you can answer once, until ${timeInWords(appeal.until)}. Another person may then look at it again:\n\n${appeal.url}`
  const text = `${about(account, host)}\n\nThe moderators of this server have decided about it. ${done}\n\nIt concerns: ${subject}\n\nTheir reason:\n\n${reason}${way}\n\nThis is case ${caseSeq}. ${remedies.operator(config)}\n`
  return { to: account.email, subject: `Decision of the moderators, case ${caseSeq} (${host})`, text }
}

/** The mail to the holder of an address that someone tried to use for another account. */
/** To a person on the waiting list. `code` is null if sign-up takes none. */
export function invitedMail({ config }: Pick<Context, 'config'>, email: string, code: string | null): Mail {
  const { host } = new URL(config.publicUrl)
  const withCode = code === null ? '' : `Your invite code, which is good for one account, is:\n\n${code}\n\n`
  const text = `There is room for you at ${host}, where you asked for an account.\n\n${withCode}Sign up at ${config.publicUrl}/account/sign-up. If you did not ask for an account, you can ignore this email.\n`
  return { to: email, subject: `Your account at ${host}`, text }
}

export function addressWantedMail({ config }: Pick<Context, 'config'>, account: Account & { email: string }): Mail {
  const { host } = new URL(config.publicUrl)
  const { handle, did, email, hasPassword } = account
  const way = hasPassword ? ', where you can also set a new password if you have forgotten yours' : ' with your wallet'
  const text = `Someone tried to use this address for another account at ${host}. It belongs to your account ${handle ?? did}, so the request was refused.\n\nIf this was you, sign in at ${config.publicUrl}/account${way}. If it was not you, you can ignore this email. We did not reveal that you have an account.\n`
  return { to: email, subject: `You already have an account (${host})`, text }
}
