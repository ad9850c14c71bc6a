/** Texts about adding a key of the holder to the identity. */
import { textTable } from '../../../http/texts.ts'

export const addedKeyTexts = textTable(
  {
    title: 'A key of your own',
    lead: 'With a key that ranks above the key of this server, you can move your account away without the help of anyone here, even if this server is gone.',
    done: 'The key is added. It is now the highest key of your identity. Keep its secret part safe: anyone who has it controls your identity.',
    codeNeeded: 'To add one, you need the code that we send to your email address.',
    make: 'Make a key for me',
    shownOnce: 'We show it once. This server does not keep it.',
    useWallet: 'Use the key of a wallet',
    walletKey: 'Public key of the wallet',
    walletKeyHint: 'It begins with did:key:z. Do not enter a secret key here.',
    sendCode: 'Send a code',
    codeSent: 'We have sent a code to your email address. It is valid for 15 minutes.',
    secret:
      'This is your secret key. It is shown only once, so store it now, in a password manager or on paper. Without it, the key below is of no use, and it cannot be removed without it.',
    toAdd: 'Key to add',
    warning:
      'Continue only if you have the secret key. The key will rank above all others, and this server cannot take it away again.',
    add: 'Add this key',
  },
  {
    de: async () => (await import('./added-key-texts-de.ts')).addedKeyGerman,
    es: async () => (await import('./added-key-texts-es.ts')).addedKeySpanish,
    fr: async () => (await import('./added-key-texts-fr.ts')).addedKeyFrench,
    ja: async () => (await import('./added-key-texts-ja.ts')).addedKeyJapanese,
    'pt-BR': async () => (await import('./added-key-texts-pt.ts')).addedKeyBrazilian,
  },
)
