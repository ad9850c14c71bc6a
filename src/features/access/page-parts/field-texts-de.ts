export const fieldGerman = {
  identifier: 'Handle oder E-Mail-Adresse',
  password: 'Passwort',
  newPassword: 'Neues Passwort',
  newPasswordHint: 'Mindestens {chars} Zeichen. Ein Passwortmanager kann eines für dich erzeugen.',
  code: 'Code aus der E-Mail',
  remember: 'In diesem Browser angemeldet bleiben',
  rememberHint: 'Höchstens 30 Tage. Nicht auf einem geteilten Gerät.',
  handle: 'Handle',
  email: 'E-Mail-Adresse',
  chooseAccount: 'Konto auswählen',
  more: { one: '{count} weiteres', other: '{count} weitere' },
  anotherAccount: 'Ein anderes Konto',
  usePasskey: 'Passkey verwenden',
  passkeyNotUsed: 'Es wurde kein Passkey verwendet. Bitte versuche es noch einmal oder nimm einen anderen Weg.',
  passkeyNotMade:
    'Es wurde kein Passkey angelegt. Vielleicht hat dein Gerät schon einen für dieses Konto. Bitte versuche es noch einmal.',
} as const
