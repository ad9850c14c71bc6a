export const noticeSpanish = {
  handleChangedSubject: 'Se cambió tu nombre de usuario',
  handleChanged: 'El nombre de usuario de tu cuenta es ahora {handle}.',
  handleUnpublished:
    'El nombre de usuario de tu cuenta es ahora {handle}. Tu cartera tiene que añadirlo a tu identidad, porque solo tu propia clave puede cambiarla. Hasta entonces, los demás ven la cuenta sin un nombre de usuario válido.',
  handleRemovedSubject: 'Se quitó un nombre de usuario de tu cuenta',
  handleRemoved: 'Tu cuenta ya no tiene el nombre de usuario {handle}.',
  emailChangedSubject: 'Se cambió tu dirección de correo',
  emailChanged:
    'Tu cuenta tiene ahora otra dirección de correo. Este mensaje va a tu dirección anterior; los siguientes irán a la nueva.',
  passwordChangedSubject: 'Se cambió tu contraseña',
  passwordChanged:
    'Tu cuenta tiene una contraseña nueva. Se cerraron todas las sesiones que se abrieron con la anterior.',
  passwordResetSubject: 'Se restableció tu contraseña',
  passwordReset:
    'Se puso una contraseña nueva con un código que te enviamos por correo. Todas las apps, los navegadores y los programas perdieron el acceso.',
  emailFactorOnSubject: 'Para iniciar sesión ahora hace falta un código de tu correo',
  emailFactorOn:
    'A partir de ahora, para iniciar sesión con tu contraseña también hace falta un código que te enviamos por correo. Las contraseñas de aplicación funcionan sin código.',
  emailFactorOffSubject: 'Para iniciar sesión ya no hace falta un código de tu correo',
  emailFactorOff:
    'Tu contraseña vuelve a bastar para abrir tu cuenta: ya no pedimos un código que te enviamos por correo.',
  totpAddedSubject: 'Se añadió una app de autenticación a tu cuenta',
  totpAdded:
    'A partir de ahora, para iniciar sesión con tu contraseña también hace falta un código de la app o uno de tus códigos de recuperación. Las contraseñas de aplicación funcionan sin código.',
  totpRemovedSubject: 'Se quitó la app de autenticación de tu cuenta',
  totpRemoved:
    'Para iniciar sesión ya no hace falta un código de la app, y los códigos de recuperación dejaron de valer.',
  passkeyAddedSubject: 'Se añadió una llave de acceso a tu cuenta',
  passkeyAdded:
    'Quien tenga el dispositivo con la llave de acceso, y su PIN, dedo o cara, puede iniciar sesión en tu cuenta. A partir de ahora, para iniciar sesión con tu contraseña también hace falta la llave de acceso o uno de tus códigos de recuperación. Las contraseñas de aplicación funcionan sin ella.',
  passkeyRemovedSubject: 'Se eliminó una llave de acceso de tu cuenta',
  passkeyRemoved:
    'La llave de acceso ya no abre tu cuenta. La página de tu cuenta muestra qué hace falta ahora para iniciar sesión.',
  passkeyCopiedSubject: 'Puede que se haya copiado una de tus llaves de acceso',
  passkeyCopied:
    'Se usó una llave de acceso de tu cuenta, pero indicó menos usos de los que conocemos. Puede que haya una copia. Rechazamos el inicio de sesión. Si vuelve a ocurrir, elimina la llave de acceso y crea otra.',
  factorsResetSubject: 'Se quitaron los segundos factores de tu cuenta',
  factorsReset:
    'El operador de este servidor quitó los segundos factores de tu cuenta, como se hace para quien los ha perdido. Ahora basta tu contraseña para abrirla.',
  recoveryCodesMadeSubject: 'Se reemplazaron tus códigos de recuperación',
  recoveryCodesMade: 'Se crearon códigos de recuperación nuevos para tu cuenta. Los anteriores dejaron de valer.',
  recoveryCodeUsedSubject: 'Se usó un código de recuperación',
  recoveryCodeUsed:
    'Se usó uno de los códigos de recuperación de tu cuenta en lugar de tu segundo factor, junto con tu contraseña. No vale otra vez.',
  factorBlockedSubject: 'Alguien introdujo códigos incorrectos para tu cuenta',
  factorBlocked:
    'Un inicio de sesión en tu cuenta tenía la contraseña correcta, pero demasiados códigos incorrectos. Durante una hora no se acepta ningún código.',
  appPasswordMadeSubject: 'Se creó una contraseña de aplicación',
  appPasswordMade: 'Tu cuenta tiene una contraseña de aplicación nueva. Quien la tenga puede usar tu cuenta.',
  appPasswordNamed:
    'Tu cuenta tiene una contraseña de aplicación nueva, llamada «{name}». Quien la tenga puede usar tu cuenta.',
  changedElsewhereSubject: 'Se cambió tu identidad en otro lugar',
  changedElsewhere:
    'Tu identidad cambió por una operación que no vino de este servidor. También tu propia cartera, u otro servidor al que te mudas, hace operaciones así.',
  changedElsewhereParts:
    'Tu identidad cambió por una operación que no vino de este servidor. Cambió lo siguiente: {parts}. {undo} También tu propia cartera, u otro servidor al que te mudas, hace operaciones así.',
  partEnded: 'la propia identidad, que ha terminado',
  partServer: 'el servidor de la cuenta',
  partHandle: 'el nombre de usuario',
  partSigningKey: 'la clave que firma las publicaciones',
  partRotationKeys: 'las claves que pueden cambiar la identidad',
  partOther: 'otras claves, servicios o nombres',
  partNone: 'nada que siga siendo distinto',
  undoNone: 'Se firmó con la clave más alta de la identidad, así que ninguna otra clave puede deshacerla.',
  undoBy: 'Hasta el {time}, una clave más alta de la identidad puede deshacerla: {keys}.',
  ownKeyAddedSubject: 'Se añadió una clave a tu identidad',
  ownKeyAdded:
    'Se añadió una clave a tu identidad, por encima de todas las demás. Quien tenga su clave secreta puede mudar tu cuenta sin este servidor. Durante tres días, solo podría deshacerlo una clave que ya estuviera antes por encima de las de este servidor.',
  ownKeyInDoubtSubject: 'Puede que se haya añadido una clave a tu identidad',
  ownKeyInDoubt:
    'Se iba a añadir una clave a tu identidad, por encima de todas las demás, y el directorio de identidades no respondió: puede que tenga la clave. La página de tu cuenta muestra las claves. Quien tenga la clave secreta puede mudar tu cuenta sin este servidor.',
  hostingBegunSubject: 'El documento de tu identidad se sirve ahora aquí',
  hostingBegun:
    'Este servidor sirve ahora el documento de tu identidad en tu dominio. Mientras lo haga, quien tenga una sesión abierta en tu cuenta puede cambiar ese documento y, con él, las claves y el servidor de tu identidad.',
  documentEditedSubject: 'Se cambió el documento de tu identidad',
  documentEdited:
    'El documento de tu identidad, que este servidor sirve en tu dominio, se cambió desde una sesión de tu cuenta. Indica el servidor de tu cuenta y la clave que firma tus publicaciones.',
  signingKeyReplacedSubject: 'Se reemplazó la clave de firma de tu cuenta',
  signingKeyReplaced:
    'Se reemplazó la clave que firma las publicaciones de tu cuenta. Para ello hizo falta una clave de tu identidad. Para tus apps no cambia nada.',
  transferAcceptedSubject: 'Un dispositivo va a asumir tu cuenta',
  transferAccepted:
    'Un dispositivo aceptó el traspaso de tu cuenta, con el código que mostró tu cartera. Cuando se complete el traspaso, se cerrará la sesión de todas las apps que entraron con tu contraseña o tu clave.',
  transferCompletedSubject: 'Tu cuenta se traspasó a otro dispositivo',
  transferCompleted:
    'Se completó el traspaso de tu cuenta a otro dispositivo. Se cerró la sesión de todas las apps que entraron con tu contraseña o tu clave. Las contraseñas de aplicación y las apps que autorizaste siguen funcionando.',
  agentAsksSubject: 'Un programa pide acceso a tu cuenta',
  agentAsks:
    'Un programa se registró aquí y pide acceso a tu cuenta. No puede hacer nada hasta que introduzcas el código que muestra.',
  agentAsksOf:
    'Un programa que, según {issuer}, actúa por ti se registró aquí y pide acceso a tu cuenta. No puede hacer nada hasta que introduzcas el código que muestra.',
  agentConfirmedSubject: 'Un programa tiene ahora acceso a tu cuenta',
  agentConfirmed:
    'Un programa puede actuar ahora por tu cuenta, porque se introdujo el código que mostró. Puedes retirarle el acceso cuando quieras.',
  agentConfirmedNamed:
    'Un programa puede actuar ahora por tu cuenta, porque se introdujo el código que mostró. Se presenta como «{name}». Puedes retirarle el acceso cuando quieras.',
  agentEndedSubject: 'Un programa ya no tiene acceso a tu cuenta',
  agentEnded:
    'El operador de este servidor retiró el acceso a un programa que actuaba por tu cuenta, o anuló su petición de acceso.',
  agentEndedNamed:
    'El operador de este servidor retiró el acceso a un programa que actuaba por tu cuenta, o anuló su petición de acceso. Se presenta como «{name}».',
  agentRefusedSubject: 'Se negó a un programa el acceso a tu cuenta',
  agentRefused:
    'Se rechazó a un programa que pidió acceso a tu cuenta: se le había retirado antes, u otra persona introdujo su código.',
  delegationOfferedSubject: 'Te invitan a actuar por otra cuenta',
  delegationOffered:
    'La cuenta de otra persona te invita a actuar por ella. La página de tu cuenta muestra qué podrías hacer por ella, y allí puedes aceptar o rechazar durante siete días. Hasta que aceptes, no cambia nada. Si no conoces la cuenta, rechaza la invitación o ignórala.',
  delegationOfferedBy:
    'La cuenta «{name}» te invita a actuar por ella. La página de tu cuenta muestra qué podrías hacer por ella, y allí puedes aceptar o rechazar durante siete días. Hasta que aceptes, no cambia nada. Si no conoces la cuenta, rechaza la invitación o ignórala.',
  delegateAcceptedSubject: 'Alguien actúa ahora por tu cuenta',
  delegateAccepted:
    'La cuenta invitada aceptó actuar por la tuya. La página de tu cuenta muestra qué puede hacer y qué hizo, y allí puedes ponerle fin cuando quieras.',
  delegateAcceptedNamed:
    'La cuenta «{name}» aceptó la invitación a actuar por la tuya. La página de tu cuenta muestra qué puede hacer y qué hizo, y allí puedes ponerle fin cuando quieras.',
  delegationEndedSubject: 'Alguien ya no actúa por tu cuenta',
  delegationEnded: 'El operador de este servidor retiró el acceso a una cuenta que actuaba por la tuya.',
  deletionScheduledSubject: 'Tu cuenta se eliminará',
  deletionScheduled:
    'Tu cuenta está desactivada y se eliminará pasado un tiempo. Para conservarla, vuelve a activarla antes.',
  deletionScheduledAt:
    'Tu cuenta está desactivada y se eliminará después de esta fecha: {time}. Para conservarla, vuelve a activarla antes.',
  shareRotatedSubject: 'Se reemplazó tu parte de recuperación',
  shareRotated:
    'Se reemplazó la parte de tu clave de recuperación que guarda este servidor. La parte nueva solo funciona con las otras que se crearon al mismo tiempo.',
  shareDeletedSubject: 'Se eliminó tu parte de recuperación',
  shareDeleted:
    'Este servidor ya no guarda ninguna parte de tu clave de recuperación. Sin ella, tu identidad solo se puede recuperar con tus dos partes.',
  releaseOpenedSubject: 'Se pidió la recuperación de tu cuenta',
  releaseOpenedNow:
    'Alguien usó un código que te enviamos por correo para pedir la parte de tu clave de recuperación que guarda este servidor. Se puede recoger desde ahora. Junto con otra de tus partes, da el control de tu identidad.',
  releaseOpened:
    'Alguien usó un código que te enviamos por correo para pedir la parte de tu clave de recuperación que guarda este servidor. Se puede recoger a partir del {time}. Junto con otra de tus partes, da el control de tu identidad.',
  releaseOpenedNowFormer:
    'Esta era la dirección de la cuenta hasta hace poco. Alguien usó un código que se envió a la dirección actual para pedir la parte de la clave de recuperación que guarda este servidor. Se puede recoger desde ahora. Junto con otra de las partes, da el control de la identidad.',
  releaseOpenedFormer:
    'Esta era la dirección de la cuenta hasta hace poco. Alguien usó un código que se envió a la dirección actual para pedir la parte de la clave de recuperación que guarda este servidor. Se puede recoger a partir del {time}. Junto con otra de las partes, da el control de la identidad.',
  shareReleasedSubject: 'Se entregó tu parte de recuperación',
  shareReleased:
    'El servidor entregó la parte de tu clave de recuperación que guardaba. Junto con otra de tus partes, la de tu llavero o la de papel, da el control de tu identidad.',
  shareReleasedFormer:
    'Esta era la dirección de la cuenta hasta hace poco. El servidor entregó la parte de la clave de recuperación que guardaba. Junto con otra de las partes, da el control de la identidad.',
  signInSubject: 'Nuevo inicio de sesión en tu cuenta',
  signInPassword:
    'Alguien inició sesión en tu cuenta con la contraseña, desde una app, un navegador o una red que no conocíamos.',
  signInPasskey:
    'Alguien inició sesión en tu cuenta con una llave de acceso, desde una app, un navegador o una red que no conocíamos.',
  signInWallet:
    'Alguien inició sesión en tu cuenta con una cartera que tiene una clave de su identidad, desde una app, un navegador o una red que no conocíamos.',
} as const
