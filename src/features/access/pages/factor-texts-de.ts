export const factorGerman = {
  title: 'Noch ein Schritt',
  mailed: 'Wir haben einen Code an die E-Mail-Adresse deines Kontos geschickt. Er gilt 15 Minuten.',
  app: 'Gib den Code ein, den deine Authenticator-App gerade anzeigt, oder einen deiner Wiederherstellungscodes.',
  passkey: 'Verwende deinen Passkey oder gib einen deiner Wiederherstellungscodes ein.',
  appOrPasskey:
    'Verwende deinen Passkey oder gib den Code ein, den deine Authenticator-App gerade anzeigt, oder einen deiner Wiederherstellungscodes.',
  code: 'Code',
  trust: 'In diesem Browser 30 Tage lang nicht mehr fragen',
  proceed: 'Weiter',
  another: 'Noch einen Code schicken',
  anotherSent: 'Wir haben noch einen Code geschickt. Nur der neueste gilt.',
  proveTitle: 'Bestätige, dass du es bist',
  proveLead:
    'Du hast dich vor mehr als einer Stunde als {account} angemeldet. Gib bitte noch einmal dein Passwort ein, bevor es weitergeht.',
  cancel: 'Abbrechen',
} as const
