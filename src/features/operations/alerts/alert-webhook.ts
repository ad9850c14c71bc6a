/** The webhook of alerts: a durable step that posts a signed message to the address of the configuration. */
import { HOUR_SECS } from '../../../base/durations.ts'
import type { Context } from '../../../platform/context.ts'
import type { StepKind } from '../../../platform/running/steps.ts'
import { parseWebhookSecret, webhookHeaders } from '../../../protocol/webhook-signature.ts'

const TIMEOUT_MILLIS = 15_000

export interface WebhookPost {
  id: string
  /** JSON. */
  body: string
}

class WebhookRefused extends Error {
  constructor(readonly status: number) {
    super(`the receiver of the webhook returned ${status}`)
  }
}

export const webhookStep: StepKind<WebhookPost> = {
  name: 'alert-webhook',
  concurrency: 1,
  maxSteps: 100,
  // The last try is about a day after the first.
  maxTries: 36,
  firstWaitSecs: 5,
  maxWaitSecs: HOUR_SECS,
  // 410: the receiver wants no more messages.
  isFinal: (error) => error instanceof WebhookRefused && error.status === 410,
  take: (ctx, { payload }) => postWebhook(ctx, payload),
}

/** Post a message. Does nothing without an address. Throws if the receiver does not accept it. */
export async function postWebhook({ config, clock, upstream }: Context, { id, body }: WebhookPost): Promise<void> {
  const { webhookUrl, webhookSecret } = config.alerts
  if (webhookUrl === null || webhookSecret === null) return
  const key = parseWebhookSecret(webhookSecret.reveal())
  if (key === null) throw new Error('alerts.webhook_secret is not a webhook secret')
  const timestampSecs = Math.floor(clock.now() / 1000)
  const response = await upstream.fetch(webhookUrl, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...webhookHeaders({ id, timestampSecs, body }, key) },
    body,
    headersTimeoutMillis: TIMEOUT_MILLIS,
  })
  await response.body?.cancel()
  if (!response.ok) throw new WebhookRefused(response.status)
}
