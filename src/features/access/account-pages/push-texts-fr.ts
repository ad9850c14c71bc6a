export const pushFrench = {
  title: 'Notifications',
  lead: 'Appareils avertis lorsqu’une application ou un programme demande l’accès à votre compte. Les messages sont chiffrés pour l’appareil. Un appareil que vous retirez n’en reçoit plus tant que son portefeuille ne l’a pas enregistré de nouveau.',
  none: 'Aucun appareil n’est enregistré.',
  since: 'Depuis le {day}',
  sincePushed: 'Depuis le {day}, dernière notification le {pushed}',
  device: 'Appareil {id}',
  remove: 'Retirer',
  removeDevice: 'Retirer l’appareil {id} de {name}',
} as const
