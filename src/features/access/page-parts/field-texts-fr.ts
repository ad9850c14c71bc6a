export const fieldFrench = {
  identifier: 'Pseudo ou adresse e-mail',
  password: 'Mot de passe',
  newPassword: 'Nouveau mot de passe',
  newPasswordHint: 'Au moins {chars} caractères. Un gestionnaire de mots de passe peut en générer un pour vous.',
  code: 'Code reçu par e-mail',
  remember: 'Rester connecté dans ce navigateur',
  rememberHint: '30 jours au plus. Pas sur un appareil partagé.',
  handle: 'Pseudo',
  email: 'Adresse e-mail',
  chooseAccount: 'Choisissez un compte',
  more: { one: '{count} de plus', many: '{count} de plus', other: '{count} de plus' },
  anotherAccount: 'Un autre compte',
  usePasskey: 'Utiliser une clé d’accès',
  passkeyNotUsed: 'Aucune clé d’accès n’a été utilisée. Veuillez réessayer ou choisir un autre moyen.',
  passkeyNotMade:
    'Aucune clé d’accès n’a été créée. Votre appareil en a peut-être déjà une pour ce compte. Veuillez réessayer.',
} as const
