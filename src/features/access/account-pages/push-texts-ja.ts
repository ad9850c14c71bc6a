export const pushJapanese = {
  title: '通知',
  lead: 'アプリやプログラムがアカウントへのアクセスを要求したときに通知を受け取るデバイスです。メッセージはデバイスごとに暗号化されます。削除したデバイスは、ウォレットが登録し直すまで通知を受け取りません。',
  none: '登録されたデバイスはありません。',
  since: '{day}から',
  sincePushed: '{day}から、最終通知 {pushed}',
  device: 'デバイス {id}',
  remove: '削除',
  removeDevice: '{name} のデバイス {id} を削除',
} as const
