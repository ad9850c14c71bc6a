/**
 * The mails to account holders, in plain text and in their language. A code is alone on its line, so that it is easy to
 * copy. A mail is composed in the transaction that orders it. Call `loadMailTexts` before the transaction: the first
 * mail in a language has to load the texts, and other writes would wait for that.
 */
import { invalidRequest } from '../../../http/errors.ts'
import { layoutTexts } from '../../../http/layout-texts.ts'
import { programPhrase } from '../../../http/program-words.ts'
import { textIn, type Phrase, type Value, type Wording } from '../../../http/html.ts'
import type { Origin } from '../../../http/origin.ts'
import { listPhrase, percentPhrase, sizePhrase, timePhrase } from '../../../http/texts.ts'
import type { Config } from '../../../platform/configuration/config.ts'
import type { Context } from '../../../platform/context.ts'
import type { Mail } from '../../../platform/network/mailer.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import type { Language } from '../../../protocol/languages.ts'
import type { ForeignChange } from '../../../protocol/plc-changes.ts'
import { knownProgramOf } from '../../../protocol/user-agent.ts'
import type { Account } from '../accounts/accounts.ts'
import type { CodePurpose } from './mailed-code-store.ts'
import { CODE_TTL_SECS } from './mailed-codes.ts'
import { mailTexts as texts } from './mail-texts.ts'
import { remedyTexts as remedyWords } from './remedy-texts.ts'

type Configured = Pick<Context, 'config'>
type Addressee = Pick<Account, 'handle' | 'did' | 'emailConfirmedAt' | 'hasPassword' | 'language'> & { email: string }

/** Load the texts from which a mail to the account is composed. `more` has one text from each further table. */
export async function loadMailTexts(
  { config }: Configured,
  recipient: Pick<Addressee, 'language'> | null,
  ...more: readonly Phrase[]
): Promise<void> {
  // `programPhrase` takes its words from the texts of pages.
  const each = [texts.askOperator, remedyWords.ifYou, layoutTexts.ownWallet, ...more]
  await textIn(each, recipient?.language ?? config.pages.language)
}

/** Returns a mail of these paragraphs; absent ones are left out. `language` is null if the recipient chose none. */
async function mailOf(
  { config }: Configured,
  { email, language }: { email: string; language: Language | null },
  subject: Wording,
  paragraphs: readonly (Value | false)[],
): Promise<Mail> {
  const tongue = language ?? config.pages.language
  const written = await Promise.all(paragraphs.map((paragraph) => (paragraph ? textIn(paragraph, tongue) : '')))
  const text = `${written.filter((paragraph) => paragraph !== '').join('\n\n')}\n`
  return { to: email, subject: await textIn(subject, tongue), text }
}

const subjectOn = (config: Config, subject: Wording): Wording => texts.subjectOn({ subject, host: hostOf(config) })
const hostOf = ({ publicUrl }: Config): string => new URL(publicUrl).host
const accountPage = ({ publicUrl }: Config): string => `${publicUrl}/account`
const nameOf = ({ handle, did }: Pick<Addressee, 'handle' | 'did'>): string => handle ?? did
const about = (config: Config, account: Addressee): Wording =>
  texts.about({ account: nameOf(account), host: hostOf(config) })
const operatorContact = ({ contact: { email } }: Config): Wording =>
  email === null ? texts.askOperator : texts.writeOperator({ address: email })

// Codes

interface CodeText {
  subject: Wording
  use(values: { minutes: number }): Wording
  /** What to do if someone else asked for the code: for an account with a password, and for one without. */
  warning: Wording
  warningWithoutPassword?(values: { page: string }): Wording
}

const codeTexts: Record<CodePurpose, CodeText> = {
  confirm_email: { subject: texts.confirmSubject, use: texts.confirmUse, warning: texts.confirmIgnore },
  update_email: {
    subject: texts.updateSubject,
    use: texts.updateUse,
    warning: texts.intruder,
    warningWithoutPassword: texts.intruderWithoutPassword,
  },
  reset_password: { subject: texts.resetSubject, use: texts.resetUse, warning: texts.resetIgnore },
  delete_account: {
    subject: texts.deleteSubject,
    use: texts.deleteUse,
    warning: texts.intruder,
    warningWithoutPassword: texts.intruderWithoutPassword,
  },
  plc_operation: {
    subject: texts.identitySubject,
    use: texts.identityUse,
    warning: texts.identityIntruder,
    warningWithoutPassword: texts.identityIntruderWithoutPassword,
  },
  sign_in: {
    subject: texts.signInSubject,
    use: texts.signInUse,
    warning: texts.signInIntruder,
    warningWithoutPassword: texts.signInIntruderWithoutPassword,
  },
}

