export const fieldJapanese = {
  identifier: 'ハンドルまたはメールアドレス',
  password: 'パスワード',
  newPassword: '新しいパスワード',
  newPasswordHint: '{chars}文字以上。パスワードマネージャーで生成することもできます。',
  code: 'メールに記載のコード',
  remember: 'このブラウザーでログインしたままにする',
  rememberHint: '最長30日間。共有のデバイスでは使わないでください。',
  handle: 'ハンドル',
  email: 'メールアドレス',
  chooseAccount: 'アカウントを選択',
  more: { other: 'ほか{count}件' },
  anotherAccount: '別のアカウント',
  usePasskey: 'パスキーを使う',
  passkeyNotUsed: 'パスキーは使われませんでした。もう一度試すか、別の方法を選んでください。',
  passkeyNotMade:
    'パスキーは作成されませんでした。このデバイスには、このアカウントのパスキーがすでにあるのかもしれません。もう一度お試しください。',
} as const
