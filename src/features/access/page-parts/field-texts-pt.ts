export const fieldBrazilian = {
  identifier: 'Nome de usuário ou e-mail',
  password: 'Senha',
  newPassword: 'Nova senha',
  newPasswordHint: 'Pelo menos {chars} caracteres. Um gerenciador de senhas pode gerar uma para você.',
  code: 'Código do e-mail',
  remember: 'Continuar conectado neste navegador',
  rememberHint: 'Por até 30 dias. Não em um dispositivo compartilhado.',
  handle: 'Nome de usuário',
  email: 'Endereço de e-mail',
  chooseAccount: 'Escolha uma conta',
  more: { one: 'mais {count}', many: 'mais {count}', other: 'mais {count}' },
  anotherAccount: 'Outra conta',
  usePasskey: 'Usar uma chave de acesso',
  passkeyNotUsed: 'Nenhuma chave de acesso foi usada. Tente de novo ou escolha outro meio.',
  passkeyNotMade:
    'Nenhuma chave de acesso foi criada. Seu dispositivo talvez já tenha uma para esta conta. Tente de novo.',
} as const
