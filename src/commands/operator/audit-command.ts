import { integerOption } from '../command.ts'
import { adminCommand } from '../admin-command.ts'
import { pages } from '../operator-pages.ts'
import { minute, table } from '../report.ts'

interface AuditEvent {
  actor: string
  action: string
  subject?: string
  detail?: string
  reason?: string
  createdAt: string
}

const DEFAULT_EVENTS = 50

export const auditCommand = adminCommand({
  summary: 'Print what operators did, newest first.',
  details: '',
  options: {
    action: { value: 'NAME', doc: 'Only this action, such as account_takedown.' },
    actor: { value: 'NAME', doc: 'Only this actor: master-token, device:<id> or operator:<did>.' },
    subject: { value: 'TEXT', doc: 'Only what was done to this DID, AT URI or id.' },
    limit: { value: 'n', doc: `Print at most this many. Default: ${DEFAULT_EVENTS}.` },
  },
  async run({ server, options }) {
    const { action, actor, subject } = options
    const events = await pages<AuditEvent>(
      server,
      '/v1/admin/audit',
      'events',
      { action, actor, subject },
      integerOption(options, 'limit', 1) ?? DEFAULT_EVENTS,
    )
    const rows = events.map(({ createdAt, actor, action, subject = '', reason = '' }) => [
      minute(createdAt)!,
      actor,
      action,
      subject,
      reason,
    ])
    return { value: events, text: table(['TIME', 'ACTOR', 'ACTION', 'SUBJECT', 'REASON'], rows) }
  },
})
