export const noticeBrazilian = {
  handleChangedSubject: 'Seu nome de usuário foi alterado',
  handleChanged: 'O nome de usuário da sua conta agora é {handle}.',
  handleUnpublished:
    'O nome de usuário da sua conta agora é {handle}. Sua carteira precisa adicioná-lo à sua identidade, porque só sua própria chave pode alterá-la. Até lá, os outros veem a conta sem um nome de usuário válido.',
  handleRemovedSubject: 'Um nome de usuário foi removido da sua conta',
  handleRemoved: 'Sua conta não tem mais o nome de usuário {handle}.',
  emailChangedSubject: 'Seu endereço de e-mail foi alterado',
  emailChanged:
    'Sua conta agora tem outro endereço de e-mail. Esta mensagem vai para o endereço antigo; as próximas irão para o novo.',
  passwordChangedSubject: 'Sua senha foi alterada',
  passwordChanged: 'Sua conta tem uma senha nova. Todas as sessões abertas com a antiga foram encerradas.',
  passwordResetSubject: 'Sua senha foi redefinida',
  passwordReset:
    'Uma senha nova foi definida com um código que enviamos por e-mail. Todos os apps, navegadores e programas perderam o acesso.',
  emailFactorOnSubject: 'Entrar agora exige um código do seu e-mail',
  emailFactorOn:
    'De agora em diante, entrar com sua senha também exige um código que enviamos por e-mail. Senhas de aplicativo funcionam sem código.',
  emailFactorOffSubject: 'Entrar não exige mais um código do seu e-mail',
  emailFactorOff: 'Sua senha sozinha volta a abrir sua conta: não pedimos mais um código enviado por e-mail.',
  totpAddedSubject: 'Um app autenticador foi adicionado à sua conta',
  totpAdded:
    'De agora em diante, entrar com sua senha também exige um código do app ou um dos seus códigos de recuperação. Senhas de aplicativo funcionam sem código.',
  totpRemovedSubject: 'O app autenticador foi removido da sua conta',
  totpRemoved: 'Entrar não exige mais um código do app, e os códigos de recuperação não valem mais.',
  passkeyAddedSubject: 'Uma chave de acesso foi adicionada à sua conta',
  passkeyAdded:
    'Quem tiver o dispositivo com a chave de acesso, e o PIN, o dedo ou o rosto, pode entrar na sua conta. De agora em diante, entrar com sua senha também exige a chave de acesso ou um dos seus códigos de recuperação. Senhas de aplicativo funcionam sem ela.',
  passkeyRemovedSubject: 'Uma chave de acesso foi removida da sua conta',
  passkeyRemoved:
    'A chave de acesso não abre mais sua conta. A página da sua conta mostra o que é preciso agora para entrar.',
  passkeyCopiedSubject: 'Uma das suas chaves de acesso pode ter sido copiada',
  passkeyCopied:
    'Uma chave de acesso da sua conta foi usada, mas informou menos usos do que conhecemos. Pode haver uma cópia dela. Recusamos o login. Se isso acontecer de novo, remova a chave de acesso e crie outra.',
  factorsResetSubject: 'Os segundos fatores da sua conta foram removidos',
  factorsReset:
    'O operador deste servidor removeu os segundos fatores da sua conta, como para quem os perdeu. Agora sua senha sozinha abre a conta.',
  recoveryCodesMadeSubject: 'Seus códigos de recuperação foram substituídos',
  recoveryCodesMade: 'Novos códigos de recuperação foram criados para sua conta. Os anteriores não valem mais.',
  recoveryCodeUsedSubject: 'Um código de recuperação foi usado',
  recoveryCodeUsed:
    'Um dos códigos de recuperação da sua conta foi usado no lugar do segundo fator, junto com sua senha. Ele não vale de novo.',
  factorBlockedSubject: 'Alguém digitou códigos errados para sua conta',
  factorBlocked:
    'Uma tentativa de entrar na sua conta tinha a senha certa, mas códigos errados demais. Durante uma hora, nenhum código é aceito.',
  appPasswordMadeSubject: 'Uma senha de aplicativo foi criada',
  appPasswordMade: 'Sua conta tem uma senha de aplicativo nova. Quem a tiver pode usar sua conta.',
  appPasswordNamed: 'Sua conta tem uma senha de aplicativo nova, chamada “{name}”. Quem a tiver pode usar sua conta.',
  changedElsewhereSubject: 'Sua identidade foi alterada em outro lugar',
  changedElsewhere:
    'Sua identidade foi alterada por uma operação que não veio deste servidor. Sua própria carteira, ou outro servidor para o qual você se muda, também faz operações assim.',
  changedElsewhereParts:
    'Sua identidade foi alterada por uma operação que não veio deste servidor. Mudou o seguinte: {parts}. {undo} Sua própria carteira, ou outro servidor para o qual você se muda, também faz operações assim.',
  partEnded: 'a própria identidade, que foi encerrada',
  partServer: 'o servidor da conta',
  partHandle: 'o nome de usuário',
  partSigningKey: 'a chave que assina as publicações',
  partRotationKeys: 'as chaves que podem alterar a identidade',
  partOther: 'outras chaves, serviços ou nomes',
  partNone: 'nada que ainda esteja diferente',
  undoNone: 'Ela foi assinada com a chave mais alta da identidade, então nenhuma outra chave pode desfazê-la.',
  undoBy: 'Até {time}, uma chave mais alta da identidade pode desfazê-la: {keys}.',
  ownKeyAddedSubject: 'Uma chave foi adicionada à sua identidade',
  ownKeyAdded:
    'Uma chave foi adicionada à sua identidade, acima de todas as outras. Quem tiver a chave secreta dela pode mudar sua conta de servidor sem este servidor. Durante três dias, só uma chave que já estava acima das deste servidor poderia desfazer isso.',
  ownKeyInDoubtSubject: 'Talvez uma chave tenha sido adicionada à sua identidade',
  ownKeyInDoubt:
    'Uma chave seria adicionada à sua identidade, acima de todas as outras, e o diretório de identidades não respondeu: talvez ele tenha a chave. A página da sua conta mostra as chaves. Quem tiver a chave secreta pode mudar sua conta de servidor sem este servidor.',
  hostingBegunSubject: 'O documento da sua identidade agora é servido aqui',
  hostingBegun:
    'Este servidor agora serve o documento da sua identidade no seu domínio. Enquanto isso, quem tiver uma sessão aberta na sua conta pode alterar esse documento e, com ele, as chaves e o servidor da sua identidade.',
  documentEditedSubject: 'O documento da sua identidade foi alterado',
  documentEdited:
    'O documento da sua identidade, que este servidor serve no seu domínio, foi alterado a partir de uma sessão da sua conta. Ele informa o servidor da sua conta e a chave que assina suas publicações.',
  signingKeyReplacedSubject: 'A chave de assinatura da sua conta foi substituída',
  signingKeyReplaced:
    'A chave que assina as publicações da sua conta foi substituída. Para isso foi preciso uma chave da sua identidade. Nada muda para seus apps.',
  transferAcceptedSubject: 'Um dispositivo está assumindo sua conta',
  transferAccepted:
    'Um dispositivo aceitou a transferência da sua conta, com o código que sua carteira mostrou. Quando a transferência for concluída, todos os apps que entraram com sua senha ou sua chave serão desconectados.',
  transferCompletedSubject: 'Sua conta foi transferida para outro dispositivo',
  transferCompleted:
    'A transferência da sua conta para outro dispositivo foi concluída. Todos os apps que entraram com sua senha ou sua chave foram desconectados. Senhas de aplicativo e apps que você autorizou continuam funcionando.',
  agentAsksSubject: 'Um programa pede acesso à sua conta',
  agentAsks:
    'Um programa se registrou aqui e pede acesso à sua conta. Ele não pode fazer nada até você digitar o código que ele mostra.',
  agentAsksOf:
    'Um programa que, segundo {issuer}, age por você se registrou aqui e pede acesso à sua conta. Ele não pode fazer nada até você digitar o código que ele mostra.',
  agentConfirmedSubject: 'Um programa agora tem acesso à sua conta',
  agentConfirmed:
    'Um programa agora pode agir pela sua conta, porque o código que ele mostrou foi digitado. Você pode encerrar o acesso dele a qualquer momento.',
  agentConfirmedNamed:
    'Um programa agora pode agir pela sua conta, porque o código que ele mostrou foi digitado. Ele se apresenta como “{name}”. Você pode encerrar o acesso dele a qualquer momento.',
  agentEndedSubject: 'Um programa não tem mais acesso à sua conta',
  agentEnded:
    'O operador deste servidor encerrou o acesso de um programa que agia pela sua conta, ou o pedido de acesso dele.',
  agentEndedNamed:
    'O operador deste servidor encerrou o acesso de um programa que agia pela sua conta, ou o pedido de acesso dele. Ele se apresenta como “{name}”.',
  agentRefusedSubject: 'O acesso à sua conta foi recusado a um programa',
  agentRefused:
    'Um programa que pediu acesso à sua conta foi recusado: o acesso dele já tinha sido encerrado, ou outra pessoa digitou o código dele.',
  delegationOfferedSubject: 'Você foi convidado a agir por outra conta',
  delegationOffered:
    'A conta de outra pessoa convida você a agir por ela. A página da sua conta mostra o que você poderia fazer por ela, e lá você pode aceitar ou recusar durante sete dias. Até você aceitar, nada muda. Se você não conhece a conta, recuse o convite ou ignore-o.',
  delegationOfferedBy:
    'A conta “{name}” convida você a agir por ela. A página da sua conta mostra o que você poderia fazer por ela, e lá você pode aceitar ou recusar durante sete dias. Até você aceitar, nada muda. Se você não conhece a conta, recuse o convite ou ignore-o.',
  delegateAcceptedSubject: 'Alguém agora age pela sua conta',
  delegateAccepted:
    'A conta convidada aceitou agir pela sua. A página da sua conta mostra o que ela pode fazer e o que fez, e lá você pode encerrar isso a qualquer momento.',
  delegateAcceptedNamed:
    'A conta “{name}” aceitou o convite para agir pela sua. A página da sua conta mostra o que ela pode fazer e o que fez, e lá você pode encerrar isso a qualquer momento.',
  delegationEndedSubject: 'Alguém não age mais pela sua conta',
  delegationEnded: 'O operador deste servidor encerrou o acesso de uma conta que agia pela sua.',
  deletionScheduledSubject: 'A exclusão da sua conta está programada',
  deletionScheduled:
    'Sua conta está desativada e será excluída depois de um tempo. Para mantê-la, ative-a de novo antes disso.',
  deletionScheduledAt:
    'Sua conta está desativada e será excluída depois desta data: {time}. Para mantê-la, ative-a de novo antes disso.',
  shareRotatedSubject: 'Sua parte de recuperação foi substituída',
  shareRotated:
    'A parte da sua chave de recuperação que este servidor guarda foi substituída. A parte nova só funciona com as outras partes criadas ao mesmo tempo.',
  shareDeletedSubject: 'Sua parte de recuperação foi excluída',
  shareDeleted:
    'Este servidor não guarda mais nenhuma parte da sua chave de recuperação. Sem ela, sua identidade só pode ser recuperada com suas duas partes.',
  releaseOpenedSubject: 'A recuperação da sua conta foi pedida',
  releaseOpenedNow:
    'Alguém usou um código que enviamos por e-mail para pedir a parte da sua chave de recuperação que este servidor guarda. Ela pode ser retirada a partir de agora. Junto com outra das suas partes, ela dá o controle da sua identidade.',
  releaseOpened:
    'Alguém usou um código que enviamos por e-mail para pedir a parte da sua chave de recuperação que este servidor guarda. Ela pode ser retirada a partir de {time}. Junto com outra das suas partes, ela dá o controle da sua identidade.',
  releaseOpenedNowFormer:
    'Este era o endereço da conta até há pouco. Alguém usou um código enviado ao endereço atual para pedir a parte da chave de recuperação que este servidor guarda. Ela pode ser retirada a partir de agora. Junto com outra das partes, ela dá o controle da identidade.',
  releaseOpenedFormer:
    'Este era o endereço da conta até há pouco. Alguém usou um código enviado ao endereço atual para pedir a parte da chave de recuperação que este servidor guarda. Ela pode ser retirada a partir de {time}. Junto com outra das partes, ela dá o controle da identidade.',
  shareReleasedSubject: 'Sua parte de recuperação foi entregue',
  shareReleased:
    'O servidor entregou a parte da sua chave de recuperação que guardava. Junto com outra das suas partes, a do seu chaveiro ou a do papel, ela dá o controle da sua identidade.',
  shareReleasedFormer:
    'Este era o endereço da conta até há pouco. O servidor entregou a parte da chave de recuperação que guardava. Junto com outra das partes, ela dá o controle da identidade.',
  signInSubject: 'Novo login na sua conta',
  signInPassword: 'Alguém entrou na sua conta com a senha, de um app, navegador ou rede que não conhecíamos.',
  signInPasskey:
    'Alguém entrou na sua conta com uma chave de acesso, de um app, navegador ou rede que não conhecíamos.',
  signInWallet:
    'Alguém entrou na sua conta com uma carteira que tem uma chave da identidade, de um app, navegador ou rede que não conhecíamos.',
} as const
