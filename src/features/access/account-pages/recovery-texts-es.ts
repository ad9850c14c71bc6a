export const recoverySpanish = {
  wrong: 'El nombre de usuario o el código es incorrecto. Revisa ambos o pide un código nuevo.',
  identifier: 'Nombre de usuario o DID',
  title: 'Recupera tu cuenta',
  lead: 'Si perdiste tu cartera: este servidor guarda una de las tres partes de tu clave de recuperación. Con ella y una de tus propias partes, una cartera nueva puede hacerse cargo de tu cuenta.',
  send: 'Enviar un código a mi dirección de correo',
  haveCode: 'Ya tengo un código',
  shareTitle: 'Tu parte de recuperación',
  afterWait:
    'El código inicia un tiempo de espera. Mientras dura puedes cancelar, por si otra persona lee tu correo. Después, vuelve a esta página sin código.',
  atOnce: 'Con el código obtienes la parte de inmediato. Quien lea tu correo puede hacer lo mismo.',
  sent: 'Si esta cuenta existe, hemos enviado un código a su dirección de correo.',
  continue: 'Continuar',
  sendAnother: 'Enviar otro código',
  codeHint: 'Tras el tiempo de espera, solo lo necesitas si una cartera inició la recuperación.',
  pending: 'Puedes recoger la parte a partir del {time}. Hemos enviado un correo sobre esto.',
  released:
    'Esta es la parte. Introdúcela en una cartera junto con una de tus propias partes. Puedes verla de nuevo durante una hora, así que cópiala ahora:',
} as const
