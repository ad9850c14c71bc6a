export const identitySpanish = {
  title: 'Tu identidad',
  heading: 'Identidad de {account}',
  lead: 'Tu identidad dura más que este servidor. Quien la controla decide qué servidor aloja tu cuenta y qué nombre de usuario tiene.',
  back: 'Volver a tu cuenta',
  'not-found': 'El directorio no conoce esta identidad. Ponte en contacto con el operador de este servidor.',
  deactivated: 'Esta identidad ha terminado.',
  unreachable: 'El directorio de identidades no responde. Inténtalo de nuevo más tarde.',
  unreadable: 'El directorio de identidades envió una respuesta no válida. Inténtalo de nuevo más tarde.',
  otherMethod: 'Este servidor no gestiona este tipo de identidad.',
  changedElsewhere: 'Cambiada en otro lugar',
  undoHow:
    'Una cartera con una de estas claves deshace el cambio con una operación que sigue a <code>{cid}</code>, la última anterior. El directorio anula entonces el cambio y todo lo posterior.',
  misfitServer: 'Tu identidad apunta a otro servidor. Las apps buscan allí tu cuenta.',
  misfitKey:
    'Tu identidad indica una clave de firma distinta de la que usa este servidor para firmar tus publicaciones. Otros servicios rechazan lo que publicas.',
  misfitHandle:
    'Tu identidad indica un nombre de usuario distinto del que tu cuenta tiene aquí. Los demás lo ven como no válido.',
  keys: 'Claves que la controlan',
  keysLead: 'Una clave puede deshacer los cambios de otra inferior durante tres días.',
  changed: 'Último cambio: {day}. Si no fuiste tú, una clave superior puede deshacerlo durante tres días.',
  onlyServer:
    'Solo este servidor puede cambiar tu identidad, así que no puedes irte sin su ayuda. Una clave de recuperación propia cambiaría eso.',
  serverFirst:
    'Una clave está fuera de este servidor, pero la de este servidor es superior y podría deshacer sus cambios.',
  outsideFirst:
    'La clave superior está fuera de este servidor. Con ella, la cuenta puede mudarse sin este servidor, y este servidor no puede deshacerlo.',
  ourKey: 'Una clave de este servidor',
  ourKeyUse: '{server} la usa para cambiar tu nombre de usuario y para ayudarte a mudarte.',
  outsideKey: 'Una clave fuera de este servidor',
  outsideKeyUse: 'Tuya, si es la clave de tu cartera o una clave de recuperación que guardas.',
  web: 'Quien controla el dominio <strong>{host}</strong> controla esta identidad.',
  webHosted:
    'Desde el {day}, {server} sirve el documento de esta identidad. Cualquier sesión de tu cuenta aquí puede cambiarlo.',
  share: 'Parte de recuperación',
  shareLead:
    'Tu cartera puede dividir su clave de recuperación en tres partes, de las que dos cualesquiera la restauran. Este servidor puede guardar una por ti. Una parte sola no sirve de nada.',
  shareNone: 'Este servidor no tiene ninguna parte de tu clave de recuperación.',
  shareHeld: 'Este servidor guarda una parte desde el {day}.',
  sharePending:
    'Alguien pidió tu parte con un código de tu correo. Se podrá recoger a partir de este momento: {time}. Si no fuiste tú, cancélalo.',
  shareCollectable:
    'Alguien pidió tu parte con un código de tu correo, y ya se puede recoger. Si no fuiste tú, cancélalo.',
  shareCollected:
    'Tu parte se entregó ({time}) y se puede volver a recoger durante una hora. Si no fuiste tú, cancélalo y reemplaza en tu cartera las claves y las partes de tu identidad.',
  startRecovery: 'Empezar la recuperación',
  startEffect: 'Envía un código a tu correo electrónico. Úsalo solo si has perdido tu cartera.',
  cancelRelease: 'Cancelar la entrega',
  cancelEffect: 'La parte no se podrá recoger hasta que se use un código nuevo.',
  deleteShare: 'Eliminar la parte',
  deleteEffect: 'Sin ella, necesitas tus dos propias partes para recuperar tu identidad.',
  document: 'Documento de tu identidad',
  documentLead:
    'Indica el servidor de tu cuenta y la clave que firma tus publicaciones. Los demás lo leen en tu propio dominio.',
  servedHere: 'Lo sirve {host}, mientras tu dominio apunte allí.',
  servedElsewhere: 'Lo sirve tu propio servidor web.',
  serveMyself: 'Servirlo por mi cuenta',
  serveMyselfEffect: 'Publica antes el contenido de abajo, o los demás no encontrarán tu cuenta.',
  letServe: 'Dejar que lo sirva {host}',
  letServeEffect:
    'Tu dominio debe apuntar entonces a {host}. Cualquier sesión de tu cuenta puede cambiar el documento, así que tu cartera no puede abrir sesiones nuevas durante ese tiempo.',
  whatToPublish: 'Qué publicar en tu propio servidor web',
  address: 'Dirección',
  type: 'Tipo',
  content: 'Contenido',
} as const
