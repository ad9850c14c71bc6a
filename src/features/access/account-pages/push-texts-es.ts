export const pushSpanish = {
  title: 'Notificaciones',
  lead: 'Dispositivos que reciben un aviso cuando una app o un programa pide acceso a tu cuenta. Los mensajes van cifrados para el dispositivo. Un dispositivo que quites no recibe ninguno hasta que su cartera lo registre de nuevo.',
  none: 'No hay ningún dispositivo registrado.',
  since: 'Desde el {day}',
  sincePushed: 'Desde el {day}, último aviso el {pushed}',
  device: 'Dispositivo {id}',
  remove: 'Quitar',
  removeDevice: 'Quitar el dispositivo {id} de {name}',
} as const
