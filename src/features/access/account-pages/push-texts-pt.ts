export const pushBrazilian = {
  title: 'Notificações',
  lead: 'Dispositivos que são avisados quando um app ou programa pede acesso à sua conta. As mensagens são criptografadas para o dispositivo. Um dispositivo que você remover não recebe nenhuma até a carteira registrá-lo de novo.',
  none: 'Nenhum dispositivo está registrado.',
  since: 'Desde {day}',
  sincePushed: 'Desde {day}, último aviso em {pushed}',
  device: 'Dispositivo {id}',
  remove: 'Remover',
  removeDevice: 'Remover o dispositivo {id} de {name}',
} as const
