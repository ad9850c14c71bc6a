export const landingBrazilian = {
  about:
    'Um servidor para contas do <protocol>AT Protocol</protocol>, a rede do Bluesky e de outros apps. Seus dados aqui pertencem a você, e você pode levá-los para outro servidor quando quiser.',
  signUp: 'Cadastrar-se',
  handlesUnder: 'Nomes de usuário em',
  signUpFact: 'Cadastro',
  withInvite: 'com um código de convite',
  open: 'aberto a todos',
  serverDid: 'DID do servidor',
  software: 'Software',
  interface: 'A interface para apps fica em <code>/xrpc/</code>.',
} as const
