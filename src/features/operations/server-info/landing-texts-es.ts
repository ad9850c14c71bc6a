export const landingSpanish = {
  about:
    'Un servidor para cuentas del <protocol>AT Protocol</protocol>, la red de Bluesky y otras apps. Aquí tus datos son tuyos, y puedes llevarlos a otro servidor cuando quieras.',
  signUp: 'Registrarse',
  handlesUnder: 'Nombres de usuario en',
  signUpFact: 'Registro',
  withInvite: 'con un código de invitación',
  open: 'abierto a todo el mundo',
  serverDid: 'DID del servidor',
  software: 'Software',
  interface: 'La interfaz para las apps está en <code>/xrpc/</code>.',
} as const
