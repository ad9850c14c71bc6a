export const identityFrench = {
  title: 'Votre identité',
  heading: 'Identité de {account}',
  lead: 'Votre identité survit à ce serveur. La personne qui la contrôle choisit le serveur qui héberge votre compte, et son pseudo.',
  back: 'Retour à votre compte',
  'not-found': 'L’annuaire ne connaît pas cette identité. Veuillez contacter l’opérateur de ce serveur.',
  deactivated: 'Cette identité a pris fin.',
  unreachable: 'L’annuaire des identités ne répond pas. Veuillez réessayer plus tard.',
  unreadable: 'L’annuaire des identités a envoyé une réponse invalide. Veuillez réessayer plus tard.',
  otherMethod: 'Ce serveur ne gère pas ce type d’identité.',
  changedElsewhere: 'Changée ailleurs',
  undoHow:
    'Un portefeuille qui possède l’une de ces clés annule le changement par une opération qui suit <code>{cid}</code>, la dernière avant lui. L’annuaire annule alors ce changement et tout ce qui a suivi.',
  misfitServer: 'Votre identité désigne un autre serveur. Les applications y cherchent votre compte.',
  misfitKey:
    'Votre identité indique une autre clé de signature que celle avec laquelle ce serveur signe vos publications. Les autres services refusent ce que vous publiez.',
  misfitHandle:
    'Votre identité indique un autre pseudo que celui de votre compte ici. Les autres le voient comme invalide.',
  keys: 'Clés qui la contrôlent',
  keysLead: 'Une clé peut annuler les modifications d’une clé inférieure pendant trois jours.',
  changed:
    'Dernière modification : {day}. Si ce n’était pas vous, une clé supérieure peut l’annuler pendant trois jours.',
  onlyServer:
    'Seul ce serveur peut modifier votre identité : vous ne pouvez donc pas partir sans son aide. Une clé de récupération à vous changerait cela.',
  serverFirst:
    'Une clé se trouve hors de ce serveur, mais celle de ce serveur est supérieure et pourrait annuler ses modifications.',
  outsideFirst:
    'La clé la plus haute se trouve hors de ce serveur. Avec elle, le compte peut être transféré sans ce serveur, et ce serveur ne peut pas l’annuler.',
  ourKey: 'Une clé de ce serveur',
  ourKeyUse: '{server} l’utilise pour modifier votre pseudo et vous aider à changer de serveur.',
  outsideKey: 'Une clé hors de ce serveur',
  outsideKeyUse: 'À vous, si c’est la clé de votre portefeuille ou une clé de récupération que vous conservez.',
  web: 'Qui contrôle le domaine <strong>{host}</strong> contrôle cette identité.',
  webHosted:
    'Depuis le {day}, {server} sert le document de cette identité. Toute session de votre compte ici peut le modifier.',
  share: 'Part de récupération',
  shareLead:
    'Votre portefeuille peut diviser sa clé de récupération en trois parts, dont deux suffisent à la rétablir. Ce serveur peut en conserver une pour vous. Seule, une part ne sert à rien.',
  shareNone: 'Ce serveur n’a aucune part de votre clé de récupération.',
  shareHeld: 'Ce serveur conserve une part depuis le {day}.',
  sharePending:
    'Quelqu’un a demandé votre part avec un code reçu par e-mail. Elle peut être retirée à partir du {time}. Si ce n’était pas vous, annulez.',
  shareCollectable:
    'Quelqu’un a demandé votre part avec un code reçu par e-mail, et elle peut être retirée maintenant. Si ce n’était pas vous, annulez.',
  shareCollected:
    'Votre part a été remise le {time} et peut être retirée à nouveau pendant une heure. Si ce n’était pas vous, annulez, puis remplacez les clés et les parts de votre identité dans votre portefeuille.',
  startRecovery: 'Commencer la récupération',
  startEffect: 'Envoie un code à votre adresse e-mail. À n’utiliser que si vous avez perdu votre portefeuille.',
  cancelRelease: 'Annuler la remise',
  cancelEffect: 'La part ne peut alors plus être retirée tant qu’un nouveau code n’est pas utilisé.',
  deleteShare: 'Supprimer la part',
  deleteEffect: 'Sans elle, il vous faut vos deux propres parts pour récupérer votre identité.',
  document: 'Document de votre identité',
  documentLead:
    'Il désigne le serveur de votre compte et la clé qui signe vos publications. Les autres le lisent sur votre propre domaine.',
  servedHere: 'Servi par {host}, tant que votre domaine y pointe.',
  servedElsewhere: 'Servi par votre propre serveur web.',
  serveMyself: 'Le servir moi-même',
  serveMyselfEffect: 'Publiez d’abord le contenu ci-dessous, sinon les autres ne trouveront pas votre compte.',
  letServe: 'Laisser {host} le servir',
  letServeEffect:
    'Votre domaine doit alors pointer vers {host}. Toute session de votre compte peut modifier le document : votre portefeuille ne peut donc pas ouvrir de nouvelles sessions pendant ce temps.',
  whatToPublish: 'Ce qu’il faut publier sur votre propre serveur web',
  address: 'Adresse',
  type: 'Type',
  content: 'Contenu',
} as const
