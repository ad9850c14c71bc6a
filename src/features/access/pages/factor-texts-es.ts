export const factorSpanish = {
  title: 'Un paso más',
  mailed: 'Hemos enviado un código a la dirección de correo de tu cuenta. Es válido durante 15 minutos.',
  app: 'Escribe el código que tu app de autenticación muestra ahora, o uno de tus códigos de recuperación.',
  passkey: 'Usa tu llave de acceso o escribe uno de tus códigos de recuperación.',
  appOrPasskey:
    'Usa tu llave de acceso, o escribe el código que tu app de autenticación muestra ahora o uno de tus códigos de recuperación.',
  code: 'Código',
  trust: 'No volver a preguntar en este navegador durante 30 días',
  proceed: 'Continuar',
  another: 'Enviar otro código',
  anotherSent: 'Hemos enviado otro código. Solo funciona el más reciente.',
  proveTitle: 'Confirma que eres tú',
  proveLead:
    'Iniciaste sesión como {account} hace más de una hora. Introduce tu contraseña otra vez antes de continuar.',
  cancel: 'Cancelar',
} as const
