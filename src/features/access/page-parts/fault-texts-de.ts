export const faultGerman = {
  elsewhere:
    'Du hast dich in einem anderen Tab an- oder abgemeldet, seit diese Seite angezeigt wurde. Bitte prüfe das Konto und entscheide dann noch einmal.',
  handleChars:
    'Ein Handle besteht aus Buchstaben, Ziffern und Bindestrichen und beginnt und endet nicht mit einem Bindestrich.',
  handleEnding: 'Handles dürfen diese Endung nicht haben. Bitte wähle ein anderes.',
  handleWord: 'Dieses Handle enthält ein Wort, das hier nicht erlaubt ist. Bitte wähle ein anderes.',
  handleDots: 'Unter unserer Domain besteht ein Handle aus Buchstaben, Ziffern und Bindestrichen, ohne Punkte.',
  handleLong: 'Dieses Handle ist zu lang. Bitte verwende höchstens 63 Zeichen vor dem Punkt.',
  handleShort: 'Dieses Handle ist zu kurz. Bitte verwende mindestens drei Zeichen.',
  handleReserved: 'Dieses Handle ist reserviert. Bitte wähle ein anderes.',
  handleTaken: 'Dieses Handle ist schon vergeben. Bitte wähle ein anderes.',
  handleOwnDomain:
    'Ein neues Konto bekommt ein Handle unter unserer eigenen Domain. Sobald du ein Konto hast, kannst du zu deiner eigenen Domain wechseln.',
  handleUnresolved:
    'Diese Domain verweist noch nicht auf dein Konto. Veröffentliche den Eintrag oder die Datei unten und prüfe dann noch einmal.',
  handleNotInDocument:
    'Dein DID-Dokument nennt dieses Handle nicht. Bitte trage es dort zuerst ein und versuche es dann noch einmal.',
  handleUnusable: 'Dieses Handle kann nicht verwendet werden. Bitte wähle ein anderes.',
  handleTakenOrReserved: 'Dieses Handle ist schon vergeben oder reserviert. Bitte wähle ein anderes.',
  signUpLate:
    'Das hat zu lange gedauert, oder es gab inzwischen einen anderen Versuch. Bitte versuche, dich anzumelden. Wenn das nicht geht, registriere dich noch einmal.',
  emailMissing: 'Bitte gib deine E-Mail-Adresse ein.',
  emailTaken: 'Diese E-Mail-Adresse gehört hier zu einem anderen Konto. Bitte verwende eine andere.',
  emailUnusable:
    'Diese E-Mail-Adresse kann nicht verwendet werden. Bitte prüfe sie auf Tippfehler, oder verwende eine andere. Falls sie hier schon ein Konto hat, haben wir eine E-Mail an sie geschickt.',
  emailChanged: 'Deine Adresse wurde geändert, seit diese Seite angezeigt wurde. Bitte öffne die Seite noch einmal.',
  emailNone: 'Dein Konto hat keine E-Mail-Adresse. Bitte füge zuerst eine hinzu.',
  passwordMissing: 'Bitte wähle ein Passwort.',
  passwordShort: 'Dieses Passwort ist zu kurz. Bitte verwende mindestens {chars} Zeichen.',
  passwordLong: 'Dieses Passwort ist zu lang. Bitte wähle ein kürzeres.',
  passwordNotCurrent: 'Das ist nicht dein aktuelles Passwort. App-Passwörter funktionieren hier nicht.',
  passwordUnusable: 'Dieses Passwort kann nicht verwendet werden. Bitte wähle ein anderes.',
  questionWrong: 'Die Frage hat eine andere Antwort. Wenn du sie nicht kennst, frag den Betreiber dieses Servers.',
  workMissing:
    'Dein Browser hat nicht gerechnet, wie diese Seite es verlangt, oder es ist zu lange her. Bitte versuche es noch einmal, mit JavaScript.',
  walletKey:
    'Das ist nicht der öffentliche Schlüssel einer Wallet. Er beginnt mit did:key:z und ist etwa sechzig Zeichen lang.',
  inviteMissing: 'Für die Registrierung hier brauchst du einen Einladungscode. Bitte gib deinen ein.',
  inviteInvalid: 'Dieser Einladungscode ist ungültig oder wurde schon verwendet. Bitte prüfe ihn auf Tippfehler.',
  nameMissing: 'Bitte gib einen Namen mit höchstens 255 Zeichen ein.',
  appPasswordTaken: 'Du hast schon ein App-Passwort mit diesem Namen. Bitte wähle einen anderen Namen.',
  appPasswordsFull:
    'Du hast die größte Zahl von App-Passwörtern erreicht. Bitte widerrufe eines, das du nicht mehr brauchst.',
  documentNone:
    'Deine Domain veröffentlicht kein Dokument, das hier bereitgestellt werden könnte. Veröffentliche es dort zuerst und versuche es dann noch einmal.',
  documentPath: 'Hier kann nur eine Identität bereitgestellt werden, die eine ganze Domain ohne Pfad ist.',
  alreadyHere:
    'Dein Konto ist schon hier. Wenn dein Umzug begonnen hat, melde dich hier mit dem Handle und dem Passwort an, die du gewählt hast.',
  identityUnreadable: 'Deine Identität kann gerade nicht gelesen werden. Bitte versuche es später noch einmal.',
  identityElsewhere:
    'Deine Identität wird nicht von diesem Server verwaltet. Wenn du zu einem anderen Server umgezogen bist, melde dich dort an.',
  identityOtherServer:
    'Deine Identität nennt einen anderen Server. Wenn du dorthin umgezogen bist, melde dich dort an.',
  identityOtherKey:
    'Deine Identität nennt einen Signaturschlüssel, den dieser Server nicht besitzt. Wer deinen Wiederherstellungsschlüssel hat, kann das berichtigen.',
  tooManyMinute: 'Zu viele Versuche. Bitte warte eine Minute und versuche es dann noch einmal.',
  tooMany: 'Zu viele Versuche. Bitte warte ein paar Minuten und versuche es dann noch einmal.',
  codeWrong: 'Dieser Code ist falsch. Bitte prüfe ihn, oder nimm einen neuen.',
  codeExpired: 'Dieser Code ist abgelaufen. Bitte fordere einen neuen an.',
  factorWanted:
    'Der alte Server verlangt einen Code, den er dir per E-Mail geschickt hat. Bitte gib ihn zusammen mit dem Passwort ein.',
  mailRefused:
    'Der Mailserver hat die Mail abgelehnt, sie wurde nicht gesendet. Bitte prüfe die E-Mail-Adresse des Kontos.',
  mailLater: 'Die Mail konnte noch nicht gesendet werden. Sie kommt an, sobald der Mailserver sie annimmt.',
  upstream:
    'Ein Dienst, der dafür gebraucht wird, antwortet nicht. Es wurde nichts geändert. Bitte versuche es gleich noch einmal.',
  signInMissing: 'Bitte gib dein Handle oder deine E-Mail-Adresse und dein Passwort ein.',
  signInWrong: 'Das Konto oder das Passwort ist falsch. App-Passwörter funktionieren hier nicht.',
  takenDown: 'Dieses Konto wurde gesperrt. Bitte wende dich an den Betreiber dieses Servers.',
  delegateUnknown: 'Das ist nicht das Handle eines aktiven Kontos auf diesem Server.',
  delegateSelf: 'Das ist dein eigenes Konto.',
  delegateKnown: 'Dieses Konto handelt schon für deines oder ist dazu eingeladen.',
  delegatesFull: 'Mehr Personen können nicht für ein Konto handeln. Bitte beende zuerst den Zugriff von einer.',
  invitationOver: 'Diese Einladung ist nicht mehr offen.',
  endPassed: 'Bitte wähle einen Tag, der noch nicht vorbei ist.',
  keyKnown: 'Deine Identität hat diesen Schlüssel schon.',
  deletionRefused: 'Der Code oder das Passwort ist falsch. Bitte prüfe beide.',
  deletionIncomplete: 'Bitte gib den Code aus der E-Mail und dein Passwort ein.',
  scopeUnknown:
    'Einer dieser Scopes ist unbekannt, oder nur das Konto selbst darf ihn haben. Bitte berichtige oder entferne ihn.',
  factorMailed:
    'Dein Konto hier verlangt einen zweiten Faktor. Wir haben dir einen Code gemailt: Bitte gib ihn zusammen mit dem Passwort ein.',
  factorApp:
    'Dein Konto hier verlangt einen zweiten Faktor. Bitte gib einen Code deiner Authenticator-App oder einen Wiederherstellungscode ein.',
  tooManyCodes: 'Zu viele falsche Codes. Bitte warte eine Stunde und versuche es dann noch einmal.',
  uploadBroken: 'Das Hochladen ist abgebrochen. Nichts wurde geändert. Bitte versuche es noch einmal.',
  uploadTwice: 'Bitte wähle nur eine Datei aus.',
  archiveForeign: 'Das ist das Archiv eines anderen Kontos. Bitte wähle eines von dir aus.',
  uploadLarge: 'Diese Datei ist größer, als dieser Server für dein Konto annimmt.',
  uploadSlow:
    'Das Hochladen war zu langsam, deshalb hat der Server es beendet. Bitte versuche es mit einer besseren Verbindung noch einmal.',
  passkeyRefused:
    'Dieser Passkey wurde nicht angenommen. Bitte versuche es noch einmal oder melde dich auf einem anderen Weg an.',
  passkeyLate: 'Das hat zu lange gedauert. Bitte verwende deinen Passkey noch einmal.',
  passkeyTaken: 'Dieser Passkey wird schon verwendet. Bitte nimm ein anderes Gerät oder einen anderen Passkey.',
  passkeysFull: 'Du hast die Höchstzahl an Passkeys erreicht. Bitte entferne einen, den du nicht mehr verwendest.',
  passkeyCopied:
    'Dieser Passkey hat einen alten Zählerstand gemeldet, es könnte also eine Kopie geben. Bitte melde dich auf einem anderen Weg an und ersetze den Passkey.',
  passkeyOther: 'Dieser Passkey gehört zu einem anderen Konto. Bitte verwende einen des Kontos, das du gewählt hast.',
  factorRecovery:
    'Dein Konto hier meldet sich mit einem Passkey an. Bitte gib einen seiner Wiederherstellungscodes ein.',
  signInLate: 'Das hat zu lange gedauert. Bitte melde dich noch einmal an.',
  accountUnknown: 'Es gibt kein Konto mit diesem Handle oder dieser DID.',
  plcOnly: 'Nur eine Identität, die mit did:plc: beginnt, kann allein mit einem Schlüssel umziehen.',
  keyNotNamed:
    'Deine Identität nennt diesen Schlüssel nicht unter ihren Rotationsschlüsseln. Bitte gib einen ein, den sie nennt.',
  secretKey: 'Das ist kein geheimer Schlüssel, der signieren kann. Er beginnt mit z und ist etwa fünfzig Zeichen lang.',
  signature:
    'Bitte gib den geheimen Schlüssel zu einem der Rotationsschlüssel deiner Identität ein, oder die Operation genau wie gezeigt, von einem solchen Schlüssel signiert.',
  shownAgain:
    'Was aus deiner Identität wird, ist nicht das, was dir gezeigt wurde: Sieh dir ihre Schlüssel noch einmal an.',
} as const
