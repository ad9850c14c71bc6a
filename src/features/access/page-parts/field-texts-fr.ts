export const fieldFrench = {
  identifier: 'Pseudo ou adresse e-mail',
  password: 'Mot de passe',
  newPassword: 'Nouveau mot de passe',
  newPasswordHint: 'Au moins {chars} caractères. Un gestionnaire de mots de passe peut en générer un pour vous.',
  code: 'Code reçu par e-mail',
  remember: 'Rester connecté sur mon propre appareil',
  handle: 'Pseudo',
  email: 'Adresse e-mail',
  chooseAccount: 'Choisissez un compte',
  more: { one: '{count} de plus', many: '{count} de plus', other: '{count} de plus' },
  anotherAccount: 'Un autre compte',
} as const
