export const domainGerman = {
  title: 'Deine eigene Domain',
  heading: '@{handle} verwenden',
  lead: 'Um zu zeigen, dass du diese Domain kontrollierst, veröffentliche <strong>eines</strong> der beiden unten und prüfe dann.',
  record: 'Ein DNS-Eintrag',
  recordLead:
    'Füge diesen Eintrag dort hinzu, wo du die Domain verwaltest. Manche Anbieter erwarten den Namen ohne die Domain, also <code>_atproto</code>.',
  name: 'Bezeichnung',
  type: 'Typ',
  value: 'Wert',
  file: 'Oder eine Datei auf ihrer Website',
  fileLead: 'Reiner Text mit dieser einen Zeile.',
  address: 'Adresse',
  content: 'Inhalt',
  check: 'Prüfen und mein Handle ändern',
  checkMeans:
    'Jede Prüfung fragt die Domain neu ab. Wenn sie den Eintrag oder die Datei findet, ändert sich dein Handle sofort von {from} zu @{to}.',
  back: 'Zurück zu deinem Konto',
  checkedAt: 'Geprüft um {time}:',
  recordMissing:
    '<strong>DNS-Eintrag:</strong> nicht gefunden. Es kann einige Minuten dauern, bis ein neuer Eintrag überall sichtbar ist.',
  recordRight: '<strong>DNS-Eintrag:</strong> gefunden und richtig.',
  recordOther: '<strong>DNS-Eintrag:</strong> gefunden, aber er nennt ein anderes Konto, <code>{did}</code>.',
  fileMissing: '<strong>Datei:</strong> nicht gefunden. Sie muss ohne Anmeldung über https erreichbar sein.',
  fileRight: '<strong>Datei:</strong> gefunden und richtig.',
  fileOther: '<strong>Datei:</strong> gefunden, aber sie nennt ein anderes Konto, <code>{did}</code>.',
  recordFirst: 'Der Eintrag hat Vorrang vor der Datei. Berichtige oder entferne ihn.',
} as const
