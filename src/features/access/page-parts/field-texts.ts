/** Labels and hints of fields that many forms have. */
import { textTable } from '../../../http/texts.ts'

export const fieldTexts = textTable(
  {
    identifier: 'Handle or email address',
    password: 'Password',
    newPassword: 'New password',
    newPasswordHint: 'At least {chars} characters. A password manager can generate one for you.',
    code: 'Code from the email',
    remember: 'Stay signed in on this browser',
    rememberHint: 'For 30 days at most. Not on a shared device.',
    handle: 'Handle',
    email: 'Email address',
    chooseAccount: 'Choose an account',
    more: { one: '{count} more', other: '{count} more' },
    anotherAccount: 'Another account',
    usePasskey: 'Use a passkey',
    passkeyNotUsed: 'No passkey was used. Please try again, or choose another way.',
    passkeyNotMade: 'No passkey was made. Your device may have one for this account already. Please try again.',
  },
  {
    de: async () => (await import('./field-texts-de.ts')).fieldGerman,
    es: async () => (await import('./field-texts-es.ts')).fieldSpanish,
    fr: async () => (await import('./field-texts-fr.ts')).fieldFrench,
    ja: async () => (await import('./field-texts-ja.ts')).fieldJapanese,
    'pt-BR': async () => (await import('./field-texts-pt.ts')).fieldBrazilian,
  },
)
