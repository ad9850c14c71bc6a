export const addedKeyBrazilian = {
  title: 'Uma chave própria',
  lead: 'Com uma chave acima da chave deste servidor, você pode mudar sua conta de servidor sem a ajuda de ninguém daqui, mesmo que este servidor não exista mais.',
  done: 'A chave foi adicionada. Agora ela é a chave mais alta da sua identidade. Guarde bem a parte secreta: quem a tiver controla sua identidade.',
  codeNeeded: 'Para adicionar uma, você precisa do código que enviamos para seu endereço de e-mail.',
  make: 'Criar uma chave para mim',
  shownOnce: 'Nós a mostramos uma vez. Este servidor não a guarda.',
  useWallet: 'Usar a chave de uma carteira',
  walletKey: 'Chave pública da carteira',
  walletKeyHint: 'Começa com did:key:z. Não digite aqui uma chave secreta.',
  sendCode: 'Enviar um código',
  codeSent: 'Enviamos um código para seu endereço de e-mail. Ele vale por 15 minutos.',
  secret:
    'Esta é sua chave secreta. Ela é mostrada só uma vez, então guarde-a agora, em um gerenciador de senhas ou no papel. Sem ela, a chave abaixo não serve para nada e também não pode ser removida.',
  toAdd: 'Chave a adicionar',
  warning:
    'Continue só se você tiver a chave secreta. A chave ficará acima de todas as outras, e este servidor não poderá retirá-la.',
  add: 'Adicionar esta chave',
} as const
