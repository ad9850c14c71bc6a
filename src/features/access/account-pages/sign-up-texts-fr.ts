export const signUpFrench = {
  title: 'Créer un compte',
  lead: 'Vos publications, abonnements et tout le reste seront stockés sur {host}. Vous pouvez partir à tout moment.',
  submit: 'Créer le compte',
  haveAccount: 'J’ai un compte',
  haveAccountElsewhere: 'J’en ai un sur un autre serveur',
  domain: 'Domaine du pseudo',
  handleHint:
    'C’est ainsi que l’on vous trouve et vous mentionne. Lettres, chiffres et traits d’union. Vous pourrez le changer plus tard, par exemple pour votre propre domaine.',
  emailHint: 'Nous y envoyons des codes et des avis de sécurité. Elle n’est pas publique.',
  inviteCode: 'Code d’invitation',
  inviteHint: 'De quelqu’un qui a un compte ici, ou de l’opérateur de ce serveur.',
  agree: 'En créant un compte, vous acceptez les <terms>conditions</terms>.',
  wallet: 'J’ai un portefeuille',
  walletOnly: 'J’ai un portefeuille et ne veux pas de mot de passe',
  walletAbout:
    'Une clé de portefeuille saisie ici prime sur la clé de ce serveur : grâce à elle, vous pouvez transférer votre compte même si ce serveur ne coopère pas.',
  walletOnlyAbout:
    'Sans mot de passe, vous vous connectez avec le portefeuille : ici et dans les applications qui affichent un code pour lui. Pour les autres, vous créez ici un mot de passe d’application. Vous pourrez définir un mot de passe plus tard avec un code par e-mail, mais la clé ne peut pas être remplacée : si vous perdez le portefeuille sans avoir de parts de récupération, vous ne pourrez pas partir sans l’aide de ce serveur.',
  walletKey: 'Clé publique de votre portefeuille',
  walletKeyHint: 'Elle commence par did:key:z. Votre portefeuille l’affiche ; la clé secrète n’en sort jamais.',
  questionHint: 'L’opérateur souhaite ainsi faire votre connaissance. Les majuscules et les espaces ne comptent pas.',
  working:
    'Votre navigateur effectue quelques calculs, pour éviter que des programmes ne créent des comptes en masse. Cela prend quelques secondes.',
  workNeedsScript:
    'Cette page nécessite JavaScript : votre navigateur doit effectuer quelques calculs, pour éviter que des programmes ne créent des comptes en masse. Sans lui, demandez un compte à l’opérateur de ce serveur.',
} as const
