import { expect, test } from 'bun:test'
import { base58btc } from 'multiformats/bases/base58'
import { PushDevice } from '../../../tests/support/clients/push-device.ts'
import { Random } from '../../../tests/support/random.ts'
import vectors from '../../../tests/vectors/contract/push-hpke-sealed-payload.json' with { type: 'json' }
import { formatDidKey, signingKey } from '../keys.ts'
import { paddedPlaintext, relayedBody, type PushMessage } from './push-message.ts'
import { parsePushKey, sealPush } from './push-sealing.ts'
import { thrownBy } from '../../../tests/support/thrown.ts'

const bytes = (hex: string) => new Uint8Array(Buffer.from(hex, 'hex'))
const { sender, recipient, wrongSender } = vectors
const senderSecret = { kid: sender.kid, secret: bytes(sender.privateScalarHex) }
const recipientKey = parsePushKey(recipient.publicKey)!
const device = new PushDevice(bytes(recipient.privateScalarHex))

test.each(vectors.vectors)(
  'the published seal: $name',
  async ({ kid, payloadWithoutPad, ephemeralPrivateHex, ...expected }) => {
    const plaintext = paddedPlaintext(payloadWithoutPad as PushMessage, kid)!
    expect(Buffer.from(plaintext).toString('base64url')).toBe(expected.plaintextBase64url)
    const sealed = await sealPush(senderSecret, recipientKey, plaintext, bytes(ephemeralPrivateHex))
    expect(sealed).toEqual({ kid, enc: expected.enc, ct: expected.ct })
    expect(relayedBody(sealed)).toBe(expected.apnsBody)
    expect(relayedBody(sealed)).toHaveLength(expected.apnsBodyLen)
  },
)

test.each(vectors.vectors)(
  '$name: opens for its device and its sender alone',
  async ({ enc, ct, plaintextBase64url }) => {
    const sealed = { enc, ct }
    expect(await device.open(sealed, sender.publicKey)).toBe(Buffer.from(plaintextBase64url, 'base64url').toString())
    expect(await thrownBy(device.open(sealed, wrongSender.publicKey))).toThrow()
    expect(await thrownBy(new PushDevice().open(sealed, sender.publicKey))).toThrow()
    const changed = Buffer.from(ct, 'base64url')
    changed[7]! ^= 1
    expect(await thrownBy(device.open({ enc, ct: changed.toString('base64url') }, sender.publicKey))).toThrow()
  },
)

test('the published public keys belong to the secrets', () => {
  for (const { privateScalarHex, publicKey } of [sender, recipient])
    expect(formatDidKey(signingKey('p256', bytes(privateScalarHex)).publicKey)).toBe(publicKey as never)
})

test.each([1, 2])('what is sealed opens again, whatever its length and keys (seed %i)', async (seed) => {
  const random = new Random(seed)
  const secretOf = () =>
    bytes(Array.from({ length: 32 }, () => random.below(256).toString(16).padStart(2, '0')).join(''))
  for (let round = 0; round < 20; round++) {
    const other = new PushDevice(secretOf())
    const secret = secretOf()
    const plaintext = new Uint8Array(random.below(2800)).fill(0x61)
    const sealed = await sealPush({ kid: round, secret }, parsePushKey(other.publicKey)!, plaintext, secretOf())
    expect(sealed.kid).toBe(round)
    expect(sealed.enc).toHaveLength(87)
    expect(await other.open(sealed, formatDidKey(signingKey('p256', secret).publicKey))).toBe(
      'a'.repeat(plaintext.byteLength),
    )
  }
})

test('the key of a device is a point of P-256 in its one spelling', () => {
  expect(formatDidKey(parsePushKey(recipient.publicKey)!)).toBe(recipient.publicKey as never)
  const k256 = formatDidKey(signingKey('k256', bytes(sender.privateScalarHex)).publicKey)
  const [prefix, text] = ['did:key:', recipient.publicKey.slice('did:key:'.length)]
  for (const bad of [
    k256,
    text,
    `${prefix}${text.slice(0, -1)}`,
    `${prefix}${text}1`,
    `${prefix}${text.toLowerCase()}`,
    prefix,
    '',
    'did:web:a.test',
  ])
    expect(parsePushKey(bad)).toBeNull()
})

test('a did:key whose x has no point on the curve is refused', () => {
  const ofX = (x: number) =>
    `did:key:${base58btc.encode(Buffer.concat([Buffer.from([0x80, 0x24, 0x02]), Buffer.alloc(31), Buffer.from([x])]))}`
  const verdicts = Array.from({ length: 40 }, (_, x) => parsePushKey(ofX(x)) !== null)
  // About half of all numbers are the x of a point.
  expect(verdicts.filter(Boolean).length).toBeWithin(8, 32)
  const beyondTheField = Buffer.concat([Buffer.from([0x80, 0x24, 0x02]), Buffer.alloc(32, 0xff)])
  expect(parsePushKey(`did:key:${base58btc.encode(beyondTheField)}`)).toBeNull()
})
