/** Texts of the pages of recovery. */
import { textTable } from '../../../http/texts.ts'

export const recoveryTexts = textTable(
  {
    wrong: 'The handle or the code is wrong. Please check both, or request a new code.',
    identifier: 'Handle or DID',
    title: 'Recover your account',
    lead: 'If you have lost your wallet: this server holds one of the three shares of your recovery key. With it and one of your own shares, a new wallet can take over your account.',
    send: 'Send a code to my email address',
    haveCode: 'I already have a code',
    shareTitle: 'Your recovery share',
    afterWait:
      'The code starts a waiting period. During it you can cancel, in case someone else is reading your email. Afterwards, come back to this page without a code.',
    atOnce: 'With the code you get the share at once. Anyone who reads your email can do the same.',
    sent: 'If this account exists, we have sent a code to its email address.',
    continue: 'Continue',
    sendAnother: 'Send another code',
    codeHint: 'After the waiting period, you need it only if a wallet started the recovery.',
    pending: 'You can collect the share from {time}. We have sent an email about this.',
    released:
      'This is the share. Enter it into a wallet together with one of your own shares. You can view it again for an hour, so copy it now:',
  },
  {
    de: async () => (await import('./recovery-texts-de.ts')).recoveryGerman,
    es: async () => (await import('./recovery-texts-es.ts')).recoverySpanish,
    fr: async () => (await import('./recovery-texts-fr.ts')).recoveryFrench,
    ja: async () => (await import('./recovery-texts-ja.ts')).recoveryJapanese,
    'pt-BR': async () => (await import('./recovery-texts-pt.ts')).recoveryBrazilian,
  },
)
