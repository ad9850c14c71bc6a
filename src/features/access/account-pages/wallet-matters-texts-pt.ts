export const walletMattersBrazilian = {
  title: 'Sua carteira',
  waiting: 'À espera da sua resposta',
  waitingLead:
    'Alguém digitou o nome da sua conta para entrar. Abra sua carteira para responder. Aprove só um login que você mesmo acabou de iniciar.',
  devices: 'Dispositivos',
  devicesLead:
    'Dispositivos para os quais sua conta foi transferida. Um dispositivo revogado não pode mais usar este servidor, mas a carteira dele mantém a chave.',
  thisPage: 'esta página da conta',
  signIn: 'Login em {name}',
  since: 'Desde {time}',
  sinceUsed: 'Desde {time}, último uso em {used}',
  with: 'Com {program}',
  network: 'Da rede {network}',
  begunOn: 'Iniciado em {origin}',
  code: 'Código para sua carteira: <strong>{code}</strong>',
  deny: 'Recusar',
  denySignIn: 'Recusar o login em {name} com o código {code}',
  transferOpen:
    'Uma transferência da sua conta para outro dispositivo começou em {began}. Qualquer dispositivo com o código dela pode aceitá-la até {until}. Se não foi você, cancele-a.',
  transferAccepted:
    'Uma transferência da sua conta para outro dispositivo começou em {began}. Um dispositivo a aceitou em {accepted}. Quando for concluída, todo o resto será desconectado. Se não foi você, cancele-a.',
  cancel: 'Cancelar a transferência',
  revoke: 'Revogar',
  revokeDevice: 'Revogar {name}',
} as const
