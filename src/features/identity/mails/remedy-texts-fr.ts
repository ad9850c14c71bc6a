export const remedyFrench = {
  ifYou: 'Si c’était vous, vous pouvez ignorer ce message. Sinon :',
  doNoCode:
    'Ne saisissez pas un code que vous n’avez pas demandé, même si quelqu’un vous l’envoie. Sans le code, le programme n’obtient aucun accès.',
  doCancelRecovery: 'Annulez la remise dès maintenant, dans votre portefeuille, sur un appareil encore connecté.',
  doNewKeys:
    'Si une autre personne peut avoir une autre de vos parts, remplacez dès maintenant les clés et les parts de votre identité dans votre portefeuille.',
  doUndoChange:
    'Signez dès maintenant, avec une clé plus haute de votre identité, une opération qui suit celle d’avant ce changement : cela l’annule. Une autre personne a une clé de votre identité : n’incluez pas cette clé.',
  doMailbox: 'Une autre personne peut lire vos e-mails : changez d’abord le mot de passe de votre messagerie.',
  doPassword:
    'Définissez un nouveau mot de passe sur {page}. Cela déconnecte toutes les applications et tous les navigateurs.',
  doReplaceKey:
    'Si une autre personne peut avoir une clé de votre identité, remplacez cette clé dans votre portefeuille.',
  doIdentityKey: 'Remplacez la clé dans votre portefeuille.',
  doIdentityKeyDespitePassword:
    'Remplacez la clé dans votre portefeuille : un nouveau mot de passe n’écarte pas une personne qui a la clé.',
  doAccount:
    'Vérifiez vos sessions et vos réglages sur {page}, et fermez toutes les sessions que vous ne reconnaissez pas.',
} as const
