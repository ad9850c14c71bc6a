export const addedKeyGerman = {
  title: 'Ein eigener Schlüssel',
  lead: 'Mit einem Schlüssel, der über dem dieses Servers steht, kannst du mit deinem Konto umziehen, ohne dass hier jemand hilft, auch wenn es diesen Server nicht mehr gibt.',
  done: 'Der Schlüssel ist hinzugefügt. Er ist jetzt der höchste Schlüssel deiner Identität. Verwahre seinen geheimen Teil sicher: Wer ihn hat, bestimmt über deine Identität.',
  codeNeeded: 'Um einen hinzuzufügen, brauchst du den Code, den wir an deine E-Mail-Adresse senden.',
  make: 'Einen Schlüssel für mich erstellen',
  shownOnce: 'Wir zeigen ihn einmal. Dieser Server behält ihn nicht.',
  useWallet: 'Den Schlüssel einer Wallet verwenden',
  walletKey: 'Öffentlicher Schlüssel der Wallet',
  walletKeyHint: 'Er beginnt mit did:key:z. Gib hier keinen geheimen Schlüssel ein.',
  sendCode: 'Code senden',
  codeSent: 'Wir haben einen Code an deine E-Mail-Adresse gesendet. Er gilt 15 Minuten lang.',
  secret:
    'Dies ist dein geheimer Schlüssel. Er wird nur einmal gezeigt, also verwahre ihn jetzt, in einem Passwortmanager oder auf Papier. Ohne ihn nützt der Schlüssel unten nichts und lässt sich auch nicht wieder entfernen.',
  toAdd: 'Neuer Schlüssel',
  warning:
    'Mach nur weiter, wenn du den geheimen Schlüssel hast. Der Schlüssel wird über allen anderen stehen, und dieser Server kann ihn nicht wieder wegnehmen.',
  add: 'Diesen Schlüssel hinzufügen',
} as const
