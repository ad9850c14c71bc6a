/**
 * Signatures of webhooks, which show the receiver who sent a message and when.
 *
 * Source: Standard Webhooks 1.0.0, "Signature scheme", symmetric: HMAC-SHA256 in base64, after `v1,`.
 */
import { createHmac } from 'node:crypto'

const PREFIX = 'whsec_'
const keyBytes = { min: 24, max: 64 }

export interface WebhookMessage {
  /** The same in every attempt. Contains no dot. */
  id: string
  /** Time of the attempt, in seconds since the epoch. */
  timestampSecs: number
  body: string
}

/** Returns the key of a secret: `whsec_` and 24 to 64 bytes in base64. Null if it has another form. */
export function parseWebhookSecret(secret: string): Uint8Array | null {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : ''
  const key = Buffer.from(text, 'base64')
  const isWhole = unpadded(key.toString('base64')) === unpadded(text)
  return isWhole && key.length >= keyBytes.min && key.length <= keyBytes.max ? key : null
}

const unpadded = (base64: string): string => base64.replace(/={0,2}$/, '')

/** Returns the headers of a message that is signed with a key. */
export function webhookHeaders({ id, timestampSecs, body }: WebhookMessage, key: Uint8Array): Record<string, string> {
  const signature = createHmac('sha256', key).update(`${id}.${timestampSecs}.${body}`).digest('base64')
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestampSecs),
    'webhook-signature': `v1,${signature}`,
  }
}
