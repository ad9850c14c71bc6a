export const remedyBrazilian = {
  ifYou: 'Se foi você, pode ignorar esta mensagem. Se não foi:',
  doNoCode:
    'Não digite um código que você não pediu, mesmo que alguém o envie. Sem o código, o programa não recebe acesso.',
  doCancelRecovery: 'Cancele a entrega agora, na sua carteira, em um dispositivo que ainda esteja conectado.',
  doNewKeys:
    'Se outra pessoa puder ter mais uma das suas partes, substitua agora as chaves e as partes da sua identidade na sua carteira.',
  doUndoChange:
    'Assine agora, com uma chave mais alta da sua identidade, uma operação que siga a anterior a esta mudança: isso a desfaz. Outra pessoa tem uma chave da sua identidade, então deixe essa chave de fora.',
  doMailbox: 'Outra pessoa pode ler seus e-mails, então mude primeiro a senha da sua caixa de e-mail.',
  doPassword: 'Defina uma senha nova em {page}. Isso desconecta todos os apps e navegadores.',
  doReplaceKey: 'Se outra pessoa puder ter uma chave da sua identidade, substitua essa chave na sua carteira.',
  doIdentityKey: 'Substitua a chave na sua carteira.',
  doIdentityKeyDespitePassword:
    'Substitua a chave na sua carteira: uma senha nova não impede a entrada de quem tem a chave.',
  doAccount: 'Confira em {page} suas sessões e configurações e encerre todas as sessões que você não reconhecer.',
} as const
