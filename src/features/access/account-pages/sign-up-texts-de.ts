export const signUpGerman = {
  title: 'Konto erstellen',
  lead: 'Deine Beiträge, Follows und alles andere werden auf {host} gespeichert. Du kannst jederzeit umziehen.',
  submit: 'Konto erstellen',
  haveAccount: 'Ich habe ein Konto',
  haveAccountElsewhere: 'Ich habe eines auf einem anderen Server',
  domain: 'Domain des Handles',
  handleHint:
    'So finden und erwähnen dich andere. Buchstaben, Ziffern und Bindestriche. Du kannst es später ändern, zum Beispiel zu deiner eigenen Domain.',
  emailHint: 'Wir schicken Codes und Sicherheitshinweise dorthin. Sie ist nicht öffentlich.',
  inviteCode: 'Einladungscode',
  inviteHint: 'Von jemandem, der hier ein Konto hat, oder vom Betreiber dieses Servers.',
  agree: 'Mit dem Erstellen eines Kontos stimmst du den <terms>Nutzungsbedingungen</terms> zu.',
  wallet: 'Ich habe eine Wallet',
  walletOnly: 'Ich habe eine Wallet und möchte kein Passwort',
  walletAbout:
    'Ein Wallet-Schlüssel, den du hier einträgst, steht über dem Schlüssel dieses Servers: Mit ihm kannst du dein Konto auch dann umziehen, wenn dieser Server nicht mitwirkt.',
  walletOnlyAbout:
    'Ohne Passwort meldest du dich mit der Wallet an: hier und in Apps, die einen Code dafür zeigen. Für andere Apps erstellst du hier ein App-Passwort. Ein Passwort kannst du später mit einem Code per E-Mail setzen, aber der Schlüssel lässt sich nicht ersetzen: Wenn du die Wallet verlierst und keine Wiederherstellungsteile hast, kannst du ohne Hilfe dieses Servers nicht umziehen.',
  walletKey: 'Öffentlicher Schlüssel deiner Wallet',
  walletKeyHint: 'Er beginnt mit did:key:z. Deine Wallet zeigt ihn an; der geheime Schlüssel verlässt die Wallet nie.',
  questionHint: 'So möchte der Betreiber dich kennenlernen. Groß- und Kleinschreibung und Leerzeichen sind egal.',
  working:
    'Dein Browser rechnet kurz, damit Programme nicht massenhaft Konten erstellen. Das dauert ein paar Sekunden.',
  workNeedsScript:
    'Diese Seite braucht JavaScript: Dein Browser muss kurz rechnen, damit Programme nicht massenhaft Konten erstellen. Ohne JavaScript bitte den Betreiber dieses Servers um ein Konto.',
} as const
