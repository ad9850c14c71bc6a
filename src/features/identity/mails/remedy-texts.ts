/** What to do if it was not the holder who caused an event. */
import { textTable } from '../../../http/texts.ts'

export const remedyTexts = textTable(
  {
    ifYou: 'If this was you, you can ignore this email. If it was not you:',
    doNoCode:
      'Do not enter a code that you did not request, even if someone sends it to you. Without the code, the program gets no access.',
    doCancelRecovery: 'Cancel the release now, in your wallet on a device that is still signed in.',
    doNewKeys:
      'If someone else may have another of your shares, replace the keys and shares of your identity now, in your wallet.',
    doUndoChange:
      'Use a higher key of your identity now to sign an operation that follows the one before this change: that undoes it. Someone else has a key of your identity, so leave that key out.',
    doMailbox: 'Someone else can read your mail, so change the password of your mailbox first.',
    doPassword: 'Set a new password at {page}. That signs out every app and browser.',
    doReplaceKey: 'If someone else may have a key of your identity, replace that key in your wallet.',
    doIdentityKey: 'Replace the key in your wallet.',
    doIdentityKeyDespitePassword:
      'Replace the key in your wallet: a new password does not lock out someone who has the key.',
    doAccount: 'Open {page} to check your sessions and settings, and end every session that you do not recognise.',
  },
  {
    de: async () => (await import('./remedy-texts-de.ts')).remedyGerman,
    es: async () => (await import('./remedy-texts-es.ts')).remedySpanish,
    fr: async () => (await import('./remedy-texts-fr.ts')).remedyFrench,
    ja: async () => (await import('./remedy-texts-ja.ts')).remedyJapanese,
    'pt-BR': async () => (await import('./remedy-texts-pt.ts')).remedyBrazilian,
  },
)
