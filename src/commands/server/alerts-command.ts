import { adminCommand } from '../admin-command.ts'
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

const OFF = 'Alerts are off: set alerts.mail_to.'

export const alertsCommand = adminCommand({
  name: 'alerts',
  summary: 'List the alerts that last, and those that are over.',
  details: `Alerts are what operators have to act on, such as a disk that is nearly full: docs/alerts.md lists them. "pending" is
one that has not lasted for long enough to be told. Exits with 1 while an alert is on.`,
  async run({ server }) {
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
      failed: view.alerts.some(({ state }) => state === 'on'),
    }
  },
})
