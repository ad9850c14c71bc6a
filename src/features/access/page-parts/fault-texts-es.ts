export const faultSpanish = {
  elsewhere:
    'Has iniciado o cerrado sesión en otra pestaña desde que se mostró esta página. Comprueba la cuenta y vuelve a decidir.',
  handleChars: 'Un nombre de usuario se compone de letras, cifras y guiones, y no empieza ni termina con un guion.',
  handleEnding: 'Los nombres de usuario no pueden tener esta terminación. Elige otro.',
  handleWord: 'Este nombre de usuario contiene una palabra que aquí no está permitida. Elige otro.',
  handleDots: 'En nuestro dominio, un nombre de usuario se compone de letras, cifras y guiones, sin puntos.',
  handleLong: 'Este nombre de usuario es demasiado largo. Usa como máximo 63 caracteres antes del punto.',
  handleShort: 'Este nombre de usuario es demasiado corto. Usa al menos tres caracteres.',
  handleReserved: 'Este nombre de usuario está reservado. Elige otro.',
  handleTaken: 'Este nombre de usuario ya está en uso. Elige otro.',
  handleOwnDomain:
    'Una cuenta nueva recibe un nombre de usuario en nuestro propio dominio. Cuando tengas una cuenta, podrás cambiar a tu propio dominio.',
  handleUnresolved:
    'Este dominio todavía no apunta a tu cuenta. Publica el registro o el archivo de abajo y vuelve a comprobarlo.',
  handleNotInDocument:
    'Tu documento DID no menciona este nombre de usuario. Añádelo allí primero y vuelve a intentarlo.',
  handleUnusable: 'Este nombre de usuario no se puede usar. Elige otro.',
  handleTakenOrReserved: 'Este nombre de usuario ya está en uso o reservado. Elige otro.',
  signUpLate:
    'Ha tardado demasiado, o mientras tanto ha habido otro intento. Intenta iniciar sesión. Si no puedes, vuelve a registrarte.',
  emailMissing: 'Introduce tu correo electrónico.',
  emailTaken: 'Este correo electrónico pertenece a otra cuenta de este servidor. Usa otro.',
  emailUnusable:
    'Este correo electrónico no se puede usar. Comprueba que esté bien escrito o usa otro. Si ya tiene una cuenta aquí, le hemos enviado un correo.',
  emailChanged: 'Tu dirección ha cambiado desde que se mostró esta página. Vuelve a abrirla.',
  emailNone: 'Tu cuenta no tiene correo electrónico. Añade uno primero.',
  passwordMissing: 'Elige una contraseña.',
  passwordShort: 'Esta contraseña es demasiado corta. Usa al menos {chars} caracteres.',
  passwordLong: 'Esta contraseña es demasiado larga. Elige una más corta.',
  passwordNotCurrent: 'Esa no es tu contraseña actual. Las contraseñas de aplicación no sirven aquí.',
  passwordUnusable: 'Esta contraseña no se puede usar. Elige otra.',
  questionWrong: 'La pregunta tiene otra respuesta. Si no la sabes, pregunta al operador de este servidor.',
  workMissing:
    'Tu navegador no ha hecho los cálculos que pide esta página, o fue hace demasiado tiempo. Inténtalo de nuevo, con JavaScript.',
  walletKey: 'Esto no es la clave pública de una cartera. Empieza por did:key:z y tiene unos sesenta caracteres.',
  inviteMissing: 'Para registrarse aquí hace falta un código de invitación. Introduce el tuyo.',
  inviteInvalid: 'Este código de invitación no es válido o ya se ha usado. Comprueba que esté bien escrito.',
  nameMissing: 'Introduce un nombre de 255 caracteres como máximo.',
  appPasswordTaken: 'Ya tienes una contraseña de aplicación con este nombre. Elige otro nombre.',
  appPasswordsFull: 'Has alcanzado el número máximo de contraseñas de aplicación. Revoca alguna que ya no uses.',
  documentNone:
    'Tu dominio no publica ningún documento que se pueda servir aquí. Publícalo allí primero y vuelve a intentarlo.',
  documentPath: 'Aquí solo se puede servir una identidad que sea un dominio completo, sin ruta.',
  alreadyHere:
    'Tu cuenta ya está aquí. Si tu mudanza ha empezado, inicia sesión aquí con el nombre de usuario y la contraseña que elegiste.',
  identityUnreadable: 'Tu identidad no se puede leer en este momento. Inténtalo más tarde.',
  identityElsewhere:
    'Tu identidad no está bajo el control de este servidor. Si te has mudado a otro servidor, inicia sesión allí.',
  identityOtherServer: 'Tu identidad apunta a otro servidor. Si te has mudado allí, inicia sesión allí.',
  identityOtherKey:
    'Tu identidad indica una clave de firma que este servidor no tiene. Quien tenga tu clave de recuperación puede corregirlo.',
  tooManyMinute: 'Demasiados intentos. Espera un minuto y vuelve a intentarlo.',
  tooMany: 'Demasiados intentos. Espera unos minutos y vuelve a intentarlo.',
  codeWrong: 'Este código es incorrecto. Compruébalo o usa uno nuevo.',
  codeExpired: 'Este código ha caducado. Pide uno nuevo.',
  factorWanted:
    'El servidor anterior pide un código, que te ha enviado por correo. Introdúcelo junto con la contraseña.',
  mailRefused:
    'El servidor de correo rechazó el mensaje, así que no se ha enviado. Comprueba la dirección de correo de la cuenta.',
  mailLater: 'Todavía no se ha podido enviar el correo. Llegará en cuanto el servidor de correo lo acepte.',
  upstream: 'Un servicio del que esto depende no responde. No se ha cambiado nada. Inténtalo de nuevo en un momento.',
  signInMissing: 'Introduce tu nombre de usuario o correo electrónico y tu contraseña.',
  signInWrong: 'La cuenta o la contraseña es incorrecta. Las contraseñas de aplicación no sirven aquí.',
  takenDown: 'Esta cuenta ha sido suspendida. Ponte en contacto con el operador de este servidor.',
  delegateUnknown: 'No es el nombre de usuario de una cuenta activa en este servidor.',
  delegateSelf: 'Es tu propia cuenta.',
  delegateKnown: 'Esta cuenta ya actúa por la tuya o está invitada a hacerlo.',
  delegatesFull: 'No pueden actuar más personas por una cuenta. Retira antes el acceso de alguna.',
  invitationOver: 'Esta invitación ya no está abierta.',
  endPassed: 'Elige un día que no haya pasado.',
  keyKnown: 'Tu identidad ya tiene esta clave.',
  deletionRefused: 'El código o la contraseña no es correcto. Comprueba ambos.',
  deletionIncomplete: 'Introduce el código del correo y tu contraseña.',
  scopeUnknown: 'Uno de estos scopes no se conoce, o solo puede tenerlo la propia cuenta. Corrígelo o quítalo.',
  factorMailed:
    'Tu cuenta de este servidor pide un segundo factor. Te hemos enviado un código por correo: introdúcelo junto con la contraseña.',
  factorApp:
    'Tu cuenta de este servidor pide un segundo factor. Introduce un código de tu app de autenticación o un código de recuperación.',
  tooManyCodes: 'Demasiados códigos incorrectos. Espera una hora y vuelve a intentarlo.',
  uploadBroken: 'La subida se ha interrumpido. No se ha cambiado nada. Vuelve a intentarlo.',
  uploadTwice: 'Elige un solo archivo.',
  archiveForeign: 'Este es el archivo de datos de otra cuenta. Elige uno tuyo.',
  uploadLarge: 'Este archivo es más grande de lo que este servidor acepta para tu cuenta.',
  uploadSlow:
    'La subida era demasiado lenta y el servidor la ha terminado. Vuelve a intentarlo con una conexión mejor.',
  passkeyRefused: 'Esta llave de acceso no se ha aceptado. Vuelve a intentarlo o inicia sesión de otra forma.',
  passkeyLate: 'Ha tardado demasiado. Vuelve a usar tu llave de acceso.',
  passkeyTaken: 'Esta llave de acceso ya está en uso. Usa otro dispositivo u otra llave de acceso.',
  passkeysFull: 'Has alcanzado el número máximo de llaves de acceso. Elimina una que ya no uses.',
  passkeyCopied:
    'Esta llave de acceso ha indicado un contador antiguo, así que podría haber una copia. Inicia sesión de otra forma y sustituye la llave.',
  passkeyOther: 'Esta llave de acceso es de otra cuenta. Usa una de la cuenta que has elegido.',
  factorRecovery: 'Tu cuenta aquí inicia sesión con una llave de acceso. Escribe uno de sus códigos de recuperación.',
  signInLate: 'Ha tardado demasiado. Vuelve a iniciar sesión.',
  accountUnknown: 'No hay ninguna cuenta con este nombre de usuario o DID.',
  plcOnly: 'Solo una identidad que empiece por did:plc: puede mudarse únicamente con una clave.',
  keyNotNamed: 'Esta clave no está entre las claves de rotación de tu identidad. Introduce una que lo esté.',
  secretKey: 'Esto no es una clave secreta que pueda firmar. Empieza por z y tiene unos cincuenta caracteres.',
  signature:
    'Introduce la clave secreta de una de las claves de rotación de tu identidad, o la operación tal como se muestra, firmada con una de ellas.',
  shownAgain: 'Lo que pasará con tu identidad no es lo que se te mostró: revisa sus claves otra vez.',
} as const
