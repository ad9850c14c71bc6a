import { adminCommand } from '../admin-command.ts'
import { minute, table } from '../report.ts'
import { signUpsIn, windowOptions } from './operator-sign-ups.ts'

export const accountSignUpsCommand = adminCommand({
  summary: 'List the accounts that were created in a period, and the hours with unusually many sign-ups.',
  details: 'The alert sign-ups-burst points here. "account undo-sign-ups" undoes the sign-ups together.',
  options: windowOptions,
  async run({ server, options }) {
    const found = await signUpsIn(server, options)
    const rows = found.accounts.map((one) => [
      minute(one.createdAt)!,
      one.handle ?? '',
      one.emailDomain ?? '',
      one.status,
      String(one.records),
      String(one.blobs),
      one.did,
    ])
    const busy = found.hours.filter(({ count }) => found.burst > 0 && count >= found.burst)
    const bursts = busy.map(({ hour, count }) => `${count} accounts were created in the hour from ${minute(hour)}.`)
    const list = table(['CREATED', 'HANDLE', 'MAIL AT', 'STATUS', 'RECORDS', 'BLOBS', 'DID'], rows)
    return {
      value: found,
      text: [...bursts, `Accounts created from ${found.from} until ${found.until}: ${found.count}`, list].join('\n'),
    }
  },
})
