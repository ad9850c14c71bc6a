/** Texts of the part of the account page about the wallet of the holder. */
import { textTable } from '../../../http/texts.ts'

export const walletMattersTexts = textTable(
  {
    title: 'Your wallet',
    waiting: 'Waiting for your answer',
    waitingLead:
      'Someone entered your account name to sign in. Open your wallet to answer. Approve only a sign-in that you started yourself just now.',
    devices: 'Devices',
    devicesLead:
      'Devices to which your account was transferred. A revoked device can no longer use this server, but its wallet keeps its key.',
    thisPage: 'this account page',
    signIn: 'Sign-in to {name}',
    since: 'Since {time}',
    sinceUsed: 'Since {time}, last used {used}',
    with: 'With {program}',
    network: 'From the network {network}',
    begunOn: 'Begun on {origin}',
    code: 'Code for your wallet: <strong>{code}</strong>',
    deny: 'Deny',
    denySignIn: 'Deny the sign-in to {name} with the code {code}',
    transferOpen:
      'A transfer of your account to another device began on {began}. Any device with its code can accept it until {until}. If this was not you, cancel it.',
    transferAccepted:
      'A transfer of your account to another device began on {began}. A device accepted it on {accepted}. When it is completed, everything else is signed out. If this was not you, cancel it.',
    cancel: 'Cancel the transfer',
    revoke: 'Revoke',
    revokeDevice: 'Revoke {name}',
  },
  {
    de: async () => (await import('./wallet-matters-texts-de.ts')).walletMattersGerman,
    es: async () => (await import('./wallet-matters-texts-es.ts')).walletMattersSpanish,
    fr: async () => (await import('./wallet-matters-texts-fr.ts')).walletMattersFrench,
    ja: async () => (await import('./wallet-matters-texts-ja.ts')).walletMattersJapanese,
    'pt-BR': async () => (await import('./wallet-matters-texts-pt.ts')).walletMattersBrazilian,
  },
)
