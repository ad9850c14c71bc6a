/**
 * Translates refusals into words for the person who filled in a form: what happened, where, and what to do next.
 *
 * The messages of refusals are for programs, and clients match on some of them. Only this file rephrases them.
 */
import { isStorageOutage, refusalOf, type Refusal } from '../../../http/errors.ts'
import { MIN_PASSWORD_CHARS } from '../../identity/passwords/passwords.ts'

export interface Fault {
  message: string
  /** Name of the form field that has to be changed. */
  field: string | null
  status: number
}

export const faultAt = (field: string | null, message: string, status = 400): Fault => ({ field, message, status })

/**
 * For a form with a token that no longer belongs to the browser. It is shown again, with the accounts that are signed
 * in now.
 */
export const signedInElsewhere = faultAt(
  null,
  'You have signed in or out in another tab since this page was shown. Please check the account, then decide again.',
  403,
)

type Row = [start: string, field: string | null, message: string]

/** By the start of the refusal's message. */
const byMessage: readonly Row[] = [
  [
    'Input/handle must be',
    'handle',
    'A handle consists of letters, digits and hyphens, and does not begin or end with a hyphen.',
  ],
  ['Handle TLD', 'handle', 'Handles cannot have this ending. Please choose another one.'],
  [
    'Inappropriate language',
    'handle',
    'This handle contains a word that is not allowed here. Please choose another one.',
  ],
  [
    'Invalid characters in handle',
    'handle',
    'Under our domain, a handle consists of letters, digits and hyphens, without dots.',
  ],
  ['Handle too short', 'handle', 'This handle is too short. Please use at least three characters.'],
  ['Handle too long', 'handle', 'This handle is too long. Please choose a shorter one.'],
  ['Reserved handle', 'handle', 'This handle is reserved. Please choose another one.'],
  ['Handle already taken', 'handle', 'This handle is already taken. Please choose another one.'],
  [
    'Handle or email already taken',
    'handle',
    'This handle or this email address is already taken. Please choose another handle, or sign in if you have an account.',
  ],
  [
    'Not a supported handle domain',
    'handle',
    'A new account gets a handle under our own domain. Once you have an account, you can change to your own domain.',
  ],
  [
    'External handle did not resolve',
    'handle',
    'This domain does not point to your account yet. Publish the record or the file below, then check again.',
  ],
  [
    'DID is not properly configured',
    'handle',
    'Your DID document does not name this handle. Please add it there first, then try again.',
  ],
  [
    'The sign-up took too long',
    null,
    'This took too long, or another attempt was made in the meantime. Please try to sign in. If you cannot, sign up again.',
  ],
  ['Email is required', 'email', 'Please enter your email address.'],
  [
    'This email address is already in use',
    'email',
    'This email address belongs to another account here. Please use another one.',
  ],
  [
    'This email address is not supported',
    'email',
    'This email address cannot be used. Please check it for typing mistakes, or use another one. If it already has an account here, we have sent an email to it.',
  ],
  ['A password is required', 'password', 'Please choose a password.'],
  [
    'Password too short',
    'password',
    `This password is too short. Please use at least ${MIN_PASSWORD_CHARS} characters.`,
  ],
  ['Password too long', 'password', 'This password is too long. Please choose a shorter one.'],
  ['Invalid password length', 'password', 'This password is too long. Please choose a shorter one.'],
  ['Invalid password', 'current', 'That is not your current password. App passwords do not work here.'],
  [
    'The recovery key is not',
    'wallet_key',
    'This is not the public key of a wallet. It begins with did:key:z and is about sixty characters long.',
  ],
  ['No invite code', 'invite_code', 'Signing up here requires an invite code. Please enter yours.'],
  ['The name must not be blank', 'name', 'Please enter a name of at most 255 characters.'],
  [
    'An app password with that name',
    'name',
    'You already have an app password with this name. Please choose another name.',
  ],
  [
    'The account has reached the maximum number of app passwords',
    null,
    'You have reached the maximum number of app passwords. Please revoke one that you no longer use.',
  ],
  ['expiresAt must be', 'ends', 'Please choose a day that has not passed.'],
  [
    'scope ',
    'scope',
    'One of these scopes is not known, or only the account itself may have it. Please correct or remove it.',
  ],
  ['invalid email', null, 'Your address was changed since this page was shown. Please open the page again.'],
  ['account does not have an email address', 'email', 'Your account has no email address. Please add one first.'],
  [
    'There is no document to serve',
    null,
    'Your domain publishes no document that could be served here. Publish it there first, then try again.',
  ],
  [
    'Only a did:web without a path',
    null,
    'Only an identity that is a whole domain, without a path, can be served here.',
  ],
  [
    'Repo already exists',
    null,
    'Your account is here already. If your move has begun, sign in here with the handle and the password that you chose.',
  ],
  ['Could not resolve DID', null, 'Your identity cannot be read at the moment. Please try again later.'],
  [
    'Server rotation key not included',
    null,
    'Your identity is not under the control of this server. If you have moved to another server, sign in there.',
  ],
  [
    'DID document atproto_pds service endpoint',
    null,
    'Your identity names another server. If you have moved there, sign in there.',
  ],
  [
    'DID document verification method',
    null,
    'Your identity names a signing key that this server does not hold. The holder of your recovery key can correct that.',
  ],
  [
    'A sign in code has been sent',
    'factor_code',
    'Your account here asks for a second factor. We have mailed you a code: please enter it together with the password.',
  ],
  [
    'A code of your authenticator app is required',
    'factor_code',
    'Your account here asks for a second factor. Please enter a code of your authenticator app, or a recovery code.',
  ],
  ['Too many wrong codes', null, 'Too many wrong codes. Please wait an hour and try again.'],
  ['Too many failed logins', null, 'Too many attempts. Please wait a minute and try again.'],
]

/** By the name of the refusal, if no message matches. */
const byName: Record<string, Row> = {
  InvalidHandle: ['', 'handle', 'This handle cannot be used. Please choose another one.'],
  HandleNotAvailable: ['', 'handle', 'This handle is already taken or reserved. Please choose another one.'],
  InvalidInviteCode: [
    '',
    'invite_code',
    'This invite code is not valid, or it has already been used. Please check it for typing mistakes.',
  ],
  InvalidPassword: ['', 'password', 'This password cannot be used. Please choose another one.'],
  InvalidToken: ['', 'code', 'This code is wrong. Please check it, or request a new one.'],
  ExpiredToken: ['', 'code', 'This code has expired. Please request a new one.'],
  AuthFactorTokenRequired: [
    '',
    'auth_factor',
    'The old server asks for a code, which it has mailed to you. Please enter it together with the password.',
  ],
  RateLimitExceeded: ['', null, 'Too many attempts. Please wait a few minutes and try again.'],
  UpstreamFailure: [
    '',
    null,
    'A service that this depends on is not responding. Nothing was changed. Please try again in a moment.',
  ],
}

function wordsFor({ name, message, status }: Refusal): Fault {
  const [, field, words] = byMessage.find(([start]) => message.startsWith(start)) ?? byName[name] ?? ['', null, message]
  return { field, message: words, status }
}

/**
 * Returns the fault that `work` was refused with, or null if it succeeded. Throws any error that is not a refusal, and
 * outages of database and disk, about which no field of the form can be changed.
 */
export async function faultOf(work: () => unknown): Promise<Fault | null> {
  try {
    await work()
    return null
  } catch (error) {
    const refusal = refusalOf(error)
    if (refusal === null || isStorageOutage(error)) throw error
    return wordsFor(refusal)
  }
}
