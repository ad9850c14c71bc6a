export const landingGerman = {
  about:
    'Ein Server für Konten des <protocol>AT Protocol</protocol>, des Netzwerks von Bluesky und anderen Apps. Deine Daten hier gehören dir, und du kannst jederzeit mit ihnen zu einem anderen Server umziehen.',
  signUp: 'Registrieren',
  handlesUnder: 'Handles unter',
  signUpFact: 'Registrierung',
  withInvite: 'mit einem Einladungscode',
  open: 'offen für alle',
  serverDid: 'DID des Servers',
  software: 'Software',
  interface: 'Die Schnittstelle für Apps liegt unter <code>/xrpc/</code>.',
} as const
