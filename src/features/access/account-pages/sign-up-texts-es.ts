export const signUpSpanish = {
  title: 'Crea una cuenta',
  lead: 'Tus publicaciones, seguimientos y todo lo demás se guardarán en {host}. Puedes mudarte cuando quieras.',
  submit: 'Crear cuenta',
  haveAccount: 'Tengo una cuenta',
  haveAccountElsewhere: 'Tengo una en otro servidor',
  domain: 'Dominio del nombre de usuario',
  handleHint:
    'Así te encuentran y te mencionan los demás. Letras, cifras y guiones. Puedes cambiarlo más tarde, por ejemplo a tu propio dominio.',
  emailHint: 'Enviamos allí códigos y avisos de seguridad. No es público.',
  inviteCode: 'Código de invitación',
  inviteHint: 'De alguien que tenga una cuenta aquí o del operador de este servidor.',
  agree: 'Al crear una cuenta aceptas las <terms>condiciones</terms>.',
  wallet: 'Tengo una cartera',
  walletOnly: 'Tengo una cartera y no quiero contraseña',
  walletAbout:
    'Una clave de cartera introducida aquí está por encima de la clave de este servidor: con ella puedes mudar tu cuenta aunque este servidor no coopere.',
  walletOnlyAbout:
    'Sin contraseña, inicias sesión con la cartera: aquí y en las apps que muestran un código para ella. Para otras apps, creas aquí una contraseña de aplicación. Más tarde puedes poner una contraseña con un código por correo, pero la clave no se puede sustituir: si pierdes la cartera y no tienes partes de recuperación, no podrás mudarte sin la ayuda de este servidor.',
  walletKey: 'Clave pública de tu cartera',
  walletKeyHint: 'Empieza por did:key:z. Tu cartera la muestra; la clave secreta nunca sale de la cartera.',
  questionHint: 'Así quiere conocerte el operador. No importan las mayúsculas ni los espacios.',
  working:
    'Tu navegador está haciendo unos cálculos para que los programas no creen cuentas en masa. Tarda unos segundos.',
  workNeedsScript:
    'Esta página necesita JavaScript: tu navegador tiene que hacer unos cálculos para que los programas no creen cuentas en masa. Sin él, pide una cuenta al operador de este servidor.',
} as const
