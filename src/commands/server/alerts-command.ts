import { adminCommand, type Answer } from '../admin-command.ts'
import type { Server } from '../operator-server.ts'
import { minute, table } from '../report.ts'

interface AlertsView {
  enabled: boolean
  alerts: {
    name: string
    subject: string | null
    state: 'pending' | 'on' | 'over'
    text: string
    since: string
    toldAt: string | null
    overSince: string | null
  }[]
}

interface TestOutcome {
  mail: { to: string; sent: boolean; outcome: keyof typeof outcomes }[]
  webhook: boolean | null
}

const OFF = 'Alerts are off: set alerts.mail_to or alerts.webhook_url.'
const outcomes = {
  sent: 'sent',
  delayed: 'not sent yet: the log says why, and the server will retry',
  refused: 'refused: the log says why, and the server will not retry',
  logged: 'not sent: email.provider is "log", so the mail was written to the log',
}

export const alertsCommand = adminCommand({
  summary: 'List current and recent alerts.',
  details: `Alerts are conditions that operators have to act on, such as a disk that is nearly full: docs/alerts.md lists them. A
"pending" alert has not lasted long enough to be sent. Exits with 1 while an alert is on, or if a test was not sent.`,
  options: { test: { doc: 'Send a test to every recipient, and say which were reached.' } },
  async run({ server, flags }) {
    return flags.has('test') ? tested(server) : listed(server)
  },
})

async function tested(server: Server): Promise<Answer> {
  const found = await server.post<TestOutcome>('/v1/admin/alerts/test')
  const results = [
    ...found.mail.map(({ to, outcome }) => [to, outcome] as const),
    ...(found.webhook === null ? [] : [['the webhook', found.webhook ? 'sent' : 'delayed'] as const]),
  ]
  return {
    value: found,
    text: results.map(([to, outcome]) => `${to}: ${outcomes[outcome]}`).join('\n'),
    failed: results.some(([, outcome]) => outcome !== 'sent'),
  }
}

async function listed(server: Server): Promise<Answer> {
  const view = await server.get<AlertsView>('/v1/admin/alerts')
  const rows = view.alerts.map(({ name, subject, state, since, overSince, text }) => [
    name,
    subject ?? '',
    state,
    minute(since)!,
    minute(overSince) ?? '',
    text,
  ])
  const list =
    rows.length === 0
      ? 'There has been no alert.'
      : table(['ALERT', 'ABOUT', 'STATE', 'SINCE', 'OVER SINCE', 'FACT'], rows)
  return {
    value: view,
    text: view.enabled ? list : `${OFF}\n${list}`,
    failed: view.enabled && view.alerts.some(({ state }) => state === 'on'),
  }
}
