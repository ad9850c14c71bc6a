export const pushGerman = {
  title: 'Benachrichtigungen',
  lead: 'Geräte, die benachrichtigt werden, wenn eine App oder ein Programm Zugriff auf dein Konto verlangt. Die Nachrichten sind für das Gerät verschlüsselt. Ein Gerät, das du entfernst, bekommt keine, bis seine Wallet es wieder registriert.',
  none: 'Kein Gerät ist registriert.',
  since: 'Seit {day}',
  sincePushed: 'Seit {day}, zuletzt benachrichtigt {pushed}',
  device: 'Gerät {id}',
  remove: 'Entfernen',
  removeDevice: 'Das Gerät {id} von {name} entfernen',
} as const
