/** Texts of the page for moving away. */
import { textTable } from '../../../http/texts.ts'

export const moveAwayTexts = textTable(
  {
    title: 'Move away',
    heading: 'Move {account} away',
    lead: 'To any other server of the network. Your identity, followers and posts stay yours.',
    codeMailed: 'We have mailed you the code. Enter it at the new server.',
    back: 'Back to your account',
    unreadable: 'Your identity cannot be read at the moment. Please try again later.',
    stillHere: 'Your identity names {here}. Nothing has changed yet.',
    noServer: 'no server',
    goneActive: 'Your identity names {place} now. The account here is still active: deactivate it.',
    gone: 'Your identity names {place} now, and the account here is deactivated.',
    goneUntil: 'Your identity names {place} now, and the account here is deactivated. It will be deleted after {day}.',
    backup: '1. Make a backup',
    backupAbout:
      'One file with your posts, pictures and preferences. If anything breaks in the middle, you can continue from it.',
    download: 'Download your data',
    ownKey: '2. Have a key of your own',
    hasKey: 'Your identity names a key outside this server. With it, you can move even if a server does not cooperate.',
    lacksKey:
      'With a recovery key, you can move even if a server does not cooperate. Let the new server add one, if it offers to.',
    whoControls: 'Who controls your identity',
    beginThere: '3. Begin at the new server',
    beginThereAbout:
      'Open its page for moving an account, and sign in there with your handle and the main password of this account. It fetches everything from here.',
    enterCode: '4. Enter the code',
    enterCodeAbout:
      'The new server has us mail you a code, with which your identity names the new server. If it does not come, or if you move with another program, ask for it here. Give it only to the server that you move to.',
    mailCode: 'Mail me the code',
    changeDocument: '4. Change your document',
    changeDocumentAbout: 'The new server tells you which key and address to publish in the document of your domain.',
    left: 'What is left here',
    leftAbout:
      'Check first that your posts and pictures are at the new server. As long as the account is not deleted, they can be fetched from here again.',
    deactivateKeep: 'Deactivate it, and keep it',
    keepAfterAll: 'Keep it after all',
    deactivateDelete: 'Deactivate it, and delete it after {days} days',
    deleteAfter: 'Delete it after {days} days',
  },
  {
    de: async () => (await import('./move-away-texts-de.ts')).moveAwayGerman,
    es: async () => (await import('./move-away-texts-es.ts')).moveAwaySpanish,
    fr: async () => (await import('./move-away-texts-fr.ts')).moveAwayFrench,
    ja: async () => (await import('./move-away-texts-ja.ts')).moveAwayJapanese,
    'pt-BR': async () => (await import('./move-away-texts-pt.ts')).moveAwayBrazilian,
  },
)
