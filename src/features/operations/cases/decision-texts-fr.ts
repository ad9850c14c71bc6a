export const decisionFrench = {
  warned: 'Rien n’a été retiré. Ceci est un avertissement : en cas de récidive, d’autres mesures pourront suivre.',
  takenDown: 'Le contenu a été retiré : les autres ne peuvent plus le voir. Rien n’a été supprimé.',
  accountTakenDown:
    'Le compte entier a été suspendu : les autres ne peuvent plus le voir, et il ne peut plus être utilisé. Rien n’a été supprimé.',
  setAside: 'Le fichier a été mis de côté : jusqu’à un nouvel examen, seuls les modérateurs peuvent le voir.',
  upheld: 'Votre recours a été lu, et la décision est maintenue.',
  reversed:
    'Votre recours était fondé : la décision est annulée, et ce qui avait été retiré est de nouveau visible, sauf si une autre décision l’a retiré aussi.',
} as const
