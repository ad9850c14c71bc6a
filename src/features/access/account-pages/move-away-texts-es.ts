export const moveAwaySpanish = {
  title: 'Mudarse a otro servidor',
  heading: 'Mudar {account} a otro servidor',
  lead: 'A cualquier otro servidor de la red. Tu identidad, tus seguidores y tus publicaciones siguen siendo tuyos.',
  codeMailed: 'Te hemos enviado el código. Introdúcelo en el servidor nuevo.',
  back: 'Volver a tu cuenta',
  unreadable: 'Tu identidad no se puede leer en este momento. Inténtalo más tarde.',
  stillHere: 'Tu identidad apunta a {here}. Todavía no ha cambiado nada.',
  noServer: 'un lugar donde no hay servidor',
  goneActive: 'Tu identidad apunta ahora a {place}. La cuenta de aquí sigue activa: desactívala.',
  gone: 'Tu identidad apunta ahora a {place}, y la cuenta de aquí está desactivada.',
  goneUntil:
    'Tu identidad apunta ahora a {place}, y la cuenta de aquí está desactivada. Se eliminará después del {day}.',
  backup: '1. Haz una copia de seguridad',
  backupAbout:
    'Un archivo con tus publicaciones, imágenes y preferencias. Si algo falla a medias, puedes continuar desde él.',
  download: 'Descargar tus datos',
  ownKey: '2. Ten una clave propia',
  hasKey:
    'Tu identidad incluye una clave ajena a este servidor. Con ella puedes mudarte aunque un servidor no colabore.',
  lacksKey:
    'Con una clave de recuperación puedes mudarte aunque un servidor no colabore. Deja que el servidor nuevo añada una, si lo ofrece.',
  whoControls: 'Quién controla tu identidad',
  beginThere: '3. Empieza en el servidor nuevo',
  beginThereAbout:
    'Abre su página para mudar una cuenta e inicia sesión allí con tu nombre de usuario y la contraseña principal de esta cuenta. Él lo recoge todo de aquí.',
  enterCode: '4. Introduce el código',
  enterCodeAbout:
    'El servidor nuevo nos pide que te enviemos un código, con el que tu identidad pasa a apuntar al servidor nuevo. Si no llega, o si te mudas con otro programa, pídelo aquí. Dáselo solo al servidor al que te mudas.',
  mailCode: 'Enviarme el código',
  changeDocument: '4. Cambia tu documento',
  changeDocumentAbout: 'El servidor nuevo te dice qué clave y qué dirección publicar en el documento de tu dominio.',
  left: 'Lo que queda aquí',
  leftAbout:
    'Comprueba primero que tus publicaciones e imágenes están en el servidor nuevo. Mientras la cuenta no se elimine, se pueden volver a obtener de aquí.',
  deactivateKeep: 'Desactivarla y conservarla',
  keepAfterAll: 'Conservarla después de todo',
  deactivateDelete: 'Desactivarla y eliminarla después de {days} días',
  deleteAfter: 'Eliminarla después de {days} días',
} as const
