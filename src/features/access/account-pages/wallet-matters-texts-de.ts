export const walletMattersGerman = {
  title: 'Deine Wallet',
  waiting: 'Wartet auf deine Antwort',
  waitingLead:
    'Jemand hat deinen Kontonamen eingegeben, um sich anzumelden. Öffne deine Wallet, um zu antworten. Erlaube nur eine Anmeldung, die du gerade selbst begonnen hast.',
  devices: 'Geräte',
  devicesLead:
    'Geräte, auf die dein Konto übertragen wurde. Ein widerrufenes Gerät kann diesen Server nicht mehr benutzen, aber seine Wallet behält ihren Schlüssel.',
  thisPage: 'diese Kontoseite',
  signIn: 'Anmeldung bei {name}',
  since: 'Seit {time}',
  sinceUsed: 'Seit {time}, zuletzt verwendet {used}',
  with: 'Mit {program}',
  network: 'Aus dem Netz {network}',
  begunOn: 'Begonnen auf {origin}',
  code: 'Code für deine Wallet: <strong>{code}</strong>',
  deny: 'Ablehnen',
  denySignIn: 'Die Anmeldung bei {name} mit dem Code {code} ablehnen',
  transferOpen:
    'Am {began} begann eine Übertragung deines Kontos auf ein anderes Gerät. Jedes Gerät mit ihrem Code kann sie bis {until} annehmen. Wenn du das nicht warst, brich sie ab.',
  transferAccepted:
    'Am {began} begann eine Übertragung deines Kontos auf ein anderes Gerät. Ein Gerät hat sie am {accepted} angenommen. Wenn sie abgeschlossen ist, wird alles andere abgemeldet. Wenn du das nicht warst, brich sie ab.',
  cancel: 'Die Übertragung abbrechen',
  revoke: 'Widerrufen',
  revokeDevice: '{name} widerrufen',
} as const
