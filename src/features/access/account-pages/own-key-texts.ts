/** Texts about the keys of an identity that moves here, and of the pages of a move with such a key alone. */
import { textTable } from '../../../http/texts.ts'
import { ownerWords } from '../../identity/migration/migration.ts'

export const ownKeyTexts = textTable(
  {
    title: 'Move here without your old server',
    lead: 'If your old server is gone, your account can still move to {host}: with a key that may change your identity, and a backup of your posts. Nothing changes yet.',
    account: 'DID of your account',
    accountHint:
      'It begins with did:plc: and is in every backup. Your handle works too, as long as it leads to your identity.',
    handle: 'Handle here',
    handleHint: 'Under {domain}, or a domain of your own that names your account already.',
    publicKey: 'Your public key',
    publicKeyHint:
      'It begins with did:key:z and is among the rotation keys of your identity: a recovery key of your own, or the key of your wallet.',
    show: 'Show me what changes',
    serverWorks: 'My old server still works',
    changeTitle: 'What becomes of your identity',
    changeLead:
      '{account} will be on {host} as {handle}. The holder of any of these keys can change your identity. Check them before you sign.',
    keys: 'Keys of your identity',
    keysStay: 'Keys that stay',
    keysGo: 'Keys that go',
    none: 'None.',
    tick: 'Tick the keys that are yours. The old server may be wrong about whose a key is, and a key that goes can no longer change your identity.',
    saveKeys: 'Save which keys stay',
    yourAccount: 'Your account here',
    sign: 'Sign the change of your identity',
    secretKey: 'Your secret key',
    secretKeyHint:
      'A text that begins with z, as “holdfast migrate key” writes it to a file. It signs this one change, and is neither stored nor logged.',
    elsewhere: 'Sign it elsewhere, so that the key stays with you',
    elsewhereAbout: 'Sign this operation with your key, and enter the result.',
    signed: 'The signed operation, as JSON',
    begin: 'Begin the move',
    next: 'On the next page you upload your backup: the CAR file of your repository, or the ZIP archive of a server of this kind. Your identity changes once the backup is here.',
    ...ownerWords,
  },
  {
    de: async () => (await import('./own-key-texts-de.ts')).ownKeyGerman,
    es: async () => (await import('./own-key-texts-es.ts')).ownKeySpanish,
    fr: async () => (await import('./own-key-texts-fr.ts')).ownKeyFrench,
    ja: async () => (await import('./own-key-texts-ja.ts')).ownKeyJapanese,
    'pt-BR': async () => (await import('./own-key-texts-pt.ts')).ownKeyBrazilian,
  },
)
