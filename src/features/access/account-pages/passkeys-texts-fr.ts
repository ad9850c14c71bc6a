export const passkeysFrench = {
  heading: 'Clés d’accès',
  use: 'Votre téléphone, votre ordinateur ou une clé de sécurité vous connecte, après vous avoir reconnu par un code PIN, votre doigt ou votre visage. Vous n’avez alors pas besoin de mot de passe. Une clé d’accès ne fonctionne que sur ce site : personne ne peut vous amener à l’utiliser ailleurs.',
  needsScript:
    'Votre navigateur n’exécute pas de script sur cette page. Une clé d’accès en a besoin : autorisez-le ou utilisez un autre navigateur.',
  full: 'Vous avez autant de clés d’accès qu’un compte peut en avoir. Supprimez-en une pour en ajouter une autre.',
  unavailable:
    'Les clés d’accès ont besoin d’une connexion chiffrée à un serveur qui porte un nom, ce qui n’est pas le cas ici.',
  add: 'Ajouter une clé d’accès',
  addLead:
    'Choisissez un nom qui vous permettra de reconnaître l’appareil. Votre navigateur vous demandera ensuite de créer la clé.',
  name: 'Nom',
  make: 'Créer la clé d’accès',
  cancel: 'Annuler',
  unknownDevice: 'Mon appareil',
  used: 'Ajoutée le {added}, utilisée pour la dernière fois le {used}',
  unused: 'Ajoutée le {added}, jamais utilisée',
  synced: 'Vos autres appareils l’ont peut-être aussi.',
  elsewhere: 'Elle a été créée pour une ancienne adresse de ce serveur et ne fonctionne plus.',
  rename: 'Renommer',
  renameOf: 'Renommer {name}',
  remove: 'Supprimer',
  removeOf: 'Supprimer {name}',
  removeQuestion: 'Supprimer une clé d’accès',
  removeSubmit: 'Supprimer la clé d’accès',
  wasAdded: 'La clé d’accès est ajoutée. Vous pouvez désormais vous connecter avec elle.',
  wasRenamed: 'La clé d’accès porte son nouveau nom.',
  wasRemoved: 'La clé d’accès est supprimée et n’ouvre plus votre compte. Supprimez-la aussi sur votre appareil.',
} as const
