export const fieldSpanish = {
  identifier: 'Nombre de usuario o correo electrónico',
  password: 'Contraseña',
  newPassword: 'Contraseña nueva',
  newPasswordHint: 'Al menos {chars} caracteres. Un gestor de contraseñas puede generar una por ti.',
  code: 'Código del correo',
  remember: 'Mantener la sesión iniciada en este navegador',
  rememberHint: '30 días como máximo. No en un dispositivo compartido.',
  handle: 'Nombre de usuario',
  email: 'Correo electrónico',
  chooseAccount: 'Elige una cuenta',
  more: { one: '{count} más', many: '{count} más', other: '{count} más' },
  anotherAccount: 'Otra cuenta',
  usePasskey: 'Usar una llave de acceso',
  passkeyNotUsed: 'No se ha usado ninguna llave de acceso. Vuelve a intentarlo o elige otra forma.',
  passkeyNotMade:
    'No se ha creado ninguna llave de acceso. Puede que tu dispositivo ya tenga una para esta cuenta. Vuelve a intentarlo.',
} as const
