export const landingFrench = {
  about:
    'Un serveur pour les comptes de l’<protocol>AT Protocol</protocol>, le réseau de Bluesky et d’autres applications. Vos données vous appartiennent, et vous pouvez les transférer vers un autre serveur à tout moment.',
  signUp: 'S’inscrire',
  handlesUnder: 'Pseudos sous',
  signUpFact: 'Inscription',
  withInvite: 'avec un code d’invitation',
  open: 'ouverte à tous',
  serverDid: 'DID du serveur',
  software: 'Logiciel',
  interface: 'L’interface pour les applications se trouve sous <code>/xrpc/</code>.',
} as const
