/** Texts of the page about who controls an identity, with its recovery share and its document. */
import { textTable } from '../../../http/texts.ts'

export const identityTexts = textTable(
  {
    title: 'Your identity',
    heading: 'Identity of {account}',
    lead: 'Your identity outlives this server. Control of it decides which server hosts your account, and which handle it has.',
    back: 'Back to your account',
    'not-found': 'The directory does not know this identity. Please contact the operator of this server.',
    deactivated: 'This identity has ended.',
    unreachable: 'The identity directory is not responding. Please try again later.',
    unreadable: 'The identity directory sent an invalid response. Please try again later.',
    otherMethod: 'This server does not manage this kind of identity.',
    changedElsewhere: 'Changed elsewhere',
    undoHow:
      'A wallet that holds one of these keys undoes the change with an operation that follows <code>{cid}</code>, the last one before it. The directory then nullifies the change and all that came after it.',
    misfitServer: 'Your identity names another server. Apps look for your account there.',
    misfitKey:
      'Your identity names another signing key than the one with which this server signs your posts. Other services refuse what you post.',
    misfitHandle:
      'Your identity names another handle than the one that your account has here. Others see it as invalid.',
    keys: 'Keys that control it',
    keysLead: 'A key can undo the changes of a lower one within three days.',
    changed: 'Last changed {day}. If this was not you, a higher key can undo it within three days.',
    onlyServer:
      'Only this server can change your identity, so you cannot leave without its help. A recovery key of your own would change that.',
    serverFirst: "One key is outside this server, but this server's key ranks higher and could undo its changes.",
    outsideFirst:
      'The highest key is outside this server. With it, the account can be moved away without this server, and this server cannot undo that.',
    ourKey: 'A key of this server',
    ourKeyUse: '{server} uses it to change your handle and to help you move.',
    outsideKey: 'A key outside this server',
    outsideKeyUse: 'Yours, if it is the key of your wallet or a recovery key that you keep.',
    web: 'Control of the domain <strong>{host}</strong> is control of this identity.',
    webHosted:
      'Since {day}, {server} serves the document of this identity. Any session of your account here can change it.',
    share: 'Recovery share',
    shareLead:
      'Your wallet can split its recovery key into three shares, any two of which restore it. This server can keep one for you. On its own, a share is useless.',
    shareNone: 'This server has no share of your recovery key.',
    shareHeld: 'This server has held a share since {day}.',
    sharePending:
      'Someone requested your share with a code from your email. It can be collected from {time}. If this was not you, cancel it.',
    shareCollectable:
      'Someone requested your share with a code from your email, and it can be collected now. If this was not you, cancel it.',
    shareCollected:
      'Your share was handed out on {time}, and can be collected again for an hour. If this was not you, cancel it, and replace the keys and shares of your identity in your wallet.',
    startRecovery: 'Start recovery',
    startEffect: 'Sends a code to your email address. Use this only if you have lost your wallet.',
    cancelRelease: 'Cancel the release',
    cancelEffect: 'The share then cannot be collected until a new code is used.',
    deleteShare: 'Delete the share',
    deleteEffect: 'Without it, you need both of your own shares to recover your identity.',
    document: 'Document of your identity',
    documentLead:
      'It names the server of your account and the key that signs your posts. Others read it at your own domain.',
    servedHere: 'Served by {host}, as long as your domain points there.',
    servedElsewhere: 'Served by your own web server.',
    serveMyself: 'Serve it myself',
    serveMyselfEffect: 'Publish the content below first, or others cannot find your account.',
    letServe: 'Let {host} serve it',
    letServeEffect:
      'Your domain must then point to {host}. Any session of your account can change the document, so your wallet cannot open new sessions during that time.',
    whatToPublish: 'What to publish on your own web server',
    address: 'Address',
    type: 'Type',
    content: 'Content',
  },
  {
    de: async () => (await import('./identity-texts-de.ts')).identityGerman,
    es: async () => (await import('./identity-texts-es.ts')).identitySpanish,
    fr: async () => (await import('./identity-texts-fr.ts')).identityFrench,
    ja: async () => (await import('./identity-texts-ja.ts')).identityJapanese,
    'pt-BR': async () => (await import('./identity-texts-pt.ts')).identityBrazilian,
  },
)
