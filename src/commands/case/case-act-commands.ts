/** Commands that act on cases. Reasons and notes are stored in the case and in the audit log. */
import { DAY_SECS, HOUR_SECS } from '../../base/durations.ts'
import { adminCommand } from '../admin-command.ts'
import { findAccount } from '../account/operator-accounts.ts'
import { Misuse } from '../command.ts'
import { casePath, caseText, type ListedCase, type WholeCase } from './operator-cases.ts'

export const caseOpenCommand = adminCommand({
  summary: 'Open a case about an account, a record or a blob.',
  parameters: ['<subject>', '<why>'],
  details: 'Name an account by its handle or DID, a record by its AT URI, and a blob by the DID, "#" and its CID.',
  async run({ server, positionals: [given = '', reason = ''] }) {
    const subject = /^at:|#/.test(given) ? given : (await findAccount(server, given)).did
    const value = await server.post<ListedCase>('/v1/admin/cases', { subject, reason })
    return { value, text: `This is case ${value.id}.` }
  },
})

export const caseNoteCommand = adminCommand({
  summary: 'Add a note to a case. Only moderators see it.',
  parameters: ['<case>', '<text>'],
  details: '',
  async run({ server, positionals: [id = '', text = ''] }) {
    const value = await server.post(casePath(id, '/notes'), { text })
    return { value, text: `The note is in case ${id}.` }
  },
})

const spans: Readonly<Record<string, number>> = { h: HOUR_SECS, d: DAY_SECS }

export const caseDeadlineCommand = adminCommand({
  summary: 'Set the deadline of a case.',
  parameters: ['<case>', '<time>'],
  details: 'The time is counted from now, in hours or days: 12h, 7d.',
  async run({ server, positionals: [id = '', given = ''] }) {
    const [, count = '', unit = ''] = /^(\d{1,4})([hd])$/.exec(given) ?? []
    if (count === '') throw new Misuse('give the time in hours or days: 12h, 7d')
    const value = await server.post(casePath(id, '/deadline'), { inSecs: Number(count) * spans[unit]! })
    return { value, text: `Case ${id} has to be decided within ${given}.` }
  },
})

export const caseDecideCommand = adminCommand({
  summary: 'Decide a case. The decision takes effect at once; its subject is mailed the reason and may appeal.',
  parameters: ['<case>', '<act>', '<why>'],
  details: `"case show" lists the acts that are possible. "nothing" closes the case without a mail. After any other act, the
account holder is mailed the reason and a link to appeal once.`,
  async run({ server, positionals: [id = '', act = '', reason = ''] }) {
    const value = await server.post<WholeCase>(casePath(id, '/decision'), { act, reason })
    return { value, text: caseText(value) }
  },
})

export const caseAnswerCommand = adminCommand({
  summary: 'Answer an appeal: uphold or reverse the decision.',
  parameters: ['<case>', '<outcome>', '<why>'],
  details: '"reversed" lifts the takedown of the decision. The account holder is mailed the answer, which is final.',
  async run({ server, positionals: [id = '', outcome = '', reason = ''] }) {
    if (outcome !== 'upheld' && outcome !== 'reversed') throw new Misuse('the outcome must be "upheld" or "reversed"')
    const value = await server.post<WholeCase>(casePath(id, '/answer'), { outcome, reason })
    return { value, text: caseText(value) }
  },
})

export const caseExportCommand = adminCommand({
  summary: 'Print the decision of a case, for the record or for a third party.',
  parameters: ['<case>'],
  details: 'The reporters are not named. --json prints it for programs.',
  async run({ server, positionals: [id = ''] }) {
    const value = await server.get(casePath(id, '/export'))
    const parts: Uint8Array[] = []
    for await (const part of server.download(casePath(id, '/export?format=text'))) parts.push(part)
    return { value, text: Buffer.concat(parts).toString().trimEnd() }
  },
})
