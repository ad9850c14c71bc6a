import { expect, test } from 'bun:test'
import { parseWebhookSecret, webhookHeaders } from './webhook-signature.ts'

test('a message is signed as the example of the standard', () => {
  const key = parseWebhookSecret('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw')!
  const message = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', timestampSecs: 1614265330, body: '{"test": 2432232314}' }
  expect(webhookHeaders(message, key)).toEqual({
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  })
})

test('a secret has the form of the standard, or is refused', () => {
  const secretOf = (bytes: number) => `whsec_${Buffer.alloc(bytes, 1).toString('base64')}`
  expect(parseWebhookSecret(secretOf(24))).toHaveLength(24)
  expect(parseWebhookSecret(secretOf(64))).toHaveLength(64)
  expect(parseWebhookSecret(secretOf(25).replace(/=+$/, ''))).toHaveLength(25)
  const wrong = [secretOf(23), secretOf(65), secretOf(32).slice('whsec_'.length), '', 'whsec_', `${secretOf(32)}!`]
  expect(wrong.map(parseWebhookSecret)).toEqual(wrong.map(() => null))
})
