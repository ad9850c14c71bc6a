/** What operators see of alerts: those that last, and those that are over. */
import { route } from '../../../http/endpoint.ts'
import { invalidRequest } from '../../../http/errors.ts'
import { wireTime, wireTimeOrNull } from '../../../protocol/identifiers.ts'
import { actorOf, logOperator, operator } from '../operators/operators.ts'
import { areAlertsOn } from './alert.ts'
import { sendTest } from './alert-messages.ts'
import { listAlerts, type AlertRow } from './alert-store.ts'

/** `pending`: the condition holds, but not for long enough to be told. */
const stateOf = ({ told }: AlertRow): 'pending' | 'on' | 'over' =>
  ({ nothing: 'pending', begun: 'on', over: 'over' })[told] as 'pending' | 'on' | 'over'

const alertView = (row: AlertRow) => ({
  name: row.name,
  subject: row.subject === '' ? null : row.subject,
  state: stateOf(row),
  text: row.text,
  since: wireTime(row.since),
  toldAt: wireTimeOrNull(row.toldAt),
  overSince: row.told === 'over' ? wireTimeOrNull(row.clearSince) : null,
})

export const alertRoutes = [
  route('GET', '/v1/admin/alerts', {
    auth: operator('observe'),
    async handler({ ctx }) {
      return { enabled: areAlertsOn(ctx.config), alerts: (await listAlerts(ctx.db)).map(alertView) }
    },
  }),

  /** Sends a test, and waits for the first try of each recipient. */
  route('POST', '/v1/admin/alerts/test', {
    auth: operator(),
    async handler(call) {
      const { ctx, caller } = call
      if (!areAlertsOn(ctx.config)) throw invalidRequest('alerts.mail_to and alerts.webhook_url are not set')
      logOperator(call, { actor: actorOf(caller), action: 'alert_test' })
      return sendTest(ctx)
    },
  }),
]
