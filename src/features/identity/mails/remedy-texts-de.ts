export const remedyGerman = {
  ifYou: 'Wenn du das warst, kannst du diese E-Mail ignorieren. Wenn nicht:',
  doNoCode:
    'Gib keinen Code ein, den du nicht angefordert hast, auch wenn ihn dir jemand schickt. Ohne den Code bekommt das Programm keinen Zugriff.',
  doCancelRecovery: 'Brich die Herausgabe jetzt ab, in deiner Wallet auf einem Gerät, das noch angemeldet ist.',
  doNewKeys:
    'Wenn jemand anderes einen weiteren deiner Teile haben könnte, ersetze jetzt in deiner Wallet die Schlüssel und Teile deiner Identität.',
  doUndoChange:
    'Signiere jetzt mit einem höheren Schlüssel deiner Identität eine Operation, die auf die vor dieser Änderung folgt: Das macht sie rückgängig. Jemand anderes hat einen Schlüssel deiner Identität, also lass diesen Schlüssel weg.',
  doMailbox: 'Jemand anderes kann deine E-Mails lesen, also ändere zuerst das Passwort deines Postfachs.',
  doPassword: 'Setze auf {page} ein neues Passwort. Das meldet alle Apps und Browser ab.',
  doReplaceKey:
    'Wenn jemand anderes einen Schlüssel deiner Identität haben könnte, ersetze diesen Schlüssel in deiner Wallet.',
  doIdentityKey: 'Ersetze den Schlüssel in deiner Wallet.',
  doIdentityKeyDespitePassword:
    'Ersetze den Schlüssel in deiner Wallet: Ein neues Passwort sperrt niemanden aus, der den Schlüssel hat.',
  doAccount: 'Prüfe auf {page} deine Sitzungen und Einstellungen und beende jede Sitzung, die du nicht erkennst.',
} as const
