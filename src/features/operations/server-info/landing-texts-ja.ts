export const landingJapanese = {
  about:
    'Bluesky などのアプリのネットワーク、<protocol>AT Protocol</protocol>のアカウントのためのサーバーです。データはあなたのもので、いつでも別のサーバーに移せます。',
  signUp: '登録',
  handlesUnder: 'ハンドルのドメイン',
  signUpFact: '登録',
  withInvite: '招待コードが必要',
  open: '誰でも登録可能',
  serverDid: 'サーバーの DID',
  software: 'ソフトウェア',
  interface: 'アプリ向けのインターフェースは <code>/xrpc/</code> にあります。',
} as const
