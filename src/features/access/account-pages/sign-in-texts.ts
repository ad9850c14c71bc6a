/** Texts of the pages on which people sign in, with a password or a wallet, and choose a new password. */
import { textTable } from '../../../http/texts.ts'

export const signInTexts = textTable(
  {
    title: 'Sign in',
    lead: 'Manage your account and connected apps.',
    wasReset: 'Your password is changed. Please sign in with the new one.',
    wasDeleted: 'Your account is deleted.',
    bringBack:
      'With an archive of your data and a key of your own for your identity, you can <back>bring it back</back>, here or on another server.',
    signedOut: 'You are signed out.',
    notCompleted: 'That sign-in was not completed in time, or was denied. Please start again.',
    forgot: 'Forgot your password?',
    create: 'Create an account',
    lostWallet: 'Lost your wallet?',
    walletInstead: 'Use your wallet instead',
    againTitle: 'Sign in again',
    againLead: 'To continue as {account}, please approve it in your wallet again.',
    useWallet: 'Use your wallet',
    otherAccount: 'Sign in to another account',
    walletTitle: 'Sign in with your wallet',
    walletLead: 'When you approve it there, this browser is signed in to your account on {host}.',
    toAccount: 'Continue to your account',
    anotherWay: 'Sign in another way',
    resetTitle: 'Reset your password',
    resetLead: 'We send a code to the email address of your account.',
    sendCode: 'Send the code',
    haveCode: 'I already have a code',
    backToSignIn: 'Back to sign-in',
    newTitle: 'Choose a new password',
    newLead: 'It signs you out everywhere, and ends the access of all apps.',
    codeSent: 'If there is an account with this address, we have sent a code to it.',
    changePassword: 'Change password',
    anotherCode: 'Send another code',
  },
  {
    de: async () => (await import('./sign-in-texts-de.ts')).signInGerman,
    es: async () => (await import('./sign-in-texts-es.ts')).signInSpanish,
    fr: async () => (await import('./sign-in-texts-fr.ts')).signInFrench,
    ja: async () => (await import('./sign-in-texts-ja.ts')).signInJapanese,
    'pt-BR': async () => (await import('./sign-in-texts-pt.ts')).signInBrazilian,
  },
)
