/** Texts of the second page of a sign-in. */
import { textTable } from '../../../http/texts.ts'

export const factorTexts = textTable(
  {
    title: 'One more step',
    mailed: 'We have sent a code to the email address of your account. It is valid for 15 minutes.',
    app: 'Enter the code that your authenticator app shows now, or one of your recovery codes.',
    passkey: 'Use your passkey, or enter one of your recovery codes.',
    appOrPasskey:
      'Use your passkey, or enter the code that your authenticator app shows now, or one of your recovery codes.',
    code: 'Code',
    trust: 'Do not ask again in this browser for 30 days',
    proceed: 'Continue',
    another: 'Send another code',
    anotherSent: 'We have sent another code. Only the newest one works.',
    proveTitle: 'Confirm that it is you',
    proveLead: 'You signed in as {account} more than an hour ago. Please enter your password once more to continue.',
    cancel: 'Cancel',
  },
  {
    de: async () => (await import('./factor-texts-de.ts')).factorGerman,
    es: async () => (await import('./factor-texts-es.ts')).factorSpanish,
    fr: async () => (await import('./factor-texts-fr.ts')).factorFrench,
    ja: async () => (await import('./factor-texts-ja.ts')).factorJapanese,
    'pt-BR': async () => (await import('./factor-texts-pt.ts')).factorBrazilian,
  },
)
