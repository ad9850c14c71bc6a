export const walletMattersJapanese = {
  title: 'ウォレット',
  waiting: '応答待ち',
  waitingLead:
    'ログインのためにあなたのアカウント名が入力されました。ウォレットを開いて応答してください。承認するのは、たった今ご自身で始めたログインだけにしてください。',
  devices: 'デバイス',
  devicesLead:
    'アカウントの移行先のデバイスです。無効にしたデバイスはこのサーバーを使えなくなりますが、そのウォレットに鍵は残ります。',
  thisPage: 'このアカウントページ',
  signIn: '{name} へのログイン',
  since: '{time}から',
  sinceUsed: '{time}から、最終使用 {used}',
  with: '使用中：{program}',
  network: 'ネットワーク：{network}',
  begunOn: '開始した場所：{origin}',
  code: 'ウォレット用のコード：<strong>{code}</strong>',
  deny: '拒否',
  denySignIn: '{name} へのコード {code} のログインを拒否',
  transferOpen:
    '{began}に、アカウントの別のデバイスへの移行が始まりました。コードを持つデバイスは {until}まで移行を受け入れられます。心当たりがない場合は取り消してください。',
  transferAccepted:
    '{began}に、アカウントの別のデバイスへの移行が始まりました。{accepted}にデバイスが受け入れました。完了すると、ほかはすべてログアウトされます。心当たりがない場合は取り消してください。',
  cancel: '移行を取り消す',
  revoke: '無効にする',
  revokeDevice: '{name} を無効にする',
} as const
