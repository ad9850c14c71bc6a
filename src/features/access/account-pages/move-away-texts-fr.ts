export const moveAwayFrench = {
  title: 'Partir ailleurs',
  heading: 'Transférer {account} ailleurs',
  lead: 'Vers n’importe quel autre serveur du réseau. Votre identité, vos abonnés et vos publications restent les vôtres.',
  codeMailed: 'Nous vous avons envoyé le code. Saisissez-le sur le nouveau serveur.',
  back: 'Retour à votre compte',
  unreadable: 'Votre identité ne peut pas être lue pour le moment. Réessayez plus tard.',
  stillHere: 'Votre identité désigne {here}. Rien n’a encore changé.',
  noServer: 'aucun serveur',
  goneActive: 'Votre identité désigne maintenant {place}. Le compte ici est encore actif : désactivez-le.',
  gone: 'Votre identité désigne maintenant {place}, et le compte ici est désactivé.',
  goneUntil:
    'Votre identité désigne maintenant {place}, et le compte ici est désactivé. Il sera supprimé après le {day}.',
  backup: '1. Faites une sauvegarde',
  backupAbout:
    'Un fichier avec vos publications, images et préférences. Si quelque chose tombe en panne en cours de route, vous pourrez reprendre à partir de ce fichier.',
  download: 'Télécharger vos données',
  ownKey: '2. Ayez une clé à vous',
  hasKey:
    'Votre identité désigne une clé hors de ce serveur. Avec elle, vous pouvez partir même si un serveur ne coopère pas.',
  lacksKey:
    'Avec une clé de récupération, vous pouvez partir même si un serveur ne coopère pas. Laissez le nouveau serveur en ajouter une, s’il le propose.',
  whoControls: 'Qui contrôle votre identité',
  beginThere: '3. Commencez sur le nouveau serveur',
  beginThereAbout:
    'Ouvrez sa page de transfert de compte et connectez-vous-y avec votre pseudo et le mot de passe principal de ce compte. Il récupère tout d’ici.',
  enterCode: '4. Saisissez le code',
  enterCodeAbout:
    'Le nouveau serveur nous fait vous envoyer un code, avec lequel votre identité désigne le nouveau serveur. S’il n’arrive pas, ou si vous utilisez un autre programme, demandez-le ici. Ne le donnez qu’au serveur vers lequel vous partez.',
  mailCode: 'M’envoyer le code',
  changeDocument: '4. Modifiez votre document',
  changeDocumentAbout:
    'Le nouveau serveur vous dit quelle clé et quelle adresse publier dans le document de votre domaine.',
  left: 'Ce qui reste ici',
  leftAbout:
    'Vérifiez d’abord que vos publications et images sont sur le nouveau serveur. Tant que le compte n’est pas supprimé, elles peuvent être récupérées d’ici.',
  deactivateKeep: 'Le désactiver et le garder',
  keepAfterAll: 'Le garder finalement',
  deactivateDelete: 'Le désactiver et le supprimer après {days} jours',
  deleteAfter: 'Le supprimer après {days} jours',
} as const
