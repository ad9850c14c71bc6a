export const mailGerman = {
  subjectOn: '{subject} ({host})',
  about: 'Es geht um das Konto {account} bei {host}.',
  accountPage: 'Dein Konto: {page}',
  when: 'Wann: {time}',
  byOperator: 'Durch: den Betreiber dieses Servers',
  program: 'Mit: {program}',
  unknownProgram: 'Mit: einer unbekannten App',
  network: 'Aus: dem Netz {network}',
  askOperator: 'Wende dich an den Betreiber dieses Servers.',
  writeOperator: 'Wende dich an den Betreiber dieses Servers: {address}.',
  confirmSubject: 'Bestätige deine E-Mail-Adresse',
  confirmUse:
    'Mit diesem Code bestätigst du, dass diese Adresse dir gehört. Er gilt einmal und {minutes} Minuten lang:',
  confirmIgnore:
    'Wenn du ihn nicht angefordert hast, kannst du diese E-Mail ignorieren: Vermutlich hat sich jemand bei der Adresse vertippt.',
  updateSubject: 'Änderung der E-Mail-Adresse angefordert',
  updateUse: 'Mit diesem Code änderst du die Adresse deines Kontos. Er gilt einmal und {minutes} Minuten lang:',
  intruder: 'Wenn du ihn nicht angefordert hast, ist jemand anderes in deinem Konto angemeldet: Ändere dein Passwort.',
  intruderWithoutPassword:
    'Wenn du ihn nicht angefordert hast, ist jemand anderes in deinem Konto angemeldet: Beende auf {page} jede Sitzung, die du nicht erkennst.',
  resetSubject: 'Neues Passwort angefordert',
  resetUse: 'Mit diesem Code setzt du ein neues Passwort. Er gilt einmal und {minutes} Minuten lang:',
  resetIgnore:
    'Ein neues Passwort meldet alle Apps und Browser ab. Wenn du den Code nicht angefordert hast, kannst du diese E-Mail ignorieren. Gib den Code nicht weiter.',
  deleteSubject: 'Löschung des Kontos angefordert',
  deleteUse:
    'Falls du das Konto später zurückhaben möchtest, lade zuerst deine Daten herunter. Mit diesem Code löschst du dein Konto endgültig. Er gilt einmal und {minutes} Minuten lang:',
  identitySubject: 'Änderung der Identität angefordert',
  identityUse:
    'Mit diesem Code änderst du deine Identität, zum Beispiel um mit deinem Konto zu einem anderen Server umzuziehen. Er gilt einmal und {minutes} Minuten lang:',
  identityIntruder:
    'Wer diesen Code hat, kann dein Konto übernehmen. Wenn du ihn nicht angefordert hast, ändere dein Passwort.',
  identityIntruderWithoutPassword:
    'Wer diesen Code hat, kann dein Konto übernehmen. Wenn du ihn nicht angefordert hast, beende auf {page} jede Sitzung, die du nicht erkennst.',
  signInSubject: 'Anmeldecode',
  signInUse: 'Mit diesem Code meldest du dich in deinem Konto an. Er gilt einmal und {minutes} Minuten lang:',
  signInIntruder:
    'Gib den Code nicht weiter. Wenn du dich gerade nicht anmeldest, kennt jemand anderes dein Passwort: Ändere es.',
  signInIntruderWithoutPassword:
    'Gib den Code nicht weiter. Wenn du dich gerade nicht anmeldest, kennt jemand anderes dein Passwort: Beende auf {page} jede Sitzung, die du nicht erkennst.',
  recoverySubject: 'Wiederherstellung des Kontos angefordert',
  recoveryUse:
    'Jemand hat die Wiederherstellung dieses Kontos angefordert. Mit diesem Code fordert deine Wallet den Teil deines Wiederherstellungsschlüssels an, den dieser Server verwahrt. Er gilt einmal und eine Stunde lang.',
  recoveryCode: 'Wiederherstellungscode:',
  recoveryIgnore: 'Wenn du ihn nicht angefordert hast, kannst du diese E-Mail ignorieren. Gib den Code nicht weiter.',
  archiveSubject: 'Ein Archiv deines Kontos ist fertig',
  archiveReady:
    'Ein neues Archiv deines Kontos ist fertig ({size}). Du findest es auf {page}, wo du auch ändern kannst, wie oft eines erstellt wird. Der Server behält nur die neuesten.',
  renamedSubject: 'Der Server deines Kontos hat einen neuen Namen',
  renamed: 'Der Server deines Kontos hat einen neuen Namen. Bisher war es {former}, jetzt ist es:',
  renamedPlc:
    'Deine Identität nennt noch die bisherige Adresse, und nur du kannst das ändern. Signiere in deiner Wallet eine Operation, die als Endpunkt des Dienstes atproto_pds diese Adresse einträgt.',
  renamedWeb:
    'Deine Identität nennt noch die bisherige Adresse, und nur du kannst das ändern. Trage in dem Dokument, das du für deine did:web veröffentlichst, diese Adresse als Endpunkt des Dienstes #atproto_pds ein.',
  renamedApps:
    'Vorerst funktioniert dein Konto unter beiden Adressen. Apps finden es unter der neuen, sobald deine Identität sie nennt, und bitten dich dann, dich neu anzumelden.',
  quotaSubject: 'Dein Konto ist zu {percent} voll',
  recordsFull:
    'Es speichert {used} von höchstens {quota} Einträgen. Darüber hinaus werden neue Beiträge, Likes und Follows abgelehnt. Was du löschst, macht sofort Platz.',
  blobsFull:
    'Es speichert {used} von höchstens {quota} MB an Medien. Darüber hinaus werden Uploads abgelehnt. Was kein Beitrag mehr zeigt, macht nach einigen Stunden Platz.',
  quotaPage: '{page} zeigt, wie viel du speicherst. Für mehr Speicherplatz wende dich an den Betreiber dieses Servers.',
  quotaPageWithAddress:
    '{page} zeigt, wie viel du speicherst. Für mehr Speicherplatz wende dich an den Betreiber dieses Servers: {address}.',
  decisionSubject: 'Entscheidung der Moderation, Fall {seq}',
  decided: 'Die Moderation dieses Servers hat darüber entschieden. {done}',
  concerns: 'Betroffen ist: {subject}',
  reason: 'Die Begründung:',
  appeal:
    'Wenn du das für falsch hältst, kannst du bis zum {time} einmal antworten. Dann sieht es sich vielleicht eine andere Person noch einmal an:',
  caseNumber: 'Das ist Fall {seq}. {contact}',
  invitedSubject: 'Dein Konto bei {host}',
  invited: 'Bei {host}, wo du um ein Konto gebeten hast, ist jetzt Platz für dich.',
  inviteCode: 'Dein Einladungscode, der für ein Konto gilt, lautet:',
  inviteUse: 'Registriere dich auf {page}. Wenn du um kein Konto gebeten hast, kannst du diese E-Mail ignorieren.',
  wantedSubject: 'Du hast schon ein Konto',
  wanted:
    'Jemand wollte diese Adresse für ein weiteres Konto bei {host} verwenden. Sie gehört zu deinem Konto {account}, deshalb wurde das abgelehnt.',
  wantedPassword:
    'Wenn du das warst, melde dich auf {page} an. Dort kannst du auch ein neues Passwort setzen, falls du deines vergessen hast. Wenn du es nicht warst, kannst du diese E-Mail ignorieren. Wir haben nicht verraten, dass du ein Konto hast.',
  wantedWallet:
    'Wenn du das warst, melde dich auf {page} mit deiner Wallet an. Wenn du es nicht warst, kannst du diese E-Mail ignorieren. Wir haben nicht verraten, dass du ein Konto hast.',
} as const
