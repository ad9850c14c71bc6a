export const addedKeyFrench = {
  title: 'Une clé à vous',
  lead: 'Avec une clé placée au-dessus de celle de ce serveur, vous pouvez transférer votre compte sans l’aide de personne ici, même si ce serveur a disparu.',
  done: 'La clé est ajoutée. C’est désormais la clé la plus haute de votre identité. Gardez sa partie secrète en lieu sûr : quiconque la possède contrôle votre identité.',
  codeNeeded: 'Pour en ajouter une, il vous faut le code que nous envoyons à votre adresse e-mail.',
  make: 'Créer une clé pour moi',
  shownOnce: 'Nous l’affichons une fois. Ce serveur ne la conserve pas.',
  useWallet: 'Utiliser la clé d’un portefeuille',
  walletKey: 'Clé publique du portefeuille',
  walletKeyHint: 'Elle commence par did:key:z. Ne saisissez pas ici de clé secrète.',
  sendCode: 'Envoyer un code',
  codeSent: 'Nous avons envoyé un code à votre adresse e-mail. Il est valable 15 minutes.',
  secret:
    'Voici votre clé secrète. Elle n’est affichée qu’une fois : conservez-la dès maintenant, dans un gestionnaire de mots de passe ou sur papier. Sans elle, la clé ci-dessous ne sert à rien, et elle ne peut pas non plus être retirée.',
  toAdd: 'Clé à ajouter',
  warning:
    'Ne continuez que si vous avez la clé secrète. La clé sera au-dessus de toutes les autres, et ce serveur ne pourra pas la retirer.',
  add: 'Ajouter cette clé',
} as const
