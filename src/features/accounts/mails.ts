/** What the service writes to account holders. Plain text; a code stands alone on its line, so that it can be copied. */
import { invalidRequest, serviceUnavailable } from '../../http/errors.ts'
import type { Context } from '../../platform/context.ts'
import type { Mail } from '../../platform/network/mailer.ts'
import type { Account } from './account-store.ts'
import type { CodePurpose } from './mailed-code-store.ts'

interface Text {
  subject: string
  /** What the code is for, as the end of "Use this code to …". */
  purpose: string
  warning: string
}

const texts: Record<CodePurpose, Text> = {
  confirm_email: {
    subject: 'Email Confirmation',
    purpose: 'confirm that this address is yours',
    warning: 'If you did not ask for it, somebody gave your address by mistake, and you need not do anything.',
  },
  update_email: {
    subject: 'Email Update Requested',
    purpose: 'change the address of your account',
    warning: 'If you did not ask for it, somebody else is logged in to your account: change your password.',
  },
  reset_password: {
    subject: 'Password Reset Requested',
    purpose: 'set a new password',
    warning: 'A new password signs out every app and browser. If you did not ask for it, you need not do anything; do not give the code to anybody.',
  },
  delete_account: {
    subject: 'Account Deletion Requested',
    purpose: 'delete your account, for good',
    warning: 'If you did not ask for it, somebody else is logged in to your account: change your password.',
  },
  plc_operation: {
    subject: 'PLC Update Operation Requested',
    purpose: 'change your identity, for example to move your account to another server',
    warning: 'Whoever has the code can take your account away. If you did not ask for it, change your password.',
  },
}

/** Addresses under it stand for accounts that nobody reads mail for. */
const NOBODYS_DOMAIN = '.invalid'

/** The account's address. Refuses where there is none. */
export function addressOf({ email }: Account): string {
  if (email === null) throw invalidRequest('account does not have an email address')
  return email
}

export function codeMail({ config }: Pick<Context, 'config'>, { handle, did, email }: Account & { email: string }, purpose: CodePurpose, code: string): Mail {
  const { host } = new URL(config.publicUrl)
  const { subject, purpose: use, warning } = texts[purpose]
  const text = `This is about the account ${handle ?? did} at ${host}.\n\nUse this code to ${use}. It is good once, for 15 minutes:\n\n${code}\n\n${warning}\n`
  return { to: email, subject: `${subject} (${host})`, text }
}

/** To whoever has the address that somebody wanted to sign up with. */
export function signUpTriedMail({ config }: Pick<Context, 'config'>, { handle, did, email }: Account & { email: string }): Mail {
  const { host } = new URL(config.publicUrl)
  const text = `Somebody wanted to make an account at ${host} with this address. It belongs to your account ${handle ?? did}, so none was made.\n\nIf that was you: sign in at ${config.publicUrl}/account, where you can also set a new password if you have forgotten yours. If it was not you, you need not do anything; nobody was told that the address is yours.\n`
  return { to: email, subject: `You have an account already (${host})`, text }
}

/** Resolves when the provider has taken the message. Refuses with 503 when it does not. */
export async function sendMail({ mailer, log }: Pick<Context, 'mailer' | 'log'>, mail: Mail): Promise<void> {
  if (mail.to.endsWith(NOBODYS_DOMAIN)) return
  try {
    await mailer.send(mail)
  } catch (error) {
    log.error('mail not sent', { subject: mail.subject, error })
    throw serviceUnavailable('The mail could not be sent. Please try again later.')
  }
}
