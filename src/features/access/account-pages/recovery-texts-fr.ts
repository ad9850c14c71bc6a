export const recoveryFrench = {
  wrong: 'Le pseudo ou le code est incorrect. Vérifiez les deux, ou demandez un nouveau code.',
  identifier: 'Pseudo ou DID',
  title: 'Récupérer votre compte',
  lead: 'Si vous avez perdu votre portefeuille : ce serveur conserve l’une des trois parts de votre clé de récupération. Avec elle et l’une de vos propres parts, un nouveau portefeuille peut reprendre votre compte.',
  send: 'Envoyer un code à mon adresse e-mail',
  haveCode: 'J’ai déjà un code',
  shareTitle: 'Votre part de récupération',
  afterWait:
    'Le code lance un délai d’attente. Pendant ce délai, vous pouvez annuler, au cas où une autre personne lirait vos e-mails. Ensuite, revenez sur cette page sans code.',
  atOnce: 'Avec le code, vous obtenez la part immédiatement. Quiconque lit vos e-mails peut faire de même.',
  sent: 'Si ce compte existe, nous avons envoyé un code à son adresse e-mail.',
  continue: 'Continuer',
  sendAnother: 'Envoyer un autre code',
  codeHint: 'Après le délai d’attente, il ne vous est utile que si un portefeuille a lancé la récupération.',
  pending: 'Vous pouvez retirer la part à partir du {time}. Nous avons envoyé un e-mail à ce sujet.',
  released:
    'Voici la part. Saisissez-la dans un portefeuille avec l’une de vos propres parts. Vous pouvez la revoir pendant une heure, copiez-la donc maintenant :',
} as const
