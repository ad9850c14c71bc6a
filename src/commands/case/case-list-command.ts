import { adminCommand } from '../admin-command.ts'
import { findAccount } from '../account/operator-accounts.ts'
import { pages } from '../operator-pages.ts'
import { minute, table } from '../report.ts'
import type { ListedCase } from './operator-cases.ts'

export const caseListCommand = adminCommand({
  summary: 'List moderation cases, newest first.',
  details: 'By default, lists the cases that need a decision or an answer to an appeal.',
  options: {
    state: { value: 'NAME', doc: 'Cases in this state: open, decided, appealed, closed or all.' },
    account: { value: 'NAME', doc: 'Only cases about this account.' },
  },
  async run({ server, options: { state, account } }) {
    const did = account === undefined ? undefined : (await findAccount(server, account)).did
    const wanted = { state, did }
    const cases = await pages<ListedCase>(server, '/v1/admin/cases', 'cases', wanted)
    const rows = cases.map((one) => [
      String(one.id),
      one.state,
      minute(one.openedAt)!,
      minute(one.deadlineAt)!,
      one.handle ?? '',
      one.subject,
    ])
    return { value: cases, text: table(['CASE', 'STATE', 'OPENED', 'DEADLINE', 'ACCOUNT', 'SUBJECT'], rows) }
  },
})
