export const factorFrench = {
  title: 'Encore une étape',
  mailed: 'Nous avons envoyé un code à l’adresse e-mail de votre compte. Il est valable 15 minutes.',
  app: 'Saisissez le code que votre application d’authentification affiche en ce moment, ou l’un de vos codes de récupération.',
  passkey: 'Utilisez votre clé d’accès ou saisissez l’un de vos codes de récupération.',
  appOrPasskey:
    'Utilisez votre clé d’accès, ou saisissez le code que votre application d’authentification affiche en ce moment ou l’un de vos codes de récupération.',
  code: 'Code',
  trust: 'Ne plus demander dans ce navigateur pendant 30 jours',
  proceed: 'Continuer',
  another: 'Envoyer un autre code',
  anotherSent: 'Nous avons envoyé un autre code. Seul le plus récent est valable.',
  proveTitle: 'Confirmez que c’est bien vous',
  proveLead:
    'Vous vous êtes connecté en tant que {account} il y a plus d’une heure. Saisissez à nouveau votre mot de passe avant de continuer.',
  cancel: 'Annuler',
} as const
