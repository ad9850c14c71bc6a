export const recoveryGerman = {
  wrong: 'Das Handle oder der Code ist falsch. Bitte prüfe beide, oder fordere einen neuen Code an.',
  identifier: 'Handle oder DID',
  title: 'Dein Konto wiederherstellen',
  lead: 'Wenn du deine Wallet verloren hast: Dieser Server verwahrt einen der drei Teile deines Wiederherstellungsschlüssels. Mit ihm und einem deiner eigenen Teile kann eine neue Wallet dein Konto übernehmen.',
  send: 'Einen Code an meine E-Mail-Adresse senden',
  haveCode: 'Ich habe schon einen Code',
  shareTitle: 'Dein Wiederherstellungsteil',
  afterWait:
    'Mit dem Code beginnt eine Wartezeit. Währenddessen kannst du abbrechen, falls jemand anderes deine E-Mails liest. Komm danach ohne Code auf diese Seite zurück.',
  atOnce: 'Mit dem Code bekommst du den Teil sofort. Wer deine E-Mails liest, kann dasselbe tun.',
  sent: 'Wenn es dieses Konto gibt, haben wir einen Code an seine E-Mail-Adresse gesendet.',
  continue: 'Weiter',
  sendAnother: 'Einen weiteren Code senden',
  codeHint: 'Nach der Wartezeit brauchst du ihn nur, wenn eine Wallet die Wiederherstellung begonnen hat.',
  pending: 'Du kannst den Teil ab {time} abholen. Darüber haben wir eine E-Mail gesendet.',
  released:
    'Dies ist der Teil. Gib ihn zusammen mit einem deiner eigenen Teile in eine Wallet ein. Du kannst ihn noch eine Stunde lang ansehen, also kopiere ihn jetzt:',
} as const
