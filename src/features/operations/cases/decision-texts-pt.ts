export const decisionBrazilian = {
  warned: 'Nada foi removido. Este é um aviso: se acontecer de novo, pode haver outras consequências.',
  takenDown: 'O conteúdo foi removido: outras pessoas não podem mais vê-lo. Nada foi excluído.',
  accountTakenDown:
    'A conta inteira foi suspensa: outras pessoas não podem mais vê-la, e ela não pode mais ser usada. Nada foi excluído.',
  setAside: 'O arquivo foi separado: até uma nova análise, só os moderadores podem vê-lo.',
  upheld: 'Seu recurso foi lido, e a decisão foi mantida.',
  reversed:
    'Seu recurso procede: a decisão foi desfeita, e o que tinha sido removido está visível de novo, a menos que outra decisão também o tenha removido.',
} as const
