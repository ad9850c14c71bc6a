export const factorBrazilian = {
  title: 'Mais um passo',
  mailed: 'Enviamos um código para o endereço de e-mail da sua conta. Ele vale por 15 minutos.',
  app: 'Digite o código que seu app autenticador mostra agora ou um dos seus códigos de recuperação.',
  passkey: 'Use sua chave de acesso ou digite um dos seus códigos de recuperação.',
  appOrPasskey:
    'Use sua chave de acesso, ou digite o código que seu app autenticador mostra agora ou um dos seus códigos de recuperação.',
  code: 'Código',
  trust: 'Não perguntar de novo neste navegador por 30 dias',
  proceed: 'Continuar',
  another: 'Enviar outro código',
  anotherSent: 'Enviamos outro código. Só o mais recente funciona.',
  proveTitle: 'Confirme que é você',
  proveLead: 'Você entrou como {account} há mais de uma hora. Digite sua senha mais uma vez antes de continuar.',
  cancel: 'Cancelar',
} as const
