export const identityGerman = {
  title: 'Deine Identität',
  heading: 'Identität von {account}',
  lead: 'Deine Identität überdauert diesen Server. Wer sie kontrolliert, bestimmt, auf welchem Server dein Konto liegt und welches Handle es hat.',
  back: 'Zurück zu deinem Konto',
  'not-found': 'Das Verzeichnis kennt diese Identität nicht. Bitte wende dich an den Betreiber dieses Servers.',
  deactivated: 'Diese Identität ist beendet.',
  unreachable: 'Das Identitätsverzeichnis antwortet nicht. Bitte versuche es später noch einmal.',
  unreadable: 'Das Identitätsverzeichnis hat eine ungültige Antwort geschickt. Bitte versuche es später noch einmal.',
  otherMethod: 'Diese Art von Identität verwaltet dieser Server nicht.',
  changedElsewhere: 'Anderswo geändert',
  undoHow:
    'Eine Wallet mit einem dieser Schlüssel macht die Änderung mit einer Operation rückgängig, die auf <code>{cid}</code> folgt, die letzte davor. Das Verzeichnis erklärt dann die Änderung und alles danach für nichtig.',
  misfitServer: 'Deine Identität nennt einen anderen Server. Apps suchen dein Konto dort.',
  misfitKey:
    'Deine Identität nennt einen anderen Signaturschlüssel als den, mit dem dieser Server deine Beiträge signiert. Andere Dienste lehnen ab, was du veröffentlichst.',
  misfitHandle:
    'Deine Identität nennt ein anderes Handle als das, das dein Konto hier hat. Anderen wird es als ungültig angezeigt.',
  keys: 'Schlüssel, die sie kontrollieren',
  keysLead: 'Ein Schlüssel kann die Änderungen eines niedrigeren innerhalb von drei Tagen rückgängig machen.',
  changed:
    'Zuletzt geändert: {day}. Wenn du das nicht warst, kann ein höherer Schlüssel es innerhalb von drei Tagen rückgängig machen.',
  onlyServer:
    'Nur dieser Server kann deine Identität ändern, deshalb kannst du ohne seine Hilfe nicht weg. Mit einem eigenen Wiederherstellungsschlüssel wäre das anders.',
  serverFirst:
    'Ein Schlüssel liegt außerhalb dieses Servers, aber der Schlüssel dieses Servers steht höher und könnte dessen Änderungen rückgängig machen.',
  outsideFirst:
    'Der höchste Schlüssel liegt außerhalb dieses Servers. Mit ihm kann das Konto ohne diesen Server umziehen, und dieser Server kann das nicht rückgängig machen.',
  ourKey: 'Ein Schlüssel dieses Servers',
  ourKeyUse: '{server} ändert damit dein Handle und hilft dir beim Umziehen.',
  outsideKey: 'Ein Schlüssel außerhalb dieses Servers',
  outsideKeyUse:
    'Deiner, wenn es der Schlüssel deiner Wallet ist oder ein Wiederherstellungsschlüssel, den du aufbewahrst.',
  web: 'Wer die Domain <strong>{host}</strong> kontrolliert, kontrolliert diese Identität.',
  webHosted:
    'Seit dem {day} liefert {server} das Dokument dieser Identität aus. Jede Sitzung deines Kontos auf diesem Server kann es ändern.',
  share: 'Wiederherstellungsteil',
  shareLead:
    'Deine Wallet kann ihren Wiederherstellungsschlüssel in drei Teile zerlegen, von denen je zwei ihn wiederherstellen. Dieser Server kann einen für dich aufbewahren. Ein Teil allein ist wertlos.',
  shareNone: 'Dieser Server hat keinen Teil deines Wiederherstellungsschlüssels.',
  shareHeld: 'Dieser Server bewahrt seit dem {day} einen Teil auf.',
  sharePending:
    'Jemand hat deinen Teil mit einem Code aus deinen E-Mails angefordert. Er kann ab diesem Zeitpunkt abgeholt werden: {time}. Wenn du das nicht warst, brich es ab.',
  shareCollectable:
    'Jemand hat deinen Teil mit einem Code aus deinen E-Mails angefordert, und er kann jetzt abgeholt werden. Wenn du das nicht warst, brich es ab.',
  shareCollected:
    'Dein Teil wurde herausgegeben ({time}) und kann eine Stunde lang noch einmal abgeholt werden. Wenn du das nicht warst, brich es ab und ersetze in deiner Wallet die Schlüssel und Teile deiner Identität.',
  startRecovery: 'Wiederherstellung beginnen',
  startEffect: 'Schickt einen Code an deine E-Mail-Adresse. Nimm das nur, wenn du deine Wallet verloren hast.',
  cancelRelease: 'Herausgabe abbrechen',
  cancelEffect: 'Der Teil kann dann erst wieder abgeholt werden, wenn ein neuer Code verwendet wird.',
  deleteShare: 'Teil löschen',
  deleteEffect: 'Ohne ihn brauchst du deine beiden eigenen Teile, um deine Identität wiederherzustellen.',
  document: 'Dokument deiner Identität',
  documentLead:
    'Es nennt den Server deines Kontos und den Schlüssel, der deine Beiträge signiert. Andere lesen es unter deiner eigenen Domain.',
  servedHere: 'Wird von {host} ausgeliefert, solange deine Domain dorthin zeigt.',
  servedElsewhere: 'Wird von deinem eigenen Webserver ausgeliefert.',
  serveMyself: 'Selbst ausliefern',
  serveMyselfEffect: 'Veröffentliche zuerst den Inhalt unten, sonst finden andere dein Konto nicht.',
  letServe: 'Von {host} ausliefern lassen',
  letServeEffect:
    'Deine Domain muss dann auf {host} zeigen. Jede Sitzung deines Kontos kann das Dokument ändern, deshalb kann deine Wallet in dieser Zeit keine neuen Sitzungen öffnen.',
  whatToPublish: 'Was du auf deinem eigenen Webserver veröffentlichst',
  address: 'Adresse',
  type: 'Typ',
  content: 'Inhalt',
} as const
