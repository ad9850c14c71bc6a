export const mailBrazilian = {
  subjectOn: '{subject} ({host})',
  about: 'Esta mensagem é sobre a conta {account} em {host}.',
  accountPage: 'Sua conta: {page}',
  when: 'Quando: {time}',
  byOperator: 'Por: o operador deste servidor',
  program: 'Com: {program}',
  unknownProgram: 'Com: um app desconhecido',
  network: 'De: a rede {network}',
  askOperator: 'Fale com o operador deste servidor.',
  writeOperator: 'Fale com o operador deste servidor: {address}.',
  confirmSubject: 'Confirme seu endereço de e-mail',
  confirmUse: 'Use este código para confirmar que este endereço é seu. Ele funciona uma só vez, por {minutes} minutos:',
  confirmIgnore: 'Se você não o pediu, pode ignorar este e-mail: provavelmente alguém digitou seu endereço por engano.',
  updateSubject: 'Mudança de endereço de e-mail solicitada',
  updateUse: 'Use este código para mudar o endereço da sua conta. Ele funciona uma só vez, por {minutes} minutos:',
  intruder: 'Se você não o pediu, outra pessoa entrou na sua conta: mude sua senha.',
  intruderWithoutPassword:
    'Se você não o pediu, outra pessoa entrou na sua conta: encerre em {page} todas as sessões que você não reconhece.',
  resetSubject: 'Nova senha solicitada',
  resetUse: 'Use este código para definir uma nova senha. Ele funciona uma só vez, por {minutes} minutos:',
  resetIgnore:
    'Uma nova senha encerra a sessão em todos os apps e navegadores. Se você não a pediu, pode ignorar este e-mail. Não compartilhe o código.',
  deleteSubject: 'Exclusão da conta solicitada',
  deleteUse:
    'Caso queira a conta de volta mais tarde, baixe antes seus dados. Use este código para excluir sua conta definitivamente. Ele funciona uma só vez, por {minutes} minutos:',
  identitySubject: 'Mudança de identidade solicitada',
  identityUse:
    'Use este código para mudar sua identidade, por exemplo para levar sua conta a outro servidor. Ele funciona uma só vez, por {minutes} minutos:',
  identityIntruder: 'Qualquer pessoa com este código pode tomar sua conta. Se você não o pediu, mude sua senha.',
  identityIntruderWithoutPassword:
    'Qualquer pessoa com este código pode tomar sua conta. Se você não o pediu, encerre em {page} todas as sessões que você não reconhece.',
  signInSubject: 'Código de login',
  signInUse: 'Use este código para entrar na sua conta. Ele funciona uma só vez, por {minutes} minutos:',
  signInIntruder: 'Não compartilhe o código. Se você não está tentando entrar, outra pessoa sabe sua senha: mude-a.',
  signInIntruderWithoutPassword:
    'Não compartilhe o código. Se você não está tentando entrar, outra pessoa sabe sua senha: encerre em {page} todas as sessões que você não reconhece.',
  recoverySubject: 'Recuperação da conta solicitada',
  recoveryUse:
    'Alguém pediu a recuperação desta conta. Com este código, sua carteira pede a parte da sua chave de recuperação que este servidor guarda. Ele funciona uma só vez, por uma hora.',
  recoveryCode: 'Código de recuperação:',
  recoveryIgnore: 'Se você não o pediu, pode ignorar este e-mail. Não compartilhe o código.',
  archiveSubject: 'Um arquivo da sua conta está pronto',
  archiveReady:
    'Um novo arquivo da sua conta está pronto ({size}). Você o encontra em {page}, onde também pode mudar a frequência com que é criado. O servidor guarda somente os mais recentes.',
  renamedSubject: 'O servidor da sua conta mudou de nome',
  renamed: 'O servidor da sua conta mudou de nome. Era {former} e agora é:',
  renamedPlc:
    'Sua identidade ainda indica o endereço anterior, e só você pode mudar isso. Na sua carteira, assine uma operação que coloque este endereço como ponto de acesso do serviço atproto_pds.',
  renamedWeb:
    'Sua identidade ainda indica o endereço anterior, e só você pode mudar isso. No documento que você publica para seu did:web, coloque este endereço como ponto de acesso do serviço #atproto_pds.',
  renamedApps:
    'Por enquanto, sua conta funciona nos dois endereços. Os apps a encontrarão no novo quando sua identidade o indicar, e pedirão que você entre novamente.',
  quotaSubject: 'Sua conta está {percent} cheia',
  recordsFull:
    'Ela guarda {used} de no máximo {quota} registros. Acima disso, novas publicações, curtidas e contas seguidas são recusadas. O que você exclui libera espaço imediatamente.',
  blobsFull:
    'Ela guarda {used} de no máximo {quota} MB de mídia. Acima disso, envios de arquivos são recusados. O que nenhuma publicação mostra mais libera espaço depois de algumas horas.',
  quotaPage: '{page} mostra quanto você guarda. Para ter mais espaço, fale com o operador deste servidor.',
  quotaPageWithAddress:
    '{page} mostra quanto você guarda. Para ter mais espaço, fale com o operador deste servidor: {address}.',
  decisionSubject: 'Decisão dos moderadores, caso {seq}',
  decided: 'Os moderadores deste servidor tomaram uma decisão a respeito. {done}',
  concerns: 'Refere-se a: {subject}',
  reason: 'O motivo:',
  appeal:
    'Se você acha que isso está errado, pode responder uma vez, até {time}. Outra pessoa poderá então analisar de novo:',
  caseNumber: 'Este é o caso {seq}. {contact}',
  invitedSubject: 'Sua conta em {host}',
  invited: 'Há lugar para você em {host}, onde você pediu uma conta.',
  inviteCode: 'Seu código de convite, válido para uma conta, é:',
  inviteUse: 'Cadastre-se em {page}. Se você não pediu uma conta, pode ignorar este e-mail.',
  wantedSubject: 'Você já tem uma conta',
  wanted:
    'Alguém tentou usar este endereço para outra conta em {host}. Ele pertence à sua conta {account}, por isso o pedido foi recusado.',
  wantedPassword:
    'Se foi você, entre em {page}, onde também pode definir uma nova senha se esqueceu a sua. Se não foi você, pode ignorar este e-mail. Não revelamos que você tem uma conta.',
  wantedWallet:
    'Se foi você, entre em {page} com sua carteira. Se não foi você, pode ignorar este e-mail. Não revelamos que você tem uma conta.',
} as const
