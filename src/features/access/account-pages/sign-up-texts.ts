/** Texts of the page on which people create an account. */
import { textTable } from '../../../http/texts.ts'

export const signUpTexts = textTable(
  {
    title: 'Create an account',
    lead: 'Your posts, follows and everything else will be stored on {host}. You can move away at any time.',
    submit: 'Create account',
    haveAccount: 'I have an account',
    haveAccountElsewhere: 'I have one on another server',
    domain: 'Domain of the handle',
    handleHint:
      'How others find and mention you. Letters, digits and hyphens. You can change it later, for example to your own domain.',
    emailHint: 'We send codes and security notices to it. It is not public.',
    inviteCode: 'Invite code',
    inviteHint: 'From someone who has an account here, or from the operator of this server.',
    agree: 'By creating an account you agree to the <terms>terms</terms>.',
    wallet: 'I have a wallet',
    walletOnly: 'I have a wallet, and do not want a password',
    walletAbout:
      "A wallet key entered here ranks above this server's key: with it, you can move your account away even if this server does not cooperate.",
    walletOnlyAbout:
      "Without a password, you sign in with the wallet: here and in apps that show a code for it. For other apps, you create an app password here. You can set a password later with a code by email, but the key cannot be replaced: if you lose the wallet and have no recovery shares, you cannot move away without this server's help.",
    walletKey: 'Public key of your wallet',
    walletKeyHint: 'It begins with did:key:z. Your wallet shows it; the key itself never leaves the wallet.',
    questionHint: 'How the operator wants to get to know you. Capitals and spaces do not matter.',
    working:
      'Your browser is doing a little work, which keeps programs from making accounts in bulk. It takes a few seconds.',
    workNeedsScript:
      'This page needs JavaScript: your browser has to do a little work, which keeps programs from making accounts in bulk. Without it, ask the operator of this server for an account.',
  },
  {
    de: async () => (await import('./sign-up-texts-de.ts')).signUpGerman,
    es: async () => (await import('./sign-up-texts-es.ts')).signUpSpanish,
    fr: async () => (await import('./sign-up-texts-fr.ts')).signUpFrench,
    ja: async () => (await import('./sign-up-texts-ja.ts')).signUpJapanese,
    'pt-BR': async () => (await import('./sign-up-texts-pt.ts')).signUpBrazilian,
  },
)
