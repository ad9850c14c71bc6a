export const recoveryBrazilian = {
  wrong: 'O nome de usuário ou o código está errado. Confira os dois ou peça um código novo.',
  identifier: 'Nome de usuário ou DID',
  title: 'Recupere sua conta',
  lead: 'Se você perdeu sua carteira: este servidor guarda uma das três partes da sua chave de recuperação. Com ela e uma das suas próprias partes, uma carteira nova pode assumir sua conta.',
  send: 'Enviar um código para o meu e-mail',
  haveCode: 'Já tenho um código',
  shareTitle: 'Sua parte de recuperação',
  afterWait:
    'O código inicia um período de espera. Durante ele você pode cancelar, caso outra pessoa esteja lendo seu e-mail. Depois, volte a esta página sem código.',
  atOnce: 'Com o código você recebe a parte na hora. Quem lê seu e-mail pode fazer o mesmo.',
  sent: 'Se esta conta existe, enviamos um código para o endereço de e-mail dela.',
  continue: 'Continuar',
  sendAnother: 'Enviar outro código',
  codeHint: 'Depois do período de espera, você só precisa dele se uma carteira iniciou a recuperação.',
  pending: 'Você pode retirar a parte a partir de {time}. Enviamos um e-mail sobre isso.',
  released:
    'Esta é a parte. Digite-a em uma carteira junto com uma das suas próprias partes. Você pode vê-la de novo por uma hora, então copie-a agora:',
} as const
