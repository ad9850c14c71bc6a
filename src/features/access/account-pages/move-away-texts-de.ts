export const moveAwayGerman = {
  title: 'Wegziehen',
  heading: 'Mit {account} wegziehen',
  lead: 'Zu jedem anderen Server des Netzwerks. Deine Identität, Follower und Beiträge bleiben deine.',
  codeMailed: 'Wir haben dir den Code gemailt. Gib ihn beim neuen Server ein.',
  back: 'Zurück zu deinem Konto',
  unreadable: 'Deine Identität lässt sich im Moment nicht lesen. Bitte versuche es später noch einmal.',
  stillHere: 'Deine Identität nennt {here}. Noch hat sich nichts geändert.',
  noServer: 'keinen Server',
  goneActive: 'Deine Identität nennt jetzt {place}. Das Konto hier ist noch aktiv: Deaktiviere es.',
  gone: 'Deine Identität nennt jetzt {place}, und das Konto hier ist deaktiviert.',
  goneUntil:
    'Deine Identität nennt jetzt {place}, und das Konto hier ist deaktiviert. Nach dem {day} wird es gelöscht.',
  backup: '1. Mach eine Sicherung',
  backupAbout:
    'Eine Datei mit deinen Beiträgen, Bildern und Einstellungen. Wenn mittendrin etwas ausfällt, kannst du mit ihr weitermachen.',
  download: 'Deine Daten herunterladen',
  ownKey: '2. Sorge für einen eigenen Schlüssel',
  hasKey:
    'Deine Identität nennt einen Schlüssel außerhalb dieses Servers. Mit ihm kannst du umziehen, auch wenn ein Server nicht mitmacht.',
  lacksKey:
    'Mit einem Wiederherstellungsschlüssel kannst du umziehen, auch wenn ein Server nicht mitmacht. Lass den neuen Server einen hinzufügen, wenn er es anbietet.',
  whoControls: 'Wer über deine Identität bestimmt',
  beginThere: '3. Beginne beim neuen Server',
  beginThereAbout:
    'Öffne seine Seite für den Umzug und melde dich dort mit deinem Handle und dem Hauptpasswort dieses Kontos an. Er holt alles von hier.',
  enterCode: '4. Gib den Code ein',
  enterCodeAbout:
    'Der neue Server lässt uns dir einen Code mailen, mit dem deine Identität den neuen Server nennt. Wenn er nicht kommt oder du mit einem anderen Programm umziehst, fordere ihn hier an. Gib ihn nur dem Server, zu dem du umziehst.',
  mailCode: 'Mir den Code mailen',
  changeDocument: '4. Ändere dein Dokument',
  changeDocumentAbout:
    'Der neue Server sagt dir, welchen Schlüssel und welche Adresse du im Dokument deiner Domain veröffentlichen musst.',
  left: 'Was hier bleibt',
  leftAbout:
    'Prüfe zuerst, ob deine Beiträge und Bilder beim neuen Server sind. Solange das Konto nicht gelöscht ist, lassen sie sich wieder von hier holen.',
  deactivateKeep: 'Deaktivieren und behalten',
  keepAfterAll: 'Doch behalten',
  deactivateDelete: 'Deaktivieren und nach {days} Tagen löschen',
  deleteAfter: 'Nach {days} Tagen löschen',
} as const
