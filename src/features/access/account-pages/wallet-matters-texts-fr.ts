export const walletMattersFrench = {
  title: 'Votre portefeuille',
  waiting: 'En attente de votre réponse',
  waitingLead:
    'Quelqu’un a saisi le nom de votre compte pour se connecter. Ouvrez votre portefeuille pour répondre. N’approuvez qu’une connexion que vous venez de lancer vous-même.',
  devices: 'Appareils',
  devicesLead:
    'Appareils vers lesquels votre compte a été transféré. Un appareil révoqué ne peut plus utiliser ce serveur, mais son portefeuille garde sa clé.',
  thisPage: 'cette page de compte',
  signIn: 'Connexion à {name}',
  since: 'Depuis le {time}',
  sinceUsed: 'Depuis le {time}, dernière utilisation le {used}',
  with: 'Avec {program}',
  network: 'Depuis le réseau {network}',
  begunOn: 'Commencée sur {origin}',
  code: 'Code pour votre portefeuille : <strong>{code}</strong>',
  deny: 'Refuser',
  denySignIn: 'Refuser la connexion à {name} avec le code {code}',
  transferOpen:
    'Un transfert de votre compte vers un autre appareil a commencé le {began}. Tout appareil disposant de son code peut l’accepter jusqu’au {until}. Si ce n’était pas vous, annulez-le.',
  transferAccepted:
    'Un transfert de votre compte vers un autre appareil a commencé le {began}. Un appareil l’a accepté le {accepted}. Une fois terminé, tout le reste sera déconnecté. Si ce n’était pas vous, annulez-le.',
  cancel: 'Annuler le transfert',
  revoke: 'Révoquer',
  revokeDevice: 'Révoquer {name}',
} as const
