export const mailSpanish = {
  subjectOn: '{subject} ({host})',
  about: 'Este mensaje trata de la cuenta {account} en {host}.',
  accountPage: 'Tu cuenta: {page}',
  when: 'Cuándo: {time}',
  byOperator: 'Por: el operador de este servidor',
  program: 'Con: {program}',
  unknownProgram: 'Con: una app desconocida',
  network: 'Desde: la red {network}',
  askOperator: 'Escribe al operador de este servidor.',
  writeOperator: 'Escribe al operador de este servidor: {address}.',
  confirmSubject: 'Confirma tu dirección de correo',
  confirmUse:
    'Usa este código para confirmar que esta dirección es tuya. Sirve una sola vez, durante {minutes} minutos:',
  confirmIgnore:
    'Si no lo has pedido, puedes ignorar este correo: seguramente alguien escribió tu dirección por error.',
  updateSubject: 'Cambio de dirección de correo solicitado',
  updateUse: 'Usa este código para cambiar la dirección de tu cuenta. Sirve una sola vez, durante {minutes} minutos:',
  intruder: 'Si no lo has pedido, otra persona ha iniciado sesión en tu cuenta: cambia tu contraseña.',
  intruderWithoutPassword:
    'Si no lo has pedido, otra persona ha iniciado sesión en tu cuenta: cierra en {page} todas las sesiones que no reconozcas.',
  resetSubject: 'Nueva contraseña solicitada',
  resetUse: 'Usa este código para establecer una contraseña nueva. Sirve una sola vez, durante {minutes} minutos:',
  resetIgnore:
    'Una contraseña nueva cierra la sesión en todas las apps y navegadores. Si no lo has pedido, puedes ignorar este correo. No compartas el código.',
  deleteSubject: 'Eliminación de la cuenta solicitada',
  deleteUse:
    'Si más adelante quieres recuperar la cuenta, descarga antes tus datos. Usa este código para eliminar tu cuenta definitivamente. Sirve una sola vez, durante {minutes} minutos:',
  identitySubject: 'Cambio de identidad solicitado',
  identityUse:
    'Usa este código para cambiar tu identidad, por ejemplo para mudar tu cuenta a otro servidor. Sirve una sola vez, durante {minutes} minutos:',
  identityIntruder:
    'Cualquiera que tenga este código puede apoderarse de tu cuenta. Si no lo has pedido, cambia tu contraseña.',
  identityIntruderWithoutPassword:
    'Cualquiera que tenga este código puede apoderarse de tu cuenta. Si no lo has pedido, cierra en {page} todas las sesiones que no reconozcas.',
  signInSubject: 'Código de inicio de sesión',
  signInUse: 'Usa este código para iniciar sesión en tu cuenta. Sirve una sola vez, durante {minutes} minutos:',
  signInIntruder: 'No compartas el código. Si no estás iniciando sesión, otra persona conoce tu contraseña: cámbiala.',
  signInIntruderWithoutPassword:
    'No compartas el código. Si no estás iniciando sesión, otra persona conoce tu contraseña: cierra en {page} todas las sesiones que no reconozcas.',
  recoverySubject: 'Recuperación de la cuenta solicitada',
  recoveryUse:
    'Alguien ha pedido recuperar esta cuenta. Con este código, tu cartera solicita la parte de tu clave de recuperación que guarda este servidor. Sirve una sola vez, durante una hora.',
  recoveryCode: 'Código de recuperación:',
  recoveryIgnore: 'Si no lo has pedido, puedes ignorar este correo. No compartas el código.',
  archiveSubject: 'Un archivo de tu cuenta está listo',
  archiveReady:
    'Un nuevo archivo de tu cuenta está listo ({size}). Lo encuentras en {page}, donde también puedes cambiar cada cuánto se crea uno. El servidor conserva solo los más recientes.',
  renamedSubject: 'El servidor de tu cuenta tiene otro nombre',
  renamed: 'El servidor de tu cuenta tiene otro nombre. Era {former} y ahora es:',
  renamedPlc:
    'Tu identidad todavía indica la dirección anterior, y solo tú puedes cambiarlo. Firma en tu cartera una operación que ponga esta dirección como punto de acceso del servicio atproto_pds.',
  renamedWeb:
    'Tu identidad todavía indica la dirección anterior, y solo tú puedes cambiarlo. En el documento que publicas para tu did:web, pon esta dirección como punto de acceso del servicio #atproto_pds.',
  renamedApps:
    'Por ahora, tu cuenta funciona en ambas direcciones. Las apps la encontrarán en la nueva cuando tu identidad la indique, y te pedirán que inicies sesión de nuevo.',
  quotaSubject: 'Tu cuenta está llena al {percent}',
  recordsFull:
    'Guarda {used} de un máximo de {quota} registros. Por encima de eso, se rechazan nuevas publicaciones, me gusta y seguimientos. Lo que elimines deja sitio de inmediato.',
  blobsFull:
    'Guarda {used} de un máximo de {quota} MB de archivos multimedia. Por encima de eso, se rechazan las subidas. Lo que ya no muestre ninguna publicación deja sitio después de unas horas.',
  quotaPage: '{page} muestra cuánto guardas. Si necesitas más espacio, escribe al operador de este servidor.',
  quotaPageWithAddress:
    '{page} muestra cuánto guardas. Si necesitas más espacio, escribe al operador de este servidor: {address}.',
  decisionSubject: 'Decisión de los moderadores, caso {seq}',
  decided: 'Los moderadores de este servidor han tomado una decisión al respecto. {done}',
  concerns: 'Se refiere a: {subject}',
  reason: 'Su motivo:',
  appeal:
    'Si crees que es un error, puedes responder una vez, hasta el {time}. Es posible que entonces lo revise otra persona:',
  caseNumber: 'Este es el caso {seq}. {contact}',
  invitedSubject: 'Tu cuenta en {host}',
  invited: 'Hay sitio para ti en {host}, donde pediste una cuenta.',
  inviteCode: 'Tu código de invitación, que sirve para una cuenta, es:',
  inviteUse: 'Regístrate en {page}. Si no has pedido una cuenta, puedes ignorar este correo.',
  wantedSubject: 'Ya tienes una cuenta',
  wanted:
    'Alguien ha intentado usar esta dirección para otra cuenta en {host}. Pertenece a tu cuenta {account}, así que se ha rechazado.',
  wantedPassword:
    'Si has sido tú, inicia sesión en {page}, donde también puedes establecer una contraseña nueva si has olvidado la tuya. Si no has sido tú, puedes ignorar este correo. No hemos revelado que tienes una cuenta.',
  wantedWallet:
    'Si has sido tú, inicia sesión en {page} con tu cartera. Si no has sido tú, puedes ignorar este correo. No hemos revelado que tienes una cuenta.',
} as const
