export const domainFrench = {
  title: 'Votre propre domaine',
  heading: 'Utiliser @{handle}',
  lead: 'Pour prouver que vous contrôlez ce domaine, publiez <strong>l’un</strong> des deux éléments ci-dessous, puis vérifiez.',
  record: 'Un enregistrement DNS',
  recordLead:
    'Ajoutez cet enregistrement là où vous gérez le domaine. Certains fournisseurs attendent le nom sans le domaine, comme <code>_atproto</code>.',
  name: 'Nom',
  type: 'Type',
  value: 'Valeur',
  file: 'Ou un fichier sur son site web',
  fileLead: 'Du texte brut, avec cette seule ligne.',
  address: 'Adresse',
  content: 'Contenu',
  check: 'Vérifier et modifier mon pseudo',
  checkMeans:
    'Chaque vérification interroge à nouveau le domaine. Si elle trouve l’enregistrement ou le fichier, votre pseudo passe aussitôt de {from} à @{to}.',
  back: 'Retour à votre compte',
  checkedAt: 'Vérifié à {time} :',
  recordMissing:
    '<strong>Enregistrement DNS :</strong> introuvable. Un nouvel enregistrement peut mettre quelques minutes à être visible partout.',
  recordRight: '<strong>Enregistrement DNS :</strong> trouvé et correct.',
  recordOther: '<strong>Enregistrement DNS :</strong> trouvé, mais il désigne un autre compte, <code>{did}</code>.',
  fileMissing: '<strong>Fichier :</strong> introuvable. Il doit être accessible en https sans connexion.',
  fileRight: '<strong>Fichier :</strong> trouvé et correct.',
  fileOther: '<strong>Fichier :</strong> trouvé, mais il désigne un autre compte, <code>{did}</code>.',
  recordFirst: 'L’enregistrement l’emporte sur le fichier. Corrigez-le ou supprimez-le.',
} as const
