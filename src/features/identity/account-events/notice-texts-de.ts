export const noticeGerman = {
  handleChangedSubject: 'Dein Handle wurde geändert',
  handleChanged: 'Das Handle deines Kontos ist jetzt {handle}.',
  handleUnpublished:
    'Das Handle deines Kontos ist jetzt {handle}. Deine Wallet muss es in deine Identität eintragen, weil nur dein eigener Schlüssel sie ändern kann. Bis dahin sehen andere das Konto ohne gültiges Handle.',
  handleRemovedSubject: 'Ein Handle wurde von deinem Konto entfernt',
  handleRemoved: 'Dein Konto hat das Handle {handle} nicht mehr.',
  emailChangedSubject: 'Deine E-Mail-Adresse wurde geändert',
  emailChanged:
    'Dein Konto hat jetzt eine andere E-Mail-Adresse. Diese E-Mail geht an deine alte Adresse, spätere gehen an die neue.',
  passwordChangedSubject: 'Dein Passwort wurde geändert',
  passwordChanged: 'Dein Konto hat ein neues Passwort. Jede Sitzung, die mit dem alten begonnen wurde, ist abgemeldet.',
  passwordResetSubject: 'Dein Passwort wurde zurückgesetzt',
  passwordReset:
    'Mit einem Code, den wir dir gemailt haben, wurde ein neues Passwort gesetzt. Alle Apps, Browser und Programme haben ihren Zugriff verloren.',
  emailFactorOnSubject: 'Die Anmeldung braucht jetzt einen Code per E-Mail',
  emailFactorOn:
    'Von jetzt an braucht eine Anmeldung mit deinem Passwort auch einen Code, den wir dir mailen. App-Passwörter gelten ohne Code.',
  emailFactorOffSubject: 'Die Anmeldung braucht keinen Code per E-Mail mehr',
  emailFactorOff:
    'Dein Passwort allein öffnet dein Konto wieder: Wir fragen nicht mehr nach einem Code, den wir dir mailen.',
  totpAddedSubject: 'Deinem Konto wurde eine Authenticator-App hinzugefügt',
  totpAdded:
    'Von jetzt an braucht eine Anmeldung mit deinem Passwort auch einen Code der App oder einen deiner Wiederherstellungscodes. App-Passwörter gelten ohne Code.',
  totpRemovedSubject: 'Die Authenticator-App wurde von deinem Konto entfernt',
  totpRemoved: 'Die Anmeldung braucht keinen Code der App mehr, und die Wiederherstellungscodes gelten nicht mehr.',
  passkeyAddedSubject: 'Deinem Konto wurde ein Passkey hinzugefügt',
  passkeyAdded:
    'Wer das Gerät mit dem Passkey hat und dessen PIN, Finger oder Gesicht, kann sich in deinem Konto anmelden. Von jetzt an braucht eine Anmeldung mit deinem Passwort auch den Passkey oder einen deiner Wiederherstellungscodes. App-Passwörter gelten ohne ihn.',
  passkeyRemovedSubject: 'Ein Passkey wurde von deinem Konto entfernt',
  passkeyRemoved: 'Der Passkey öffnet dein Konto nicht mehr. Deine Kontoseite zeigt, was eine Anmeldung jetzt braucht.',
  passkeyCopiedSubject: 'Einer deiner Passkeys wurde vielleicht kopiert',
  passkeyCopied:
    'Ein Passkey deines Kontos wurde verwendet, aber er meldete weniger Verwendungen, als wir kennen. Vielleicht gibt es eine Kopie von ihm. Wir haben die Anmeldung abgelehnt. Wenn das noch einmal geschieht, entferne den Passkey und erstelle einen neuen.',
  factorsResetSubject: 'Die zweiten Faktoren deines Kontos wurden entfernt',
  factorsReset:
    'Der Betreiber dieses Servers hat die zweiten Faktoren deines Kontos entfernt, wie für jemanden, der sie verloren hat. Dein Passwort allein öffnet es jetzt.',
  recoveryCodesMadeSubject: 'Deine Wiederherstellungscodes wurden ersetzt',
  recoveryCodesMade: 'Für dein Konto wurden neue Wiederherstellungscodes erstellt. Die bisherigen gelten nicht mehr.',
  recoveryCodeUsedSubject: 'Ein Wiederherstellungscode wurde verwendet',
  recoveryCodeUsed:
    'Einer der Wiederherstellungscodes deines Kontos wurde statt deines zweiten Faktors verwendet, zusammen mit deinem Passwort. Er gilt kein zweites Mal.',
  factorBlockedSubject: 'Jemand hat falsche Codes für dein Konto eingegeben',
  factorBlocked:
    'Eine Anmeldung in deinem Konto hatte das richtige Passwort, aber zu viele falsche Codes. Eine Stunde lang wird kein Code angenommen.',
  appPasswordMadeSubject: 'Ein App-Passwort wurde erstellt',
  appPasswordMade: 'Dein Konto hat ein neues App-Passwort. Wer es hat, kann dein Konto benutzen.',
  appPasswordNamed: 'Dein Konto hat ein neues App-Passwort namens „{name}“. Wer es hat, kann dein Konto benutzen.',
  changedElsewhereSubject: 'Deine Identität wurde anderswo geändert',
  changedElsewhere:
    'Deine Identität wurde durch eine Operation geändert, die nicht von diesem Server kam. Auch deine eigene Wallet oder ein anderer Server, zu dem du umziehst, macht solche Operationen.',
  changedElsewhereParts:
    'Deine Identität wurde durch eine Operation geändert, die nicht von diesem Server kam. Geändert wurde: {parts}. {undo} Auch deine eigene Wallet oder ein anderer Server, zu dem du umziehst, macht solche Operationen.',
  partEnded: 'die Identität selbst, die beendet ist',
  partServer: 'der Server des Kontos',
  partHandle: 'das Handle',
  partSigningKey: 'der Schlüssel, der Beiträge signiert',
  partRotationKeys: 'die Schlüssel, die die Identität ändern dürfen',
  partOther: 'andere Schlüssel, Dienste oder Namen',
  partNone: 'nichts, was jetzt noch anders wäre',
  undoNone:
    'Sie wurde mit dem höchsten Schlüssel der Identität signiert, also kann kein anderer Schlüssel sie rückgängig machen.',
  undoBy: 'Bis {time} kann ein höherer Schlüssel der Identität sie rückgängig machen: {keys}.',
  ownKeyAddedSubject: 'Deiner Identität wurde ein Schlüssel hinzugefügt',
  ownKeyAdded:
    'Deiner Identität wurde ein Schlüssel hinzugefügt, der über allen anderen steht. Wer den geheimen Schlüssel dazu hat, kann mit deinem Konto ohne diesen Server umziehen. Drei Tage lang könnte das nur ein Schlüssel rückgängig machen, der schon vorher über denen dieses Servers stand.',
  ownKeyInDoubtSubject: 'Vielleicht wurde deiner Identität ein Schlüssel hinzugefügt',
  ownKeyInDoubt:
    'Deiner Identität sollte ein Schlüssel hinzugefügt werden, der über allen anderen steht, und das Verzeichnis der Identitäten hat nicht geantwortet: Vielleicht hat es den Schlüssel. Deine Kontoseite zeigt die Schlüssel. Wer den geheimen Schlüssel dazu hat, kann mit deinem Konto ohne diesen Server umziehen.',
  hostingBegunSubject: 'Das Dokument deiner Identität liegt jetzt hier',
  hostingBegun:
    'Dieser Server liefert jetzt das Dokument deiner Identität unter deiner Domain aus. Solange er das tut, kann jeder, der in deinem Konto angemeldet ist, dieses Dokument ändern und damit die Schlüssel und den Server deiner Identität.',
  documentEditedSubject: 'Das Dokument deiner Identität wurde geändert',
  documentEdited:
    'Das Dokument deiner Identität, das dieser Server unter deiner Domain ausliefert, wurde aus einer Sitzung deines Kontos geändert. Es nennt den Server deines Kontos und den Schlüssel, der deine Beiträge signiert.',
  signingKeyReplacedSubject: 'Der Signaturschlüssel deines Kontos wurde ersetzt',
  signingKeyReplaced:
    'Der Schlüssel, der die Beiträge deines Kontos signiert, wurde ersetzt. Dafür war ein Schlüssel deiner Identität nötig. Für deine Apps ändert sich nichts.',
  transferAcceptedSubject: 'Ein Gerät übernimmt dein Konto',
  transferAccepted:
    'Ein Gerät hat die Übertragung deines Kontos angenommen, mit dem Code, den deine Wallet gezeigt hat. Sobald die Übertragung abgeschlossen ist, wird jede App abgemeldet, die mit deinem Passwort oder deinem Schlüssel angemeldet ist.',
  transferCompletedSubject: 'Dein Konto wurde auf ein anderes Gerät übertragen',
  transferCompleted:
    'Die Übertragung deines Kontos auf ein anderes Gerät ist abgeschlossen. Jede App, die mit deinem Passwort oder deinem Schlüssel angemeldet war, ist abgemeldet. App-Passwörter und Apps, denen du Zugriff gegeben hast, funktionieren weiterhin.',
  agentAsksSubject: 'Ein Programm verlangt Zugriff auf dein Konto',
  agentAsks:
    'Ein Programm hat sich hier registriert und verlangt Zugriff auf dein Konto. Es kann nichts tun, bis du den Code eingibst, den es zeigt.',
  agentAsksOf:
    'Ein Programm, das laut {issuer} für dich handelt, hat sich hier registriert und verlangt Zugriff auf dein Konto. Es kann nichts tun, bis du den Code eingibst, den es zeigt.',
  agentConfirmedSubject: 'Ein Programm hat jetzt Zugriff auf dein Konto',
  agentConfirmed:
    'Ein Programm kann jetzt für dein Konto handeln, weil der Code eingegeben wurde, den es gezeigt hat. Du kannst seinen Zugriff jederzeit beenden.',
  agentConfirmedNamed:
    'Ein Programm kann jetzt für dein Konto handeln, weil der Code eingegeben wurde, den es gezeigt hat. Es nennt sich „{name}“. Du kannst seinen Zugriff jederzeit beenden.',
  agentEndedSubject: 'Ein Programm hat keinen Zugriff auf dein Konto mehr',
  agentEnded:
    'Der Betreiber dieses Servers hat den Zugriff eines Programms, das für dein Konto handelte, oder dessen Anfrage danach beendet.',
  agentEndedNamed:
    'Der Betreiber dieses Servers hat den Zugriff eines Programms, das für dein Konto handelte, oder dessen Anfrage danach beendet. Es nennt sich „{name}“.',
  agentRefusedSubject: 'Einem Programm wurde der Zugriff auf dein Konto verweigert',
  agentRefused:
    'Ein Programm, das Zugriff auf dein Konto verlangte, wurde abgewiesen: Sein Zugriff war früher beendet worden, oder jemand anderes hat seinen Code eingegeben.',
  delegationOfferedSubject: 'Du bist eingeladen, für ein anderes Konto zu handeln',
  delegationOffered:
    'Ein Konto von jemand anderem lädt dich ein, für es zu handeln. Deine Kontoseite zeigt, was du für es tun könntest, und dort kannst du innerhalb von sieben Tagen annehmen oder ablehnen. Bis du annimmst, ändert sich nichts. Wenn du das Konto nicht kennst, lehne die Einladung ab oder ignoriere sie.',
  delegationOfferedBy:
    'Das Konto „{name}“ lädt dich ein, für es zu handeln. Deine Kontoseite zeigt, was du für es tun könntest, und dort kannst du innerhalb von sieben Tagen annehmen oder ablehnen. Bis du annimmst, ändert sich nichts. Wenn du das Konto nicht kennst, lehne die Einladung ab oder ignoriere sie.',
  delegateAcceptedSubject: 'Jemand handelt jetzt für dein Konto',
  delegateAccepted:
    'Das eingeladene Konto hat die Einladung angenommen, für dein Konto zu handeln. Deine Kontoseite zeigt, was es darf und was es getan hat, und dort kannst du das jederzeit beenden.',
  delegateAcceptedNamed:
    'Das Konto „{name}“ hat die Einladung angenommen, für dein Konto zu handeln. Deine Kontoseite zeigt, was es darf und was es getan hat, und dort kannst du das jederzeit beenden.',
  delegationEndedSubject: 'Jemand handelt nicht mehr für dein Konto',
  delegationEnded: 'Der Betreiber dieses Servers hat den Zugriff eines Kontos beendet, das für deines handelte.',
  deletionScheduledSubject: 'Die Löschung deines Kontos ist vorgemerkt',
  deletionScheduled:
    'Dein Konto ist deaktiviert und wird nach einer Weile gelöscht. Um es zu behalten, aktiviere es vorher wieder.',
  deletionScheduledAt:
    'Dein Konto ist deaktiviert und wird nach dem folgenden Zeitpunkt gelöscht: {time}. Um es zu behalten, aktiviere es vorher wieder.',
  shareRotatedSubject: 'Dein Wiederherstellungsteil wurde ersetzt',
  shareRotated:
    'Der Teil deines Wiederherstellungsschlüssels, den dieser Server verwahrt, wurde ersetzt. Der neue Teil passt nur zu den anderen Teilen, die zur selben Zeit erstellt wurden.',
  shareDeletedSubject: 'Dein Wiederherstellungsteil wurde gelöscht',
  shareDeleted:
    'Dieser Server verwahrt keinen Teil deines Wiederherstellungsschlüssels mehr. Ohne ihn lässt sich deine Identität nur mit deinen beiden eigenen Teilen wiederherstellen.',
  releaseOpenedSubject: 'Die Wiederherstellung deines Kontos wurde angefordert',
  releaseOpenedNow:
    'Jemand hat mit einem Code, den wir dir gemailt haben, den Teil deines Wiederherstellungsschlüssels angefordert, den dieser Server verwahrt. Er kann ab jetzt abgeholt werden. Zusammen mit einem deiner anderen Teile gibt er die Kontrolle über deine Identität.',
  releaseOpened:
    'Jemand hat mit einem Code, den wir dir gemailt haben, den Teil deines Wiederherstellungsschlüssels angefordert, den dieser Server verwahrt. Er kann ab {time} abgeholt werden. Zusammen mit einem deiner anderen Teile gibt er die Kontrolle über deine Identität.',
  releaseOpenedNowFormer:
    'Dies war bis vor Kurzem die Adresse des Kontos. Jemand hat mit einem Code, der an die jetzige Adresse ging, den Teil des Wiederherstellungsschlüssels angefordert, den dieser Server verwahrt. Er kann ab jetzt abgeholt werden. Zusammen mit einem der anderen Teile gibt er die Kontrolle über die Identität.',
  releaseOpenedFormer:
    'Dies war bis vor Kurzem die Adresse des Kontos. Jemand hat mit einem Code, der an die jetzige Adresse ging, den Teil des Wiederherstellungsschlüssels angefordert, den dieser Server verwahrt. Er kann ab {time} abgeholt werden. Zusammen mit einem der anderen Teile gibt er die Kontrolle über die Identität.',
  shareReleasedSubject: 'Dein Wiederherstellungsteil wurde herausgegeben',
  shareReleased:
    'Der Server hat den Teil deines Wiederherstellungsschlüssels herausgegeben, den er verwahrt. Zusammen mit einem deiner anderen Teile, aus deinem Schlüsselbund oder vom Papier, gibt er die Kontrolle über deine Identität.',
  shareReleasedFormer:
    'Dies war bis vor Kurzem die Adresse des Kontos. Der Server hat den Teil des Wiederherstellungsschlüssels herausgegeben, den er verwahrt. Zusammen mit einem der anderen Teile gibt er die Kontrolle über die Identität.',
  signInSubject: 'Neue Anmeldung in deinem Konto',
  signInPassword:
    'Jemand hat sich mit dem Passwort in deinem Konto angemeldet, von einer neuen App, einem neuen Browser oder einem neuen Netz aus.',
  signInPasskey:
    'Jemand hat sich mit einem Passkey in deinem Konto angemeldet, von einer neuen App, einem neuen Browser oder einem neuen Netz aus.',
  signInWallet:
    'Jemand hat sich mit einer Wallet, die einen Schlüssel der Identität hat, in deinem Konto angemeldet, von einer neuen App, einem neuen Browser oder einem neuen Netz aus.',
} as const
