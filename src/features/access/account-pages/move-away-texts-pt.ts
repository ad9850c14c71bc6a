export const moveAwayBrazilian = {
  title: 'Mudar de servidor',
  heading: 'Mudar {account} para outro servidor',
  lead: 'Para qualquer outro servidor da rede. Sua identidade, seus seguidores e suas publicações continuam seus.',
  codeMailed: 'Enviamos o código para você. Digite-o no servidor novo.',
  back: 'Voltar para sua conta',
  unreadable: 'Não é possível ler sua identidade no momento. Tente mais tarde.',
  stillHere: 'Sua identidade indica {here}. Nada mudou ainda.',
  noServer: 'nenhum servidor',
  goneActive: 'Sua identidade agora indica {place}. A conta aqui ainda está ativa: desative-a.',
  gone: 'Sua identidade agora indica {place}, e a conta aqui está desativada.',
  goneUntil: 'Sua identidade agora indica {place}, e a conta aqui está desativada. Ela será excluída depois de {day}.',
  backup: '1. Faça um backup',
  backupAbout:
    'Um arquivo com suas publicações, imagens e preferências. Se algo falhar no meio, você pode continuar a partir dele.',
  download: 'Baixar seus dados',
  ownKey: '2. Tenha uma chave sua',
  hasKey:
    'Sua identidade indica uma chave fora deste servidor. Com ela, você pode se mudar mesmo que um servidor não colabore.',
  lacksKey:
    'Com uma chave de recuperação, você pode se mudar mesmo que um servidor não colabore. Deixe o servidor novo adicionar uma, se ele oferecer.',
  whoControls: 'Quem controla sua identidade',
  beginThere: '3. Comece no servidor novo',
  beginThereAbout:
    'Abra a página dele para mudar uma conta e entre lá com seu nome de usuário e a senha principal desta conta. Ele busca tudo daqui.',
  enterCode: '4. Digite o código',
  enterCodeAbout:
    'O servidor novo nos pede para enviar a você um código, com o qual sua identidade passa a indicar o servidor novo. Se ele não chegar, ou se você se mudar com outro programa, peça-o aqui. Dê o código só ao servidor para o qual você se muda.',
  mailCode: 'Enviar o código para mim',
  changeDocument: '4. Altere seu documento',
  changeDocumentAbout: 'O servidor novo informa qual chave e qual endereço publicar no documento do seu domínio.',
  left: 'O que resta aqui',
  leftAbout:
    'Confira primeiro se suas publicações e imagens estão no servidor novo. Enquanto a conta não for excluída, elas podem ser buscadas daqui de novo.',
  deactivateKeep: 'Desativar e manter',
  keepAfterAll: 'Manter, afinal',
  deactivateDelete: 'Desativar e excluir depois de {days} dias',
  deleteAfter: 'Excluir depois de {days} dias',
} as const
