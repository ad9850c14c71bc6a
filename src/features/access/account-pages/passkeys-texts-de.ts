export const passkeysGerman = {
  heading: 'Passkeys',
  use: 'Dein Telefon, dein Computer oder ein Sicherheitsschlüssel meldet dich an, nachdem das Gerät dich an PIN, Finger oder Gesicht erkannt hat. Ein Passwort brauchst du dann nicht. Ein Passkey gilt nur auf dieser Website, deshalb kann dich niemand dazu bringen, ihn anderswo zu verwenden.',
  needsScript:
    'Dein Browser führt auf dieser Seite keine Skripte aus. Ein Passkey braucht eines: Bitte erlaube es oder nimm einen anderen Browser.',
  full: 'Du hast so viele Passkeys, wie ein Konto haben kann. Entferne einen, um einen anderen hinzuzufügen.',
  unavailable:
    'Passkeys brauchen eine verschlüsselte Verbindung zu einem Server mit einem Namen. Beides hat dieser nicht.',
  add: 'Passkey hinzufügen',
  addLead:
    'Wähle einen Namen, an dem du das Gerät wiedererkennst. Dein Browser bittet dich dann, den Passkey anzulegen.',
  name: 'Name des Geräts',
  make: 'Passkey anlegen',
  cancel: 'Abbrechen',
  unknownDevice: 'Mein Gerät',
  used: 'Hinzugefügt {added}, zuletzt verwendet {used}',
  unused: 'Hinzugefügt {added}, nie verwendet',
  synced: 'Deine anderen Geräte haben ihn vielleicht auch.',
  elsewhere: 'Er wurde für eine frühere Adresse dieses Servers angelegt und gilt nicht mehr.',
  rename: 'Umbenennen',
  renameOf: '{name} umbenennen',
  remove: 'Entfernen',
  removeOf: '{name} entfernen',
  removeQuestion: 'Einen Passkey entfernen',
  removeSubmit: 'Passkey entfernen',
  wasAdded: 'Der Passkey ist hinzugefügt. Ab jetzt kannst du dich mit ihm anmelden.',
  wasRenamed: 'Der Passkey hat seinen neuen Namen.',
  wasRemoved: 'Der Passkey ist entfernt und öffnet dein Konto nicht mehr. Lösche ihn auch auf deinem Gerät.',
} as const
