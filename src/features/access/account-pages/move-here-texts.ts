/** Texts of the pages on which a move to this server begins. */
import { textTable } from '../../../http/texts.ts'
import { planWords } from '../../identity/migration/migration.ts'

export const moveHereTexts = textTable(
  {
    title: 'Move your account here',
    lead: 'Your identity, followers, posts, pictures and preferences come along to {host}. First, sign in at the server where your account is now. Nothing changes yet.',
    handleNow: 'Your handle now',
    handleNowHint: 'As others mention you, or the DID of your account.',
    oldPassword: 'Password at the old server',
    oldPasswordHint:
      'The main password: an app password cannot move an account. It is passed on to the old server and not stored here.',
    oldFactor: 'Sign-in code from the old server',
    oldFactorHint: 'The old server has mailed it to you. Please enter the password again, too.',
    showPlan: 'Show me the plan',
    oldIsGone: 'My old server is gone',
    createAccount: 'Create a new account',
    haveAccount: 'I have an account here',
    planTitle: 'The plan of your move',
    planHeading: 'Move {account} here',
    fromTo: 'From {host} to {here}.',
    fromToRecords: { one: 'From {host} to {here}: {count} record.', other: 'From {host} to {here}: {count} records.' },
    pictures: { one: '{count} picture or video.', other: '{count} pictures and videos.' },
    comes: 'Comes along',
    stays: 'Does not come along',
    oldServer: 'The old server',
    backupFirst:
      'Make a backup first: <file>download your posts and records</file>. If the old server breaks in the middle, the move can continue from that file.',
    yourAccount: 'Your account here',
    begin: 'Begin the move',
    beginAbout:
      'You may close the page afterwards: the move continues. Your identity changes only when you enter a code that the old server mails to you.',
    handleHere: 'Handle here',
    handleHereHint: 'Under {domain}, or a domain of your own that names your account already.',
    emailHint: 'We send codes and security notices to it. It is not public.',
    newPassword: 'New password for this server',
    factor: 'Sign-in code',
    factorHint: 'Please enter the password again, too.',
    invite: 'Invite code',
    inviteHint: 'From someone who has an account here, or from the operator of this server.',
    keys: 'Keys that control your identity: {stay} will stay, {go} will go',
    addKey: 'Add a recovery key of my own (recommended)',
    addKeyAbout:
      'With a key of your own, no server can keep you from moving again. A wallet makes one, and so does “holdfast migrate key”.',
    publicKey: 'Public key',
    publicKeyHint: 'It begins with did:key:z. The secret key stays with you.',
    expired: 'The plan has expired. Please sign in at the old server again.',
    ...planWords.comes,
    ...planWords.stays,
    ...planWords.oldServer,
  },
  {
    de: async () => (await import('./move-here-texts-de.ts')).moveHereGerman,
    es: async () => (await import('./move-here-texts-es.ts')).moveHereSpanish,
    fr: async () => (await import('./move-here-texts-fr.ts')).moveHereFrench,
    ja: async () => (await import('./move-here-texts-ja.ts')).moveHereJapanese,
    'pt-BR': async () => (await import('./move-here-texts-pt.ts')).moveHereBrazilian,
  },
)
