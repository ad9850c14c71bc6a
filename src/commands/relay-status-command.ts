import { operated } from './operated.ts'
import { facts, minute } from './report.ts'

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

export const relayStatusCommand = operated({
  name: 'relay status',
  summary: 'Show what the relay knows of this server, and how far it has read.',
  details: 'Asks the first of crawlers.urls. Exits with 1 when it does not answer.',
  async run({ server }) {
    const status = await server.get<RelayStatus>('/v1/admin/relay-status')
    const text = facts({
      relay: status.relayHost ?? 'none',
      reachable: status.reachable ? 'yes' : 'no',
      status: status.relayStatus,
      accounts: status.accountCount,
      'read up to': status.relaySeq,
      'of that time': minute(status.relayCursorAt),
      'newest event': status.pdsHeadSeq,
      behind: status.gap,
      detail: status.detail,
    })
    return { value: status, text, failed: !status.reachable }
  },
})
