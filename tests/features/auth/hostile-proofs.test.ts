/**
 * What is sent to the endpoints that take proofs by somebody who wants in, wants the server to ask somebody else, or
 * wants it to stumble. The directory is real, and what reaches it is counted.
 */
import { beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { p256, p384 } from '@noble/curves/nist.js'
import { createHash, randomBytes } from 'node:crypto'
import { base58btc } from 'multiformats/bases/base58'
import { listSessions } from '../../../src/features/access/sessions/sessions.ts'
import { base64url, parseBase64url } from '../../../src/protocol/base64url.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import type { Curve } from '../../../src/protocol/keys.ts'
import {
  accountDeletionEnvelope,
  sovereignSessionEnvelope,
  type Signer,
} from '../../../src/protocol/signed-envelope.ts'
import { xrpc, type TestAccount } from '../../support/clients/account.ts'
import {
  askSession,
  deviceKey,
  proofBy,
  sessionRequest,
  sovereignAccount,
  type DeviceKey,
  type SignedMembers,
} from '../../support/clients/wallet.ts'
import { Random } from '../../support/random.ts'
import { useWorld } from '../../support/world.ts'

setDefaultTimeout(120_000)

const MUTATED_REQUESTS = 10_000
/** Each costs a password hash. */
const MUTATED_DELETIONS = 100

type Holder = TestAccount & { device: DeviceKey }
type Body = SignedMembers & { did: string }

let holders: Record<Curve, Holder>
let sessionsBefore: number
const { pds, line } = useWorld({
  line: true,
  config: {
    rateLimit: { enabled: false },
    accounts: { passwordOptional: true },
    // It asks the directory by itself once the tests take longer than its first pause.
    identityWatch: { intervalSecs: 0 },
  },
})
beforeAll(async () => {
  holders = {
    p256: await sovereignAccount(pds, 'alice', { password: undefined }),
    k256: await sovereignAccount(pds, 'kim', { password: undefined }, deviceKey('k256')),
  }
})
const countSessions = async () => {
  const lists = await Promise.all(
    Object.values(holders).map(({ did }) => listSessions(pds.ctx.db, did as Did, pds.clock.now())),
  )
  return lists.flat().length
}
beforeEach(async () => {
  line.arrived.length = 0
  sessionsBefore = await countSessions()
})

/** Nobody was let in, nobody was asked, and nothing went wrong. */
async function expectNothingHappened() {
  expect(line.arrived).toEqual([])
  expect(await countSessions()).toBe(sessionsBefore)
  expect(pds.log.filter(({ level }) => level === 'error')).toEqual([])
}

const curves = ['p256', 'k256'] as const
/** Of base64url, in the order of its values. */
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
const orders: Record<Curve, bigint> = {
  p256: 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n,
  k256: 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n,
}
const halves = (signature: string) => {
  const hex = Buffer.from(parseBase64url(signature)!).toString('hex')
  return [BigInt(`0x${hex.slice(0, 64)}`), BigInt(`0x${hex.slice(64)}`)] as const
}
const joined = (r: bigint, s: bigint) =>
  base64url(Buffer.from(r.toString(16).padStart(64, '0') + s.toString(16).padStart(64, '0'), 'hex'))
const derNumber = (value: bigint) => {
  const hex = value.toString(16)
  const bytes = Buffer.from(hex.length % 2 ? `0${hex}` : hex, 'hex')
  const padded = bytes[0]! >= 0x80 ? Buffer.concat([Buffer.from([0]), bytes]) : bytes
  return Buffer.concat([Buffer.from([2, padded.length]), padded])
}
const der = (r: bigint, s: bigint) => {
  const numbers = Buffer.concat([derNumber(r), derNumber(s)])
  return base64url(Buffer.concat([Buffer.from([0x30, numbers.length]), numbers]))
}

test.each(curves)('of all spellings of a %s signature one is accepted', async (curve) => {
  const whole = sessionRequest(pds, holders[curve])
  const [r, s] = halves(whole.signature)
  const n = orders[curve]
  const bytes = Buffer.from(parseBase64url(whole.signature)!)
  const spellings = {
    'high s': joined(r, n - s),
    'negated r': joined(n - r, s),
    'r and s exchanged': joined(s, r),
    'r beyond the order': r + n < 2n ** 256n ? joined(r + n, s) : joined(r ^ 1n, s),
    'r of zero': joined(0n, s),
    's of zero': joined(r, 0n),
    'both zero': joined(0n, 0n),
    'the order': joined(n, n),
    'all ones': base64url(Buffer.alloc(64, 0xff)),
    DER: der(r, s),
    'DER, high s': der(r, n - s),
    'with a recovery byte': base64url(Buffer.concat([bytes, Buffer.from([0])])),
    'with one in front': base64url(Buffer.concat([Buffer.from([27]), bytes])),
    '63 bytes': base64url(bytes.subarray(1)),
    'as hex': bytes.toString('hex'),
    'as base64': bytes.toString('base64'),
    padded: `${whole.signature}==`,
    'a space more': ` ${whole.signature}`,
    'a line more': `${whole.signature}\n`,
    'with stray bits': whole.signature.slice(0, -1) + ALPHABET[ALPHABET.indexOf(whole.signature.at(-1)!) + 1],
    empty: '',
  }
  for (const [what, signature] of Object.entries(spellings))
    expect([what, (await askSession(pds, { ...whole, signature })).status]).toEqual([what, 401])
  await expectNothingHappened()
  expect((await askSession(pds, whole)).status).toBe(200)
})

test('a key is a compressed point of one of two curves, spelled in one way', async () => {
  const alice = holders.p256
  const { publicKey } = alice.device.key
  const multikey = (codec: number[], bytes: Uint8Array) =>
    `did:key:${base58btc.encode(Buffer.concat([Buffer.from(codec), bytes]))}`
  const other = p384.utils.randomSecretKey()
  const uncompressed = p256.Point.fromBytes(publicKey.bytes).toBytes(false)
  const keys = {
    'P-384': multikey([0x81, 0x24], p384.getPublicKey(other, true)),
    'P-521': multikey([0x82, 0x24], randomBytes(67)),
    Ed25519: multikey([0xed, 0x01], randomBytes(32)),
    X25519: multikey([0xec, 0x01], randomBytes(32)),
    'BLS 12-381': multikey([0xea, 0x01], randomBytes(48)),
    RSA: multikey([0x85, 0x24], randomBytes(100)),
    'a point of P-256 as one of secp256k1': multikey([0xe7, 0x01], publicKey.bytes),
    'no codec': `did:key:${base58btc.encode(publicKey.bytes)}`,
    'a point that is not compressed': multikey([0x80, 0x24], uncompressed),
    'a hybrid point': multikey([0x80, 0x24], Buffer.concat([Buffer.from([6]), uncompressed.subarray(1)])),
    'a point off the curve': multikey([0x80, 0x24], Buffer.concat([Buffer.from([2]), Buffer.alloc(32, 0xff)])),
    infinity: multikey([0x80, 0x24], Buffer.from([0])),
    'a byte more': multikey([0x80, 0x24], Buffer.concat([publicKey.bytes, Buffer.from([0])])),
    'a byte less': multikey([0x80, 0x24], publicKey.bytes.subarray(0, 32)),
    'a leading zero in base58': alice.device.did.replace('did:key:z', 'did:key:z1'),
    'another base': `did:key:f8024${Buffer.from(publicKey.bytes).toString('hex')}`,
    'a fragment': `${alice.device.did}#${alice.device.did.slice('did:key:'.length)}`,
    'upper case': alice.device.did.replace('did:key', 'DID:KEY'),
    'a space': ` ${alice.device.did}`,
    'no prefix': alice.device.did.slice('did:key:'.length),
    'another method': 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa',
    endless: `did:key:z${'2'.repeat(100_000)}`,
    empty: '',
  }
  for (const [what, key] of Object.entries(keys)) {
    const body = sessionRequest(pds, alice, { key })
    expect([what, (await askSession(pds, body)).status]).toEqual([what, 401])
  }
  await expectNothingHappened()
})

type Fields = (readonly [name: string, value: string])[]
const lineOf = ([name, value]: Fields[number]) => `${name}:${Buffer.byteLength(value)}:${value}\n`
const fieldsOf = (envelope: Uint8Array): Fields =>
  Buffer.from(envelope)
    .toString()
    .trimEnd()
    .split('\n')
    .map((text) => {
      const [, name, value] = /^(\w+):\d+:(.*)$/.exec(text)!
      return [name!, value!] as const
    })

/** Other texts that say the same, or almost, by what is different. */
function* otherEnvelopes(right: Uint8Array): Generator<[what: string, text: string]> {
  const fields = fieldsOf(right)
  const whole = fields.map(lineOf)
  const with_ = (index: number, ...lines: string[]) => whole.toSpliced(index, 1, ...lines).join('')
  for (const [index, [name, value]] of fields.entries()) {
    const length = Buffer.byteLength(value)
    yield [`no ${name}`, with_(index)]
    yield [`${name} twice`, with_(index, whole[index]!, whole[index]!)]
    yield [`an empty ${name}`, with_(index, `${name}:0:\n`)]
    yield [`a padded length of ${name}`, with_(index, `${name}:0${length}:${value}\n`)]
    yield [`a length of ${name} that is one more`, with_(index, `${name}:${length + 1}:${value}\n`)]
    yield [`a length of ${name} that is one less`, with_(index, `${name}:${length - 1}:${value}\n`)]
    yield [`no length of ${name}`, with_(index, `${name}:${value}\n`)]
    yield [`${name} with a space more`, with_(index, lineOf([name, `${value} `]))]
    yield [`${name} with another case of its name`, with_(index, lineOf([name.toUpperCase(), value]))]
    yield [`${name} with another end of line`, with_(index, whole[index]!.replace('\n', '\r\n'))]
    yield [
      `${name} last`,
      [...whole.toSpliced(index, 1), index === whole.length - 1 ? ' ' : '', whole[index]!].join(''),
    ]
    if (index > 0)
      yield [
        `${name} before ${fields[index - 1]![0]}`,
        whole.toSpliced(index - 1, 2, whole[index]!, whole[index - 1]!).join(''),
      ]
  }
  const changed: Record<string, string[]> = {
    domain: [
      'org.obsign.custos.sovereign-session.v2',
      'org.obsign.custos.oauth-consent.v1',
      'org.obsign.custos.sovereign-session',
    ],
    aud: ['did:web:other.test', 'localhost', ''],
    method: ['GET', 'post', 'PUT'],
    path: [
      '/v1/sessions/sovereign/',
      '/prefix/v1/sessions/sovereign',
      '/v1/sessions',
      '/xrpc/com.atproto.server.createSession',
    ],
  }
  for (const [index, [name]] of fields.entries())
    for (const value of changed[name] ?? []) yield [`${name} ${value}`, with_(index, lineOf([name, value]))]
  yield ['nothing', '']
  yield ['no end of the last line', whole.join('').trimEnd()]
  yield ['a line more', `${whole.join('')}\n`]
  yield ['a field more', `${whole.join('')}extra:1:x\n`]
  yield ['a byte order mark', `\uFEFF${whole.join('')}`]
  yield ['its values alone', fields.map(([, value]) => value).join('\n')]
  yield ['JSON', JSON.stringify(Object.fromEntries(fields))]
}

const bySession = async (did: string, proof: SignedMembers) => (await askSession(pds, { did, ...proof })).status
const byDeletion = async (did: string, proof: SignedMembers) =>
  (
    await xrpc(pds, 'com.atproto.server.deleteAccount', {
      json: { did, password: '', token: 'AAAAA-AAAAA', custos: { proof } },
    })
  ).status

test.each([
  ['session', sovereignSessionEnvelope, bySession],
  ['deletion', accountDeletionEnvelope, byDeletion],
] as const)('a %s takes a signature over one text alone', async (_, envelopeOf, send) => {
  const { did, device } = holders.p256
  const right = (signer: Signer) => envelopeOf(signer)
  let count = 0
  for (const [what] of otherEnvelopes(proofEnvelope(envelopeOf))) {
    const over = (signer: Signer) => Buffer.from([...otherEnvelopes(right(signer))].find(([name]) => name === what)![1])
    expect([what, await send(did, proofBy(pds, device, did, over))]).toEqual([what, 401])
    count++
  }
  const hashed = (signer: Signer) => createHash('sha256').update(right(signer)).digest()
  expect(await send(did, proofBy(pds, device, did, hashed))).toBe(401)
  expect(count).toBeGreaterThan(100)
  await expectNothingHappened()
})

/** Any envelope of the kind: the names of what is different are those of all. */
const proofEnvelope = (envelopeOf: (signer: Signer) => Uint8Array) =>
  envelopeOf({ aud: 'did:web:a', did: 'did:web:b' as Did, key: 'did:key:z', timestamp: 1, nonce: 'n' })

/** What is no integer is no timestamp; every integer is one, if only a wrong one. */
const timestamps = {
  '-0': 401,
  '0': 401,
  '-1': 401,
  '1E9': 401,
  '1e21': 401,
  '1e308': 401,
  '9007199254740993': 401,
  '-9223372036854775808': 401,
  '0.5': 422,
  '1e400': 422,
  '-1e400': 422,
  '"1720000000"': 422,
}
const TEXTS = [
  '\\ud800',
  '\\udfff',
  '\\u0000',
  'é',
  '',
  ' ',
  '\\n',
  'x:1:y\\nnonce:1:z',
  '\\ud83d\\ude00',
  'null',
  '__proto__',
]

test('strange values of every member are refused before anything else happens', async () => {
  const whole: Record<string, unknown> = { ...sessionRequest(pds, holders.p256) }
  const send = async (name: string, literal: string) => {
    const body = JSON.stringify({ ...whole, [name]: '@' }).replace('"@"', () => literal)
    const response = await fetch(`${pds.url}/v1/sessions/sovereign`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    await response.text()
    return response.status
  }
  for (const [literal, status] of Object.entries(timestamps))
    expect([literal, await send('timestamp', literal)]).toEqual([literal, status])
  for (const name of ['did', 'signingKey', 'nonce', 'signature']) {
    for (const text of [
      ...TEXTS,
      'A'.repeat(100_000),
      ':'.repeat(100_000),
      `did:web:${'a'.repeat(3000)}`,
      `did:plc:${'a'.repeat(90_000)}`,
    ])
      expect([name, text.slice(0, 20), await send(name, `"${text}"`)]).toEqual([name, text.slice(0, 20), 401])
    expect(await send(name, `"${'A'.repeat(200_000)}"`)).toBe(413)
  }
  await expectNothingHappened()
})

test(`of ${MUTATED_REQUESTS} mutated requests none opens a session, asks the directory or is answered with a fault`, async () => {
  const random = new Random(20_260_101)
  const statuses: Record<number, number> = {}
  let sent = 0
  while (sent < MUTATED_REQUESTS) {
    const whole = sessionRequest(pds, holders[random.of(curves)])
    const batch: string[] = []
    while (batch.length < 20) {
      const text = mutated(random, whole)
      if (!saysTheSame(text, whole)) batch.push(text)
    }
    const answers = await Promise.all(batch.map((body) => statusOf(body)))
    for (const [index, status] of answers.entries()) {
      statuses[status] = (statuses[status] ?? 0) + 1
      if (![400, 401, 422].includes(status)) throw new Error(`${status} for ${batch[index]}`)
    }
    sent += batch.length
  }
  expect(statuses[401]).toBeGreaterThan(MUTATED_REQUESTS / 4)
  await expectNothingHappened()
  for (const holder of Object.values(holders))
    expect((await askSession(pds, sessionRequest(pds, holder))).status).toBe(200)
})

test(`of ${MUTATED_DELETIONS} mutated deletions none deletes anything`, async () => {
  const random = new Random(20_260_102)
  const { did, device } = holders.p256
  for (let sent = 0; sent < MUTATED_DELETIONS;) {
    const whole = { did, ...proofBy(pds, device, did, accountDeletionEnvelope) }
    const body: Record<string, unknown> = { ...whole }
    mutateMember(random, body)
    if (saysTheSame(JSON.stringify(body), whole)) continue
    const { did: named, ...proof } = body
    const answer = await xrpc(pds, 'com.atproto.server.deleteAccount', {
      json: { did: named, password: '', token: 'x', custos: { proof } },
    })
    if (answer.status !== 400 && answer.status !== 401) throw new Error(`${answer.status} for ${JSON.stringify(body)}`)
    sent++
  }
  expect((await xrpc(pds, `com.atproto.repo.describeRepo?repo=${did}`)).status).toBe(200)
})

async function statusOf(body: string): Promise<number> {
  const response = await fetch(`${pds.url}/v1/sessions/sovereign`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
  await response.arrayBuffer()
  return response.status
}

/** Whether a parser reads the same members, in whatever order: white space, another escape or form of a number. */
function saysTheSame(text: string, whole: Body): boolean {
  try {
    const read = JSON.parse(text) as Record<string, unknown>
    return (
      Object.entries(whole).every(([name, value]) => Object.is(read[name], value)) && Object.keys(read).length === 5
    )
  } catch {
    return false
  }
}

const members = ['did', 'signingKey', 'timestamp', 'nonce', 'signature'] as const

/** One to three changes: to values, which stay of good form more often than not, to members, or to the text. */
function mutated(random: Random, whole: Body): string {
  const body: Record<string, unknown> = { ...whole }
  for (let changes = random.below(3); changes >= 0; changes--) mutateMember(random, body)
  const text = JSON.stringify(body)
  return random.below(4) === 0 ? mutateText(random, text) : text
}

function mutateMember(random: Random, body: Record<string, unknown>): void {
  const name = random.of(members)
  const value = body[name]
  switch (random.below(8)) {
    case 0:
      return void delete body[name]
    case 1:
      body[name] = random.of([null, true, 0, -0, 1e21, 0.5, '', [], {}, '\ud800', 'x'.repeat(random.below(5000))])
      return
    case 2:
      body[random.of(['scope', '__proto__x', 'Did', 'path'])] = value
      return
    default:
      body[name] = typeof value === 'number' ? value + random.below(200) - 100 : mutateValue(random, String(value))
  }
}

function mutateValue(random: Random, text: string): string {
  const at = random.below(text.length + 1)
  switch (random.below(6)) {
    case 0:
      return text.slice(0, at) + random.of([...ALPHABET]) + text.slice(at)
    case 1:
      return text.slice(0, at) + text.slice(at + 1)
    case 2:
      return text + random.of(['=', '==', '\n', ' ', '\0', text])
    case 3:
      return base64url(Buffer.from(Array.from({ length: text.length === 43 ? 32 : 64 }, () => random.below(256))))
    default:
      return text.slice(0, at) + random.of([...ALPHABET]) + text.slice(at + 1)
  }
}

function mutateText(random: Random, text: string): string {
  const [from, to] = [random.below(text.length), random.below(text.length)]
  switch (random.below(4)) {
    case 0:
      return text.slice(0, from)
    case 1:
      return text.slice(0, from) + text.slice(to)
    case 2:
      return text.slice(0, from) + random.of(['"', '\\', ',', ':', '{', '}', '\0', 'é', '\\u0000']) + text.slice(from)
    default:
      return `${text}${random.of([' ', 'x', text, ',', '\0'])}`
  }
}