/** Returns the account's email address. Throws `InvalidRequest` if it has none. */
export function addressOf({ email }: Account): string {
  if (email === null) throw invalidRequest('account does not have an email address')
  return email
}

export function codeMail(
  ctx: Configured,
  account: Addressee,
  purpose: CodePurpose,
  code: string,
  told: Told,
): Promise<Mail> {
  const { config } = ctx
  const { subject, use, warning, warningWithoutPassword } = codeTexts[purpose]
  const page = accountPage(config)
  return mailOf(ctx, account, subjectOn(config, subject), [
    about(config, account),
    use({ minutes: CODE_TTL_SECS / 60 }),
    code,
    account.hasPassword ? warning : (warningWithoutPassword?.({ page }) ?? warning),
    circumstances(purpose === 'reset_password' ? withoutClaims(told) : sayable(told, account)),
    texts.accountPage({ page }),
  ])
}

/** The mail with a code that opens the release of a recovery share. A stranger may have asked for it. */
export function recoveryCodeMail(ctx: Configured, account: Addressee, code: string, told: Told): Promise<Mail> {
  const { config } = ctx
  return mailOf(ctx, account, subjectOn(config, texts.recoverySubject), [
    about(config, account),
    texts.recoveryUse,
    lines([texts.recoveryCode, code]),
    texts.recoveryIgnore,
    circumstances(withoutClaims(told)),
    texts.accountPage({ page: accountPage(config) }),
  ])
}

/** The mail to an account holder who gets archives regularly: a new one is ready. */
export const archiveReadyMail = (ctx: Configured, account: Addressee, bytes: number): Promise<Mail> =>
  mailOf(ctx, account, subjectOn(ctx.config, texts.archiveSubject), [
    about(ctx.config, account),
    texts.archiveReady({ size: sizePhrase(bytes), page: accountPage(ctx.config) }),
  ])

/** The mail about a renamed server, to a holder whose identity this server cannot change itself. */
export function hostRenamedMail(ctx: Configured, account: Addressee, { isPlc }: { isPlc: boolean }): Promise<Mail> {
  const { config } = ctx
  return mailOf(ctx, account, subjectOn(config, texts.renamedSubject), [
    about(config, account),
    texts.renamed({ former: listPhrase(config.formerUrls) }),
    config.publicUrl,
    isPlc ? texts.renamedPlc : texts.renamedWeb,
    texts.renamedApps,
    texts.accountPage({ page: accountPage(config) }),
  ])
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
  /** A change of the identity by others. Not logged. */
  change?: ForeignChange
}

/** Details of an event with its time and place; `origin` is null if an operator caused the event. */
export interface Told extends EventDetails {
  at: Millis
  origin: Origin | null
}

export interface Notice {
  subject: Phrase
  what(details: EventDetails): Phrase
  /** What to do if it was someone else, most urgent first; empty if the mail reports what someone else did. */
  remedies: readonly (keyof typeof remedies)[]
}

const remedies = {
  noCode: () => remedyWords.doNoCode,
  cancelRecovery: () => remedyWords.doCancelRecovery,
  newKeys: () => remedyWords.doNewKeys,
  undoChange: () => remedyWords.doUndoChange,
  mailbox: () => remedyWords.doMailbox,
  // An intruder in an account without a password used a key of its identity, or a device that is signed in.
  password: ({ publicUrl }: Config, { hasPassword }: Addressee) =>
    hasPassword ? remedyWords.doPassword({ page: `${publicUrl}/account/reset-password` }) : remedyWords.doReplaceKey,
  // A new password alone does not help: the intruder holds a key, and with it can sign in again and can move the
  // account away.
  identityKey: (_config: Config, { hasPassword }: Addressee) =>
    hasPassword ? remedyWords.doIdentityKeyDespitePassword : remedyWords.doIdentityKey,
  account: (config: Config) => remedyWords.doAccount({ page: accountPage(config) }),
  operator: operatorContact,
}

