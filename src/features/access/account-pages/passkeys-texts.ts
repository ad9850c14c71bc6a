/** Texts about passkeys on the page of factors. */
import { textTable } from '../../../http/texts.ts'

export const passkeysTexts = textTable(
  {
    heading: 'Passkeys',
    use: 'Your phone, your computer or a security key signs you in, once it has recognised you by PIN, finger or face. You need no password then. A passkey works on this website alone, so it cannot be coaxed out of you elsewhere.',
    needsScript:
      'Your browser runs no scripts on this page. A passkey needs one: please allow it, or use another browser.',
    full: 'You have as many passkeys as an account can have. Remove one to add another.',
    unavailable: 'Passkeys need an encrypted connection to a server with a name, which this one does not have.',
    add: 'Add a passkey',
    addLead: 'Choose a name by which you will know the device again. Your browser then asks you to make the passkey.',
    name: 'Name',
    make: 'Make the passkey',
    cancel: 'Cancel',
    unknownDevice: 'My device',
    used: 'Added {added}, last used {used}',
    unused: 'Added {added}, never used',
    synced: 'Your other devices may have it too.',
    elsewhere: 'It was made for a former address of this server, and no longer works.',
    rename: 'Rename',
    renameOf: 'Rename {name}',
    remove: 'Remove',
    removeOf: 'Remove {name}',
    removeQuestion: 'Remove a passkey',
    removeSubmit: 'Remove the passkey',
    wasAdded: 'The passkey is added. You can sign in with it from now on.',
    wasRenamed: 'The passkey has its new name.',
    wasRemoved: 'The passkey is removed, and no longer opens your account. Delete it on your device as well.',
  },
  {
    de: async () => (await import('./passkeys-texts-de.ts')).passkeysGerman,
    es: async () => (await import('./passkeys-texts-es.ts')).passkeysSpanish,
    fr: async () => (await import('./passkeys-texts-fr.ts')).passkeysFrench,
    ja: async () => (await import('./passkeys-texts-ja.ts')).passkeysJapanese,
    'pt-BR': async () => (await import('./passkeys-texts-pt.ts')).passkeysBrazilian,
  },
)
