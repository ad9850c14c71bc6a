/**
 * Translates refusals into words for the person who filled in a form: what happened, where, and what to do next.
 *
 * The messages of refusals are for programs, and clients match on some of them. Only this file rephrases them.
 */
import { isStorageOutage, refusalOf, type Refusal } from '../../../http/errors.ts'
import type { Wording } from '../../../http/html.ts'
import { MIN_PASSWORD_CHARS } from '../../identity/passwords/passwords.ts'
import { faultTexts } from './fault-texts.ts'

export interface Fault {
  message: Wording
  /** Name of the form field that has to be changed. */
  field: string | null
  status: number
}

export const faultAt = (field: string | null, message: Wording, status = 400): Fault => ({ field, message, status })

/**
 * The fault of a form whose token no longer belongs to the browser. The form is shown again, with the accounts that are
 * signed in now.
 */
export const signedInElsewhere = faultAt(null, faultTexts.elsewhere, 403)

type Row = [start: string, field: string | null, message: Wording]

/** Faults by the start of the refusal's message. */
const byMessage: readonly Row[] = [
  ['Input/handle must be', 'handle', faultTexts.handleChars],
  ['Handle TLD', 'handle', faultTexts.handleEnding],
  ['Inappropriate language', 'handle', faultTexts.handleWord],
  ['Invalid characters in handle', 'handle', faultTexts.handleDots],
  ['Handle too long', 'handle', faultTexts.handleLong],
  ['Handle too short', 'handle', faultTexts.handleShort],
  ['Reserved handle', 'handle', faultTexts.handleReserved],
  ['Handle already taken', 'handle', faultTexts.handleTaken],
  ['Not a supported handle domain', 'handle', faultTexts.handleOwnDomain],
  ['External handle did not resolve', 'handle', faultTexts.handleUnresolved],
  ['DID is not properly configured', 'handle', faultTexts.handleNotInDocument],
  ['The sign-up took too long', null, faultTexts.signUpLate],
  ['Email is required', 'email', faultTexts.emailMissing],
  ['This email address is already in use', 'email', faultTexts.emailTaken],
  ['This email address is not supported', 'email', faultTexts.emailUnusable],
  ['A password is required', 'password', faultTexts.passwordMissing],
  ['Password too short', 'password', faultTexts.passwordShort({ chars: MIN_PASSWORD_CHARS })],
  ['Password too long', 'password', faultTexts.passwordLong],
  ['Invalid password length', 'password', faultTexts.passwordLong],
  ['Invalid password', 'current', faultTexts.passwordNotCurrent],
  ['There is no account with the handle', 'identifier', faultTexts.accountUnknown],
  ['The account is already on this server', null, faultTexts.alreadyHere],
  ['Only a did:plc can be changed', 'identifier', faultTexts.plcOnly],
  ['handle: not a handle', 'handle', faultTexts.handleUnusable],
  ['recoveryKey: not a did:key', 'wallet_key', faultTexts.walletKey],
  ['recoveryKey: the identity', 'wallet_key', faultTexts.keyNotNamed],
  ['secretKey: ', 'secret_key', faultTexts.secretKey],
  ['operation: ', 'operation', faultTexts.signature],
  ['The changes to your identity are not', null, faultTexts.shownAgain],
  ['The recovery key is not', 'wallet_key', faultTexts.walletKey],
  ['The identity already has this key', 'wallet_key', faultTexts.keyKnown],
  ['Invalid did, password, proof or token', 'code', faultTexts.deletionRefused],
  ['A token is required', 'code', faultTexts.deletionIncomplete],
  ['No invite code', 'invite_code', faultTexts.inviteMissing],
  ['The question of this server', 'answer', faultTexts.questionWrong],
  ['The proof of work', null, faultTexts.workMissing],
  ['The name must not be blank', 'name', faultTexts.nameMissing],
  ['An app password with that name', 'name', faultTexts.appPasswordTaken],
  ['The account has reached the maximum number of app passwords', null, faultTexts.appPasswordsFull],
  ['delegate must be the handle', 'delegate', faultTexts.delegateUnknown],
  ['delegate must be another', 'delegate', faultTexts.delegateSelf],
  ['delegate already acts for', 'delegate', faultTexts.delegateKnown],
  ['An account can have', null, faultTexts.delegatesFull],
  ['No such delegation', null, faultTexts.invitationOver],
  ['expiresAt must be', 'ends', faultTexts.endPassed],
  ['scope ', 'scope', faultTexts.scopeUnknown],
  ['invalid email', null, faultTexts.emailChanged],
  ['account does not have an email address', 'email', faultTexts.emailNone],
  ['There is no document to serve', null, faultTexts.documentNone],
  ['Only a did:web without a path', null, faultTexts.documentPath],
  ['Repo already exists', null, faultTexts.alreadyHere],
  ['Could not resolve DID', null, faultTexts.identityUnreadable],
  ['Server rotation key not included', null, faultTexts.identityElsewhere],
  ['DID document atproto_pds service endpoint', null, faultTexts.identityOtherServer],
  ['DID document verification method', null, faultTexts.identityOtherKey],
  ['A sign in code has been sent', 'factor_code', faultTexts.factorMailed],
  ['A code of your authenticator app is required', 'factor_code', faultTexts.factorApp],
  ['A recovery code is required', 'factor_code', faultTexts.factorRecovery],
  ['The passkey was not accepted', null, faultTexts.passkeyRefused],
  ['The passkey challenge has expired', null, faultTexts.passkeyLate],
  ['The passkey is already in use', null, faultTexts.passkeyTaken],
  ['The passkey may have been copied', null, faultTexts.passkeyCopied],
  ['The account has reached the maximum number of passkeys', null, faultTexts.passkeysFull],
  ['Too many wrong codes', null, faultTexts.tooManyCodes],
  ['The form is malformed or incomplete', 'file', faultTexts.uploadBroken],
  ['The form has more than one file', 'file', faultTexts.uploadTwice],
  ['The archive belongs to', 'file', faultTexts.archiveForeign],
  ['The mail was refused', null, faultTexts.mailRefused],
  ['The mail could not be sent yet', null, faultTexts.mailLater],
  ['Too many failed logins', null, faultTexts.tooManyMinute],
]

/** Faults by the name of the refusal, if no message matches. */
const byName: Record<string, Row> = {
  InvalidHandle: ['', 'handle', faultTexts.handleUnusable],
  HandleNotAvailable: ['', 'handle', faultTexts.handleTakenOrReserved],
  InvalidInviteCode: ['', 'invite_code', faultTexts.inviteInvalid],
  InvalidPassword: ['', 'password', faultTexts.passwordUnusable],
  InvalidToken: ['', 'code', faultTexts.codeWrong],
  ExpiredToken: ['', 'code', faultTexts.codeExpired],
  AuthFactorTokenRequired: ['', 'auth_factor', faultTexts.factorWanted],
  PayloadTooLarge: ['', 'file', faultTexts.uploadLarge],
  RequestTimeout: ['', null, faultTexts.uploadSlow],
  RateLimitExceeded: ['', null, faultTexts.tooMany],
  UpstreamFailure: ['', null, faultTexts.upstream],
}

function wordsFor({ name, message, status }: Refusal): Fault {
  const [, field, words] = byMessage.find(([start]) => message.startsWith(start)) ?? byName[name] ?? ['', null, message]
  return { field, message: words, status }
}

/**
 * Returns the fault that `work` was refused with, or null if it succeeded. Throws any error that is not a refusal, and
 * outages of database and disk, which no change of a field could mend.
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
