export const identityBrazilian = {
  title: 'Sua identidade',
  heading: 'Identidade de {account}',
  lead: 'Sua identidade dura mais que este servidor. Quem a controla decide qual servidor hospeda sua conta e qual nome de usuário ela tem.',
  back: 'Voltar para sua conta',
  'not-found': 'O diretório não conhece esta identidade. Entre em contato com o operador deste servidor.',
  deactivated: 'Esta identidade foi encerrada.',
  unreachable: 'O diretório de identidades não está respondendo. Tente de novo mais tarde.',
  unreadable: 'O diretório de identidades enviou uma resposta inválida. Tente de novo mais tarde.',
  otherMethod: 'Este servidor não gerencia este tipo de identidade.',
  changedElsewhere: 'Alterada em outro lugar',
  undoHow:
    'Uma carteira que tenha uma destas chaves desfaz a alteração com uma operação que segue <code>{cid}</code>, a última antes dela. O diretório anula então a alteração e tudo o que veio depois.',
  misfitServer: 'Sua identidade indica outro servidor. Os apps procuram sua conta lá.',
  misfitKey:
    'Sua identidade indica outra chave de assinatura que não a usada por este servidor para assinar suas publicações. Outros serviços recusam o que você publica.',
  misfitHandle:
    'Sua identidade indica outro nome de usuário que não o da sua conta aqui. Os outros o veem como inválido.',
  keys: 'Chaves que a controlam',
  keysLead: 'Uma chave pode desfazer as alterações de uma inferior por três dias.',
  changed: 'Última alteração: {day}. Se não foi você, uma chave superior pode desfazê-la por três dias.',
  onlyServer:
    'Só este servidor pode alterar sua identidade, então você não pode sair sem a ajuda dele. Uma chave de recuperação sua mudaria isso.',
  serverFirst:
    'Uma chave está fora deste servidor, mas a deste servidor é superior e poderia desfazer as alterações dela.',
  outsideFirst:
    'A chave mais alta está fora deste servidor. Com ela, a conta pode se mudar sem este servidor, e este servidor não pode desfazer isso.',
  ourKey: 'Uma chave deste servidor',
  ourKeyUse: '{server} a usa para alterar seu nome de usuário e ajudar você a se mudar.',
  outsideKey: 'Uma chave fora deste servidor',
  outsideKeyUse: 'Sua, se for a chave da sua carteira ou uma chave de recuperação que você guarda.',
  web: 'Quem controla o domínio <strong>{host}</strong> controla esta identidade.',
  webHosted:
    'Desde {day}, {server} serve o documento desta identidade. Qualquer sessão da sua conta aqui pode alterá-lo.',
  share: 'Parte de recuperação',
  shareLead:
    'Sua carteira pode dividir a chave de recuperação em três partes, das quais duas quaisquer a restauram. Este servidor pode guardar uma para você. Sozinha, uma parte não serve para nada.',
  shareNone: 'Este servidor não tem nenhuma parte da sua chave de recuperação.',
  shareHeld: 'Este servidor guarda uma parte desde {day}.',
  sharePending:
    'Alguém pediu sua parte com um código do seu e-mail. Ela poderá ser retirada a partir deste momento: {time}. Se não foi você, cancele.',
  shareCollectable:
    'Alguém pediu sua parte com um código do seu e-mail, e ela já pode ser retirada. Se não foi você, cancele.',
  shareCollected:
    'Sua parte foi entregue ({time}) e pode ser retirada de novo por uma hora. Se não foi você, cancele e substitua na sua carteira as chaves e as partes da sua identidade.',
  startRecovery: 'Iniciar a recuperação',
  startEffect: 'Envia um código para seu endereço de e-mail. Use só se você perdeu sua carteira.',
  cancelRelease: 'Cancelar a entrega',
  cancelEffect: 'A parte então não pode ser retirada até que um novo código seja usado.',
  deleteShare: 'Excluir a parte',
  deleteEffect: 'Sem ela, você precisa das suas duas próprias partes para recuperar sua identidade.',
  document: 'Documento da sua identidade',
  documentLead:
    'Ele indica o servidor da sua conta e a chave que assina suas publicações. Os outros o leem no seu próprio domínio.',
  servedHere: 'Servido por {host}, enquanto seu domínio apontar para lá.',
  servedElsewhere: 'Servido pelo seu próprio servidor web.',
  serveMyself: 'Servir por conta própria',
  serveMyselfEffect: 'Publique antes o conteúdo abaixo, ou os outros não encontrarão sua conta.',
  letServe: 'Deixar {host} servir',
  letServeEffect:
    'Seu domínio precisa então apontar para {host}. Qualquer sessão da sua conta pode alterar o documento, então sua carteira não pode abrir novas sessões durante esse tempo.',
  whatToPublish: 'O que publicar no seu próprio servidor web',
  address: 'Endereço',
  type: 'Tipo',
  content: 'Conteúdo',
} as const
