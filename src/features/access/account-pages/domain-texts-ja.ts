export const domainJapanese = {
  title: '自分のドメイン',
  heading: '@{handle} を使う',
  lead: 'このドメインを管理していることを示すため、下の2つのうち<strong>どちらか一方</strong>を公開してから、確認してください。',
  record: 'DNS レコード',
  recordLead:
    'ドメインを管理しているところで、このレコードを追加してください。<code>_atproto</code> のように、ドメインを除いた名前を入力する事業者もあります。',
  name: '名前',
  type: '種類',
  value: '値',
  file: 'または、そのウェブサイトのファイル',
  fileLead: 'この1行だけのプレーンテキストです。',
  address: 'アドレス',
  content: '内容',
  check: '確認してハンドルを変更',
  checkMeans:
    '確認のたびに、ドメインを調べ直します。レコードかファイルが見つかると、ハンドルはすぐに {from} から @{to} に変わります。',
  back: 'アカウントに戻る',
  checkedAt: '{time} の確認結果：',
  recordMissing:
    '<strong>DNS レコード：</strong>見つかりません。新しいレコードがどこからでも見えるようになるまで、数分かかることがあります。',
  recordRight: '<strong>DNS レコード：</strong>見つかりました。内容も正しいです。',
  recordOther: '<strong>DNS レコード：</strong>見つかりましたが、別のアカウント <code>{did}</code> を指しています。',
  fileMissing: '<strong>ファイル：</strong>見つかりません。ログインせずに https でアクセスできる必要があります。',
  fileRight: '<strong>ファイル：</strong>見つかりました。内容も正しいです。',
  fileOther: '<strong>ファイル：</strong>見つかりましたが、別のアカウント <code>{did}</code> を指しています。',
  recordFirst: 'レコードはファイルより優先されます。修正するか、削除してください。',
} as const
