/** What people read when their form was refused: what happened, and what to do next. */
import { textTable } from '../../../http/texts.ts'

export const faultTexts = textTable(
  {
    elsewhere:
      'You have signed in or out in another tab since this page was shown. Please check the account, then decide again.',
    handleChars: 'A handle consists of letters, digits and hyphens, and does not begin or end with a hyphen.',
    handleEnding: 'Handles cannot have this ending. Please choose another one.',
    handleWord: 'This handle contains a word that is not allowed here. Please choose another one.',
    handleDots: 'Under our domain, a handle consists of letters, digits and hyphens, without dots.',
    handleLong: 'This handle is too long. Please use at most 63 characters before the dot.',
    handleShort: 'This handle is too short. Please use at least three characters.',
    handleReserved: 'This handle is reserved. Please choose another one.',
    handleTaken: 'This handle is already taken. Please choose another one.',
    handleOwnDomain:
      'A new account gets a handle under our own domain. Once you have an account, you can change to your own domain.',
    handleUnresolved:
      'This domain does not point to your account yet. Publish the record or the file below, then check again.',
    handleNotInDocument: 'Your DID document does not name this handle. Please add it there first, then try again.',
    handleUnusable: 'This handle cannot be used. Please choose another one.',
    handleTakenOrReserved: 'This handle is already taken or reserved. Please choose another one.',
    signUpLate:
      'This took too long, or another attempt was made in the meantime. Please try to sign in. If you cannot, sign up again.',
    emailMissing: 'Please enter your email address.',
    emailTaken: 'This email address belongs to another account here. Please use another one.',
    emailUnusable:
      'This email address cannot be used. Please check it for typing mistakes, or use another one. If it already has an account here, we have sent an email to it.',
    emailChanged: 'Your address was changed since this page was shown. Please open the page again.',
    emailNone: 'Your account has no email address. Please add one first.',
    passwordMissing: 'Please choose a password.',
    passwordShort: 'This password is too short. Please use at least {chars} characters.',
    passwordLong: 'This password is too long. Please choose a shorter one.',
    passwordNotCurrent: 'That is not your current password. App passwords do not work here.',
    passwordUnusable: 'This password cannot be used. Please choose another one.',
    questionWrong: 'The question has another answer. If you do not know it, ask the operator of this server.',
    workMissing:
      'Your browser has not done the work that this page asks for, or too long ago. Please try again, with JavaScript.',
    walletKey: 'This is not the public key of a wallet. It begins with did:key:z and is about sixty characters long.',
    inviteMissing: 'Signing up here requires an invite code. Please enter yours.',
    inviteInvalid: 'This invite code is not valid, or it has already been used. Please check it for typing mistakes.',
    nameMissing: 'Please enter a name of at most 255 characters.',
    appPasswordTaken: 'You already have an app password with this name. Please choose another name.',
    appPasswordsFull: 'You have reached the maximum number of app passwords. Please revoke one that you no longer use.',
    documentNone:
      'Your domain publishes no document that could be served here. Publish it there first, then try again.',
    documentPath: 'Only an identity that is a whole domain, without a path, can be served here.',
    alreadyHere:
      'Your account is here already. If your move has begun, sign in here with the handle and the password that you chose.',
    identityUnreadable: 'Your identity cannot be read at the moment. Please try again later.',
    identityElsewhere:
      'Your identity is not under the control of this server. If you have moved to another server, sign in there.',
    identityOtherServer: 'Your identity names another server. If you have moved there, sign in there.',
    identityOtherKey:
      'Your identity names a signing key that this server does not hold. The holder of your recovery key can correct that.',
    tooManyMinute: 'Too many attempts. Please wait a minute and try again.',
    tooMany: 'Too many attempts. Please wait a few minutes and try again.',
    codeWrong: 'This code is wrong. Please check it, or use a new one.',
    codeExpired: 'This code has expired. Please request a new one.',
    factorWanted:
      'The old server asks for a code, which it has mailed to you. Please enter it together with the password.',
    mailRefused:
      'The mail server refused the mail, so no mail was sent. Please check the email address of the account.',
    mailLater: 'The mail could not be sent yet. It will arrive as soon as the mail server accepts it.',
    upstream: 'A service that this depends on is not responding. Nothing was changed. Please try again in a moment.',
    signInMissing: 'Please enter your handle or email address and your password.',
    signInWrong: 'The account or the password is wrong. App passwords do not work here.',
    takenDown: 'This account has been taken down. Please contact the operator of this server.',
    delegateUnknown: 'This is not the handle of an active account on this server.',
    delegateSelf: 'This is your own account.',
    delegateKnown: 'This account already acts for yours, or is invited to.',
    delegatesFull:
      'You have reached the maximum number of people who act for an account. Please end the access of one of them first.',
    invitationOver: 'This invitation is no longer open.',
    endPassed: 'Please choose a day that has not passed.',
    keyKnown: 'Your identity already has this key.',
    deletionRefused: 'The code or the password is wrong. Please check both.',
    deletionIncomplete: 'Please enter the code from the email, and your password.',
    scopeUnknown:
      'One of these scopes is not known, or only the account itself may have it. Please correct or remove it.',
    factorMailed:
      'Your account here asks for a second factor. We have mailed you a code: please enter it together with the password.',
    factorApp:
      'Your account here asks for a second factor. Please enter a code of your authenticator app, or a recovery code.',
    tooManyCodes: 'Too many wrong codes. Please wait an hour and try again.',
    uploadBroken: 'The upload broke off. Nothing was changed. Please try again.',
    uploadTwice: 'Please choose one file only.',
    archiveForeign: 'This is the archive of another account. Please choose one of yours.',
    uploadLarge: 'This file is larger than this server accepts for your account.',
    uploadSlow: 'The upload was too slow, so the server ended it. Please try again with a better connection.',
    passkeyRefused: 'This passkey was not accepted. Please try again, or choose another way to sign in.',
    passkeyLate: 'That took too long. Please use your passkey again.',
    passkeyTaken: 'This passkey is already in use. Please use another device, or another passkey.',
    passkeysFull: 'You have reached the maximum number of passkeys. Please remove one that you no longer use.',
    passkeyCopied:
      'The counter of this passkey went back, so there may be a copy of it. Please sign in another way, and replace the passkey.',
    passkeyOther: 'This passkey belongs to another account. Please use one of the account that you chose.',
    factorRecovery: 'Your account here signs in with a passkey. Please enter one of its recovery codes.',
    signInLate: 'That took too long. Please sign in again.',
    accountUnknown: 'There is no account with this handle or DID.',
    plcOnly: 'Only an identity that begins with did:plc: can move with a key alone.',
    keyNotNamed: 'Your identity does not name this key among its rotation keys. Please enter one that it names.',
    secretKey: 'This is not a secret key that can sign. It begins with z and is about fifty characters long.',
    signature:
      'Please enter the secret key of one of the rotation keys of your identity, or the operation exactly as it is shown, signed by such a key.',
    shownAgain: 'The changes to your identity are not those that you were shown: review its keys again.',
  },
  {
    de: async () => (await import('./fault-texts-de.ts')).faultGerman,
    es: async () => (await import('./fault-texts-es.ts')).faultSpanish,
    fr: async () => (await import('./fault-texts-fr.ts')).faultFrench,
    ja: async () => (await import('./fault-texts-ja.ts')).faultJapanese,
    'pt-BR': async () => (await import('./fault-texts-pt.ts')).faultBrazilian,
  },
)
