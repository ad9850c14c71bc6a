import { integerOption } from '../command.ts'
import { pages } from '../operator-pages.ts'
import { minute, table } from '../report.ts'
import { accountCommand } from './operator-accounts.ts'

interface ListedEvent {
  at: string
  message: string
  means?: string
  subject?: string
  program?: string
  network?: string
  byOperator: boolean
  times: number
}

export const accountEventsCommand = accountCommand({
  summary: 'List what happened to an account in the last 90 days.',
  details: `Lists sign-ins and changes to the account and its access, newest first, as the holder sees them on
the account page. Of an IP address, only the network is stored.`,
  options: { limit: { value: 'n', doc: 'List at most this many.' } },
  async run({ server, path, options }) {
    const events = await pages<ListedEvent>(server, `${path}/events`, 'events', {}, integerOption(options, 'limit', 1))
    const rows = events.map(({ at, message, means, subject, program, network, byOperator, times }) => [
      minute(at)!,
      `${message}${means === undefined ? '' : ` (${means})`}${times === 1 ? '' : `, ${times} times that day`}`,
      subject ?? '',
      byOperator ? 'the operator' : (program ?? ''),
      byOperator ? '' : (network ?? ''),
    ])
    return { value: events, text: table(['WHEN', 'EVENT', 'WHAT', 'WITH', 'NETWORK'], rows) }
  },
})
