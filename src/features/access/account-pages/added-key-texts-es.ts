export const addedKeySpanish = {
  title: 'Una clave propia',
  lead: 'Con una clave que esté por encima de la de este servidor, puedes mudar tu cuenta sin la ayuda de nadie de aquí, aunque este servidor ya no exista.',
  done: 'La clave está añadida. Ahora es la clave más alta de tu identidad. Guarda bien su parte secreta: quien la tenga controla tu identidad.',
  codeNeeded: 'Para añadir una, necesitas el código que enviamos a tu dirección de correo.',
  make: 'Crear una clave para mí',
  shownOnce: 'La mostramos una vez. Este servidor no la guarda.',
  useWallet: 'Usar la clave de una cartera',
  walletKey: 'Clave pública de la cartera',
  walletKeyHint: 'Empieza por did:key:z. No introduzcas aquí una clave secreta.',
  sendCode: 'Enviar un código',
  codeSent: 'Hemos enviado un código a tu dirección de correo. Vale durante 15 minutos.',
  secret:
    'Esta es tu clave secreta. Solo se muestra una vez, así que guárdala ahora, en un gestor de contraseñas o en papel. Sin ella, la clave de abajo no sirve de nada, y tampoco se puede quitar.',
  toAdd: 'Clave que se añadirá',
  warning:
    'Continúa solo si tienes la clave secreta. La clave estará por encima de todas las demás, y este servidor no podrá quitarla.',
  add: 'Añadir esta clave',
} as const
