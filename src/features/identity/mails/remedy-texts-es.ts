export const remedySpanish = {
  ifYou: 'Si lo hiciste tú, puedes ignorar este mensaje. Si no:',
  doNoCode:
    'No introduzcas un código que no pediste, aunque alguien te lo envíe. Sin el código, el programa no obtiene acceso.',
  doCancelRecovery: 'Cancela la entrega ahora, en tu cartera, en un dispositivo que siga con la sesión abierta.',
  doNewKeys:
    'Si otra persona puede tener otra de tus partes, reemplaza ahora las claves y las partes de tu identidad en tu cartera.',
  doUndoChange:
    'Firma ahora, con una clave más alta de tu identidad, una operación que siga a la anterior a este cambio: eso lo deshace. Otra persona tiene una clave de tu identidad, así que deja fuera esa clave.',
  doMailbox: 'Otra persona puede leer tu correo, así que cambia primero la contraseña de tu buzón.',
  doPassword: 'Pon una contraseña nueva en {page}. Eso cierra la sesión de todas las apps y los navegadores.',
  doReplaceKey: 'Si otra persona puede tener una clave de tu identidad, reemplaza esa clave en tu cartera.',
  doIdentityKey: 'Reemplaza la clave en tu cartera.',
  doIdentityKeyDespitePassword:
    'Reemplaza la clave en tu cartera: una contraseña nueva no deja fuera a quien tenga la clave.',
  doAccount: 'Revisa en {page} tus sesiones y ajustes, y cierra todas las sesiones que no reconozcas.',
} as const
