/** Texts of the page at the server's address. */
import { textTable } from '../../../http/texts.ts'

export const landingTexts = textTable(
  {
    about:
      'A server for accounts of the <protocol>AT Protocol</protocol>, the network of Bluesky and other apps. Your data here belongs to you, and you can move it to another server at any time.',
    signUp: 'Sign up',
    handlesUnder: 'Handles under',
    signUpFact: 'Sign-up',
    withInvite: 'with an invite code',
    open: 'open to everyone',
    serverDid: 'Server DID',
    software: 'Software',
    interface: 'The interface for apps is under <code>/xrpc/</code>.',
  },
  {
    de: async () => (await import('./landing-texts-de.ts')).landingGerman,
    es: async () => (await import('./landing-texts-es.ts')).landingSpanish,
    fr: async () => (await import('./landing-texts-fr.ts')).landingFrench,
    ja: async () => (await import('./landing-texts-ja.ts')).landingJapanese,
    'pt-BR': async () => (await import('./landing-texts-pt.ts')).landingBrazilian,
  },
)
