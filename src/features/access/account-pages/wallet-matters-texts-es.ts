export const walletMattersSpanish = {
  title: 'Tu cartera',
  waiting: 'A la espera de tu respuesta',
  waitingLead:
    'Alguien introdujo el nombre de tu cuenta para iniciar sesión. Abre tu cartera para responder. Aprueba solo un inicio de sesión que hayas empezado ahora mismo.',
  devices: 'Dispositivos',
  devicesLead:
    'Dispositivos a los que se traspasó tu cuenta. Un dispositivo revocado ya no puede usar este servidor, pero su cartera conserva la clave.',
  thisPage: 'esta página de cuenta',
  signIn: 'Inicio de sesión en {name}',
  since: 'Desde el {time}',
  sinceUsed: 'Desde el {time}, último uso el {used}',
  with: 'Con {program}',
  network: 'Desde la red {network}',
  begunOn: 'Iniciado en {origin}',
  code: 'Código para tu cartera: <strong>{code}</strong>',
  deny: 'Rechazar',
  denySignIn: 'Rechazar el inicio de sesión en {name} con el código {code}',
  transferOpen:
    'El {began} empezó un traspaso de tu cuenta a otro dispositivo. Cualquier dispositivo con su código puede aceptarlo hasta el {until}. Si no fuiste tú, cancélalo.',
  transferAccepted:
    'El {began} empezó un traspaso de tu cuenta a otro dispositivo. Un dispositivo lo aceptó el {accepted}. Cuando se complete, se cerrarán todas las demás sesiones. Si no fuiste tú, cancélalo.',
  cancel: 'Cancelar el traspaso',
  revoke: 'Revocar',
  revokeDevice: 'Revocar {name}',
} as const
