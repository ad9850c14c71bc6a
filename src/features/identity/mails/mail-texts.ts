/** What all mails to account holders say, and the texts of most of them. */
import { textTable } from '../../../http/texts.ts'

export const mailTexts = textTable(
  {
    subjectOn: '{subject} ({host})',
    about: 'This is about the account {account} at {host}.',
    accountPage: 'Your account: {page}',
    when: 'When: {time}',
    byOperator: 'By: the operator of this server',
    program: 'With: {program}',
    unknownProgram: 'With: an unknown app',
    network: 'From: the network {network}',
    askOperator: 'Contact the operator of this server.',
    writeOperator: 'Contact the operator of this server: {address}.',
    confirmSubject: 'Confirm your email address',
    confirmUse: 'Use this code to confirm that this address is yours. It works once, within {minutes} minutes:',
    confirmIgnore:
      'If you did not request it, you can ignore this email: someone probably entered your address by mistake.',
    updateSubject: 'Email address change requested',
    updateUse: 'Use this code to change the address of your account. It works once, within {minutes} minutes:',
    intruder: 'If you did not request it, someone else is signed in to your account: change your password.',
    intruderWithoutPassword:
      'If you did not request it, someone else is signed in to your account: end every session that you do not recognise at {page}.',
    resetSubject: 'Password reset requested',
    resetUse: 'Use this code to set a new password. It works once, within {minutes} minutes:',
    resetIgnore:
      'A new password signs out every app and browser. If you did not request it, you can ignore this email. Do not share the code.',
    deleteSubject: 'Account deletion requested',
    deleteUse:
      'If you might want the account back later, download your data first. Use this code to delete your account permanently. It works once, within {minutes} minutes:',
    identitySubject: 'Identity change requested',
    identityUse:
      'Use this code to change your identity, for example to move your account to another server. It works once, within {minutes} minutes:',
    identityIntruder:
      'Anyone with this code can take over your account. If you did not request it, change your password.',
    identityIntruderWithoutPassword:
      'Anyone with this code can take over your account. If you did not request it, end every session that you do not recognise at {page}.',
    signInSubject: 'Sign-in code',
    signInUse: 'Use this code to sign in to your account. It works once, within {minutes} minutes:',
    signInIntruder:
      'Do not share the code. If you are not signing in, someone else knows your password: change your password.',
    signInIntruderWithoutPassword:
      'Do not share the code. If you are not signing in, someone else knows your password: end every session that you do not recognise at {page}.',
    recoverySubject: 'Account recovery requested',
    recoveryUse:
      'Someone requested recovery of this account. With this code, your wallet requests the share of your recovery key that this server holds. It works once, within an hour.',
    recoveryCode: 'Recovery code:',
    recoveryIgnore: 'If you did not request it, you can ignore this email. Do not share the code.',
    archiveSubject: 'An archive of your account is ready',
    archiveReady:
      'A new archive of your account is ready ({size}). You will find it under "Download your data" at {page}, where you can also change how often one is made. The server keeps only the newest ones.',
    renamedSubject: 'The server of your account has another name',
    renamed: 'The server of your account has another name. It was {former}, and is now:',
    renamedPlc:
      'Your identity still names the former address, and only you can change that. In your wallet, sign an operation that changes the endpoint of the service atproto_pds to this address.',
    renamedWeb:
      'Your identity still names the former address, and only you can change that. In the document that you publish for your did:web, change the endpoint of the service #atproto_pds to this address.',
    renamedApps:
      'Your account works at both addresses for now. Apps find it at the new one once your identity names it, and ask you to sign in again.',
    quotaSubject: 'Your account is {percent} full',
    recordsFull:
      'It stores {used} of at most {quota} records. Above that, new posts, likes and follows are refused. Those that you delete make room at once.',
    blobsFull:
      'It stores {used} of at most {quota} MB of media. Above that, uploads are refused. Files that no post uses any more make room after a few hours.',
    quotaPage: '{page} shows how much you store. For a larger quota, contact the operator of this server.',
    quotaPageWithAddress:
      '{page} shows how much you store. For a larger quota, contact the operator of this server: {address}.',
    decisionSubject: 'Moderation decision, case {seq}',
    decided: 'The moderators of this server have made a decision about it. {done}',
    concerns: 'It concerns: {subject}',
    reason: 'Their reason:',
    appeal: 'If you think that this is wrong, you can appeal once, until {time}. Another person may then review it:',
    caseNumber: 'This is case {seq}. {contact}',
    invitedSubject: 'Your account at {host}',
    invited: 'You can now sign up at {host}, where you asked for an account.',
    inviteCode: 'Your invite code, for one account, is:',
    inviteUse: 'Sign up at {page}. If you did not ask for an account, you can ignore this email.',
    wantedSubject: 'You already have an account',
    wanted:
      'Someone tried to use this address for another account at {host}. It belongs to your account {account}, so the request was refused.',
    wantedPassword:
      'If this was you, sign in at {page}, where you can also set a new password if you have forgotten yours. If it was not you, you can ignore this email. We did not reveal that you have an account.',
    wantedWallet:
      'If this was you, sign in at {page} with your wallet. If it was not you, you can ignore this email. We did not reveal that you have an account.',
  },
  {
    de: async () => (await import('./mail-texts-de.ts')).mailGerman,
    es: async () => (await import('./mail-texts-es.ts')).mailSpanish,
    fr: async () => (await import('./mail-texts-fr.ts')).mailFrench,
    ja: async () => (await import('./mail-texts-ja.ts')).mailJapanese,
    'pt-BR': async () => (await import('./mail-texts-pt.ts')).mailBrazilian,
  },
)
