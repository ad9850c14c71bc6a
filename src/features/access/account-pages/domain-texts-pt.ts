export const domainBrazilian = {
  title: 'Seu próprio domínio',
  heading: 'Usar @{handle}',
  lead: 'Para provar que você controla este domínio, publique <strong>uma</strong> das duas opções abaixo e depois verifique.',
  record: 'Um registro DNS',
  recordLead:
    'Adicione este registro onde você gerencia o domínio. Alguns provedores esperam o nome sem o domínio, como <code>_atproto</code>.',
  name: 'Nome',
  type: 'Tipo',
  value: 'Valor',
  file: 'Ou um arquivo no site dele',
  fileLead: 'Texto simples, com esta única linha.',
  address: 'Endereço',
  content: 'Conteúdo',
  check: 'Verificar e alterar meu nome de usuário',
  checkMeans:
    'Cada verificação consulta o domínio de novo. Se encontrar o registro ou o arquivo, seu nome de usuário muda na hora de {from} para @{to}.',
  back: 'Voltar para sua conta',
  checkedAt: 'Verificado às {time}:',
  recordMissing:
    '<strong>Registro DNS:</strong> não encontrado. Um registro novo pode levar alguns minutos para ficar visível em toda parte.',
  recordRight: '<strong>Registro DNS:</strong> encontrado e correto.',
  recordOther: '<strong>Registro DNS:</strong> encontrado, mas aponta para outra conta, <code>{did}</code>.',
  fileMissing: '<strong>Arquivo:</strong> não encontrado. Ele precisa estar acessível por https sem login.',
  fileRight: '<strong>Arquivo:</strong> encontrado e correto.',
  fileOther: '<strong>Arquivo:</strong> encontrado, mas aponta para outra conta, <code>{did}</code>.',
  recordFirst: 'O registro tem precedência sobre o arquivo. Corrija-o ou remova-o.',
} as const
