export const signUpBrazilian = {
  title: 'Crie uma conta',
  lead: 'Suas publicações, quem você segue e todo o resto ficarão em {host}. Você pode se mudar quando quiser.',
  submit: 'Criar conta',
  haveAccount: 'Tenho uma conta',
  haveAccountElsewhere: 'Tenho uma em outro servidor',
  domain: 'Domínio do nome de usuário',
  handleHint:
    'É como os outros encontram e mencionam você. Letras, números e hifens. Você pode mudar depois, por exemplo para seu próprio domínio.',
  emailHint: 'Enviamos códigos e avisos de segurança para ele. Não é público.',
  inviteCode: 'Código de convite',
  inviteHint: 'De alguém que tem uma conta aqui ou do operador deste servidor.',
  agree: 'Ao criar uma conta, você aceita os <terms>termos</terms>.',
  wallet: 'Tenho uma carteira',
  walletOnly: 'Tenho uma carteira e não quero senha',
  walletAbout:
    'Uma chave de carteira informada aqui fica acima da chave deste servidor: com ela, você pode mudar sua conta mesmo que este servidor não coopere.',
  walletOnlyAbout:
    'Sem senha, você entra com a carteira: aqui e em apps que mostram um código para ela. Para outros apps, você cria aqui uma senha de aplicativo. Você pode definir uma senha depois com um código por e-mail, mas a chave não pode ser substituída: se você perder a carteira e não tiver partes de recuperação, não poderá se mudar sem a ajuda deste servidor.',
  walletKey: 'Chave pública da sua carteira',
  walletKeyHint: 'Começa com did:key:z. Sua carteira a mostra; a chave secreta nunca sai da carteira.',
  questionHint: 'É assim que o operador quer conhecer você. Maiúsculas e espaços não importam.',
  working:
    'Seu navegador está fazendo alguns cálculos, para que programas não criem contas em massa. Leva alguns segundos.',
  workNeedsScript:
    'Esta página precisa de JavaScript: seu navegador precisa fazer alguns cálculos, para que programas não criem contas em massa. Sem ele, peça uma conta ao operador deste servidor.',
} as const
