import { expect, test } from 'bun:test'
import registration from '../../tests/vectors/contract/admin-device-registration.json' with { type: 'json' }
import signed from '../../tests/vectors/contract/admin-signed-request.json' with { type: 'json' }
import { isSignedBy, registrationText, requestText } from './admin-request.ts'

interface Headers {
  'X-Admin-Timestamp': string
  'X-Admin-Nonce': string
  'X-Admin-Signature': string
}

const textOf = (method: string, target: string, body: string, headers: Headers) =>
  requestText({
    method,
    path: target.split('?')[0]!,
    timestamp: headers['X-Admin-Timestamp'],
    nonce: headers['X-Admin-Nonce'],
    body: Buffer.from(body),
  })

test.each(signed.accepted)('accepted: $name', ({ request: { method, target, body }, signString, headers }) => {
  const text = textOf(method, target, body, headers as Headers)
  expect(text).toBe(signString)
  expect(isSignedBy(signed.device.publicKey, text, headers['X-Admin-Signature'])).toBe(true)
  expect(isSignedBy(signed.otherDevice.publicKey, text, headers['X-Admin-Signature'])).toBe(false)
})

interface Case {
  name: string
  from?: string
  change?: Partial<Headers>
  changeBody?: string
  changeTarget?: string
  changeMethod?: string
  expect?: { status: number }
}

/** Cases that are decided by the signature; the others depend on the clock and on what the server remembers. */
const forged = (signed.cases as Case[]).filter(
  ({ expect: wanted, change = {}, ...rest }) =>
    wanted?.status === 401 &&
    ('X-Admin-Signature' in change ||
      rest.changeBody !== undefined ||
      rest.changeTarget !== undefined ||
      rest.changeMethod !== undefined),
)

test.each(forged)('refused: $name', ({ from, change, changeBody, changeTarget, changeMethod }) => {
  const base = signed.accepted.find(({ name }) => name === from)!
  const headers = { ...base.headers, ...change } as Headers
  const text = textOf(
    changeMethod ?? base.request.method,
    changeTarget ?? base.request.target,
    changeBody ?? base.request.body,
    headers,
  )
  expect(isSignedBy(signed.device.publicKey, text, headers['X-Admin-Signature'])).toBe(false)
})

test('a registration is signed by the key that it brings', () => {
  const { pairingCode, publicKey, timestamp, signature } = registration.request.body
  expect(registrationText(pairingCode, publicKey, timestamp)).toBe(registration.signStringValue)
  expect(isSignedBy(publicKey, registration.signStringValue, signature)).toBe(true)
  for (const refused of registration.refused as { publicKey?: string; signature?: string }[]) {
    const key = refused.publicKey ?? publicKey
    expect(isSignedBy(key, registrationText(pairingCode, key, timestamp), refused.signature ?? signature)).toBe(false)
  }
})
