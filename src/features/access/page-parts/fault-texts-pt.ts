export const faultBrazilian = {
  elsewhere: 'Você entrou ou saiu em outra aba depois que esta página foi exibida. Confira a conta e decida novamente.',
  handleChars: 'Um nome de usuário é composto de letras, números e hifens, e não começa nem termina com hífen.',
  handleEnding: 'Nomes de usuário não podem ter este final. Escolha outro.',
  handleWord: 'Este nome de usuário contém uma palavra que não é permitida aqui. Escolha outro.',
  handleDots: 'No nosso domínio, um nome de usuário é composto de letras, números e hifens, sem pontos.',
  handleShort: 'Este nome de usuário é curto demais. Use pelo menos três caracteres.',
  handleLong: 'Este nome de usuário é longo demais. Escolha um mais curto.',
  handleReserved: 'Este nome de usuário está reservado. Escolha outro.',
  handleTaken: 'Este nome de usuário já está em uso. Escolha outro.',
  handleOrEmailTaken:
    'Este nome de usuário ou este e-mail já está em uso. Escolha outro nome de usuário, ou entre se você já tem uma conta.',
  handleOwnDomain:
    'Uma conta nova recebe um nome de usuário no nosso próprio domínio. Depois de criar a conta, você pode mudar para o seu próprio domínio.',
  handleUnresolved:
    'Este domínio ainda não aponta para a sua conta. Publique o registro ou o arquivo abaixo e verifique de novo.',
  handleNotInDocument:
    'O seu documento DID não menciona este nome de usuário. Adicione-o lá primeiro e tente novamente.',
  handleUnusable: 'Este nome de usuário não pode ser usado. Escolha outro.',
  handleTakenOrReserved: 'Este nome de usuário já está em uso ou reservado. Escolha outro.',
  signUpLate:
    'Isso demorou demais, ou houve outra tentativa nesse meio-tempo. Tente entrar. Se não conseguir, cadastre-se novamente.',
  emailMissing: 'Informe o seu endereço de e-mail.',
  emailTaken: 'Este endereço de e-mail pertence a outra conta deste servidor. Use outro.',
  emailUnusable:
    'Este endereço de e-mail não pode ser usado. Verifique se há erros de digitação ou use outro. Se ele já tem uma conta aqui, enviamos um e-mail para ele.',
  emailChanged: 'O seu endereço foi alterado depois que esta página foi exibida. Abra a página novamente.',
  emailNone: 'A sua conta não tem endereço de e-mail. Adicione um primeiro.',
  passwordMissing: 'Escolha uma senha.',
  passwordShort: 'Esta senha é curta demais. Use pelo menos {chars} caracteres.',
  passwordLong: 'Esta senha é longa demais. Escolha uma mais curta.',
  passwordNotCurrent: 'Esta não é a sua senha atual. Senhas de aplicativo não funcionam aqui.',
  passwordUnusable: 'Esta senha não pode ser usada. Escolha outra.',
  walletKey: 'Esta não é a chave pública de uma carteira. Ela começa com did:key:z e tem cerca de sessenta caracteres.',
  inviteMissing: 'O cadastro aqui exige um código de convite. Informe o seu.',
  inviteInvalid: 'Este código de convite não é válido ou já foi usado. Verifique se há erros de digitação.',
  nameMissing: 'Informe um nome de até 255 caracteres.',
  appPasswordTaken: 'Você já tem uma senha de aplicativo com este nome. Escolha outro nome.',
  appPasswordsFull: 'Você atingiu o número máximo de senhas de aplicativo. Revogue uma que não usa mais.',
  documentNone:
    'O seu domínio não publica nenhum documento que possa ser servido aqui. Publique-o lá primeiro e tente novamente.',
  documentPath: 'Só uma identidade que seja um domínio inteiro, sem caminho, pode ser servida aqui.',
  alreadyHere:
    'A sua conta já está aqui. Se a sua mudança já começou, entre aqui com o nome de usuário e a senha que você escolheu.',
  identityUnreadable: 'A sua identidade não pode ser lida no momento. Tente novamente mais tarde.',
  identityElsewhere:
    'A sua identidade não está sob o controle deste servidor. Se você se mudou para outro servidor, entre lá.',
  identityOtherServer: 'A sua identidade aponta para outro servidor. Se você se mudou para lá, entre lá.',
  identityOtherKey:
    'A sua identidade indica uma chave de assinatura que este servidor não possui. Quem tem a sua chave de recuperação pode corrigir isso.',
  tooManyMinute: 'Tentativas demais. Espere um minuto e tente novamente.',
  tooMany: 'Tentativas demais. Espere alguns minutos e tente novamente.',
  codeWrong: 'Este código está errado. Confira-o ou peça um novo.',
  codeExpired: 'Este código expirou. Peça um novo.',
  factorWanted: 'O servidor antigo pede um código, que ele enviou para o seu e-mail. Informe-o junto com a senha.',
  upstream: 'Um serviço do qual isso depende não está respondendo. Nada foi alterado. Tente novamente em instantes.',
  signInMissing: 'Informe o seu nome de usuário ou e-mail e a sua senha.',
  signInWrong: 'A conta ou a senha está errada. Senhas de aplicativo não funcionam aqui.',
  takenDown: 'Esta conta foi suspensa. Entre em contato com o operador deste servidor.',
  endPassed: 'Escolha um dia que ainda não passou.',
  scopeUnknown: 'Um destes scopes não é conhecido, ou só a própria conta pode tê-lo. Corrija-o ou remova-o.',
  factorMailed: 'Sua conta aqui pede um segundo fator. Enviamos um código por e-mail: informe-o junto com a senha.',
  factorApp:
    'Sua conta aqui pede um segundo fator. Informe um código do seu app autenticador ou um código de recuperação.',
  tooManyCodes: 'Códigos errados demais. Espere uma hora e tente novamente.',
  signInLate: 'Isso demorou demais. Entre novamente.',
} as const