export function noticeMail(
  ctx: Configured,
  account: Addressee,
  { subject, what, remedies: wanted }: Notice,
  told: Told,
): Promise<Mail> {
  const { config } = ctx
  const steps = wanted.map((remedy) => remedies[remedy](config, account))
  const said = sayable(told, account)
  return mailOf(ctx, account, subjectOn(config, subject), [
    about(config, account),
    what(said),
    circumstances(said),
    steps.length > 0 && remedyWords.ifYou,
    lines(steps, '- '),
  ])
}

/** What a quota counts. */
export type Stored = 'records' | 'blobs'

/** To one digit after the point. */
const megabytes = (bytes: number): number => Math.round(bytes / 1e5) / 10

const storedTexts: Record<
  Stored,
  { full(values: { used: number; quota: number }): Wording; amount(count: number): number }
> = {
  records: { full: texts.recordsFull, amount: (count) => count },
  blobs: { full: texts.blobsFull, amount: megabytes },
}

export function quotaMail(
  ctx: Configured,
  account: Addressee,
  { what, used, quota }: { what: Stored; used: number; quota: number },
): Promise<Mail> {
  const { config } = ctx
  const { full, amount } = storedTexts[what]
  const page = accountPage(config)
  const address = config.contact.email
  const percent = percentPhrase(Math.floor((used / quota) * 100))
  return mailOf(ctx, account, subjectOn(config, texts.quotaSubject({ percent })), [
    about(config, account),
    full({ used: amount(used), quota: amount(quota) }),
    address === null ? texts.quotaPage({ page }) : texts.quotaPageWithAddress({ page, address }),
  ])
}

/**
 * Mail to an unconfirmed address contains no text that others wrote, because strangers could send messages through it.
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

const circumstances = ({ at, origin, actor }: Told): Value =>
  lines([
    texts.when({ time: timePhrase(at) }),
    actor !== undefined && texts.byOperator,
    origin &&
      (origin.openedWith === null
        ? texts.unknownProgram
        : texts.program({ program: programPhrase(origin.openedWith) })),
    origin?.openedFrom && texts.network({ network: origin.openedFrom }),
  ])

/** Joins the non-empty lines by line feeds. */
const lines = (all: readonly (Wording | false | null | undefined)[], mark = ''): Value =>
  all.filter((line) => !!line).map((line, i) => [i === 0 ? mark : `\n${mark}`, line] as Value)

/** A decision of moderators, as the mail tells the holder of an account. */
export interface ToldDecision {
  caseSeq: number
  /** A sentence: what was done. */
  done: Wording
  /** A DID, the URI of a record, or the CID of a blob. */
  subject: string
  /** In the moderators' own words. */
  reason: string
  /** Where the holder can answer once, and until when; null if it is final. */
  appeal: { url: string; until: Millis } | null
}

/** The mail about a decision of moderators, or about their answer to an appeal. */
export function decisionMail(
  ctx: Configured,
  account: Addressee,
  { caseSeq, done, subject, reason, appeal }: ToldDecision,
): Promise<Mail> {
  const { config } = ctx
  const seq = String(caseSeq)
  return mailOf(ctx, account, subjectOn(config, texts.decisionSubject({ seq })), [
    about(config, account),
    texts.decided({ done }),
    texts.concerns({ subject }),
    texts.reason,
    reason,
    appeal && texts.appeal({ time: timePhrase(appeal.until) }),
    appeal && appeal.url,
    texts.caseNumber({ seq, contact: operatorContact(config) }),
  ])
}

/** The mail to a person on the waiting list who is invited. `code` is null if the sign-up takes no invite code. */
export function invitedMail(
  ctx: Configured,
  { email, language }: { email: string; language: Language | null },
  code: string | null,
): Promise<Mail> {
  const { config } = ctx
  const host = hostOf(config)
  return mailOf(ctx, { email, language }, texts.invitedSubject({ host }), [
    texts.invited({ host }),
    code !== null && texts.inviteCode,
    code !== null && code,
    texts.inviteUse({ page: `${config.publicUrl}/account/sign-up` }),
  ])
}

/** The mail to the holder of an address that someone tried to use for another account. */
export function addressWantedMail(ctx: Configured, account: Account & { email: string }): Promise<Mail> {
  const { config } = ctx
  const page = accountPage(config)
  return mailOf(ctx, account, subjectOn(config, texts.wantedSubject), [
    texts.wanted({ host: hostOf(config), account: nameOf(account) }),
    account.hasPassword ? texts.wantedPassword({ page }) : texts.wantedWallet({ page }),
  ])
}
