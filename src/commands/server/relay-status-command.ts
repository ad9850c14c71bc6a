import { adminCommand } from '../admin-command.ts'
import { facts, minute } from '../report.ts'

interface RelayStatus {
  relayHost: string | null
  reachable: boolean
  relayStatus: string | null
  relaySeq: number | null
  accountCount: number | null
  pdsHeadSeq: number
  gap: number | null
  relayCursorAt: string | null
  detail: string | null
}

export const relayStatusCommand = adminCommand({
  summary: 'Show the status of this server at the relay, and how far the relay has read.',
  details: 'Asks the first relay in crawlers.urls. Exits with 1 if it does not respond.',
  async run({ server }) {
    const status = await server.get<RelayStatus>('/v1/admin/relay-status')
    const text = facts({
      relay: status.relayHost ?? 'none',
      reachable: status.reachable ? 'yes' : 'no',
      status: status.relayStatus,
      accounts: status.accountCount,
      'read up to': status.relaySeq,
      'event time': minute(status.relayCursorAt),
      'newest event': status.pdsHeadSeq,
      behind: status.gap,
      detail: status.detail,
    })
    return { value: status, text, failed: !status.reachable }
  },
})
