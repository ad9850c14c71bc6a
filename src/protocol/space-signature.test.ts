import { describe, expect, test } from 'bun:test'
import vectors from '../../tests/vectors/contract/permissioned-data-v1.json' with { type: 'json' }
import { mutated } from '../../tests/support/mutations.ts'
import { Random } from '../../tests/support/random.ts'
import { isSignedRequest } from '../../tests/support/space-token-oracle.ts'
import { formatDidKey, parseDidKey, signingKey } from './keys.ts'
import { readSpaceExchange, readSpaceUse, verifySpaceRequest, type SignedFields } from './space-signature.ts'

const key = signingKey('p256', new Uint8Array(32).fill(3))
const name = formatDidKey(key.publicKey)
const published = parseDidKey(vectors.http_exchange.key)!

const kinds = {
  exchange: {
    vector: {
      authorization: 'Bearer delegation.jwt',
      audience: null,
      signatureInput: vectors.http_exchange['Signature-Input'],
      signature: vectors.http_exchange.Signature,
    },
    base: vectors.http_exchange.base,
    components: [['authorization', 'Bearer delegation.jwt']],
    read: readSpaceExchange,
  },
  use: {
    vector: {
      authorization: 'Atproto-Space credential.jwt',
      audience: 'did:example:alice',
      signatureInput: vectors.http_use['Signature-Input'],
      signature: vectors.http_use.Signature,
    },
    base: vectors.http_use.base,
    components: [
      ['authorization', 'Atproto-Space credential.jwt'],
      ['atproto-space-audience', 'did:example:alice'],
    ],
    read: readSpaceUse,
  },
} as const

const isAccepted = (kind: keyof typeof kinds, fields: SignedFields, holder: string): boolean => {
  const outcome = kinds[kind].read(fields)
  return outcome.ok && verifySpaceRequest(outcome.request, holder)
}

/** The fields of a request that is signed with `key`; `input` follows the label in `Signature-Input`. */
function signed(kind: keyof typeof kinds, input: string): SignedFields {
  const { vector, components } = kinds[kind]
  const lines = [...components, ['@signature-params', input]].map(([component, value]) => `"${component}": ${value}`)
  const signature = Buffer.from(key.sign(Buffer.from(lines.join('\n')))).toString('base64')
  return { ...vector, signatureInput: `atproto-space=${input}`, signature: `atproto-space=:${signature}:` }
}

/** Parameters of RFC 9421 and others, well-formed and not. */
const parameters: readonly string[] = [
  [`;keyid="${name}"`, `;keyid="${name}x"`, ';keyid', ';keyid=x', ';keyid=""', `;KeyId="${name}"`],
  [';alg="ecdsa-p256-sha256"', ';alg="hmac-sha256"', ';alg=ecdsa-p256-sha256', ';alg'],
  [';created=1790000000', ';created=01', ';created=-0', ';created=0', ';expires=-1', ';created=1234567890123456'],
  [';nonce="a\\"b\\\\"', ';nonce="a\\b"', ';nonce="é"', ';tag=a/b:c', ';tag="a,b"', ';x', ';x=?0', ';x=?1'],
  [';y=1.5', ';y=:AA==:', ' ;z', '; z', ';', ';=1', ';z=', ',', '"', ';tag="open'],
].flat()
/** What may stand around the member in a dictionary. */
const around: readonly (readonly [string, string])[] = [
  ['', ''],
  [' sig1=("@method");keyid="a, b", ', ''],
  ['', ',sig2=:AAAA:'],
  ['x="a\\", atproto-space=b",\t', ' , y=1 '],
  ['atproto-space2=1, a.atproto-space=1, ', ''],
  ['atproto-space, ', ''],
  ['', ', atproto-space=()'],
  ['', ',atproto-space;x'],
  ['x="open, ', ''],
]

describe.each(['exchange', 'use'] as const)('the signature of a request: %s', (kind) => {
  const { vector, base, components, read } = kinds[kind]
  const covered = `(${components.map(([component]) => `"${component}"`).join(' ')})`

  test('is the one of the vector', () => {
    const outcome = read(vector)
    if (!outcome.ok) throw new Error(outcome.fault)
    expect(Buffer.from(outcome.request.base).toString()).toBe(base)
    expect(outcome.request.token).toBe(components[0][1].split(' ')[1]!)
    expect(isAccepted(kind, vector, vectors.http_exchange.key)).toBe(true)
    expect(isAccepted(kind, vector, name)).toBe(false)
  })

  test('may have a high s and no padding, and is not in DER', () => {
    const fields = signed(kind, `${covered};keyid="${name}"`)
    const bytes = Buffer.from(/:(.*):/.exec(fields.signature!)![1]!, 'base64')
    const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n
    const s = (order - BigInt(`0x${bytes.toString('hex', 32)}`)).toString(16).padStart(64, '0')
    const high = Buffer.from(bytes.toString('hex', 0, 32) + s, 'hex').toString('base64')
    const der = Buffer.concat([Buffer.from('30440220', 'hex'), bytes.subarray(0, 32), Buffer.from('0220', 'hex')])
    const of = (text: string) => isAccepted(kind, { ...fields, signature: `atproto-space=:${text}:` }, name)
    expect([of(high), of(high.replace('==', '')), of(bytes.toString('base64'))]).toEqual([true, true, true])
    expect(of(Buffer.concat([der, bytes.subarray(32)]).toString('base64'))).toBe(false)
  })

  test('covers exactly what it has to, in that order', () => {
    expect(isAccepted(kind, signed(kind, `${covered};keyid="${name}"`), name)).toBe(true)
    for (const other of [
      '()',
      '("authorization" "atproto-space-audience" "@method")',
      '("atproto-space-audience" "authorization")',
      '("atproto-space-audience")',
      '("authorization";sf)',
      '( "authorization")',
      '("Authorization")',
      kind === 'use' ? '("authorization")' : '("authorization" "atproto-space-audience")',
    ])
      expect([other, isAccepted(kind, signed(kind, `${other};keyid="${name}"`), name)]).toEqual([other, false])
  })

  test('is found among others, whose labels do not matter', () => {
    const { signatureInput, signature, ...rest } = signed(kind, `${covered};keyid="${name}";created=1790000000`)
    const fields = {
      ...rest,
      signatureInput: `sig1=("@method" "@path");tag="a, \\"b", ${signatureInput},other=()`,
      signature: `sig1=:AAAA:\t, ${signature} , other=:AA==:`,
    }
    expect(isAccepted(kind, fields, name)).toBe(true)
    expect(isAccepted(kind, { ...fields, signature: `${signature}, ${signature}` }, name)).toBe(false)
    expect(isAccepted(kind, { ...fields, signatureInput: `${signatureInput}, ${signatureInput}` }, name)).toBe(false)
  })

  test('with any character of the four fields changed is refused, 10,000 times', async () => {
    const random = new Random(1608)
    const fieldNames = (['authorization', 'audience', 'signatureInput', 'signature'] as const).filter(
      (field) => vector[field] !== null,
    )
    let compared = 0
    for (let i = 0; i < 10_000; i++) {
      const field = random.of(fieldNames)
      const text = mutated(vector[field]!, random, 'aZ09-_.=+/:;"(), \t\\é')
      // Spaces around a field or a member of it are not part of it.
      const isSame = text.trim() === vector[field] || text.replace(/ *, *$/, '') === vector[field]
      const fields = { ...vector, [field]: text }
      const accepted = isAccepted(kind, fields, vectors.http_exchange.key)
      if (field.startsWith('signature')) {
        const { signatureInput: input, signature } = fields
        const second = { input, signature }
        expect([fields, accepted]).toEqual([
          fields,
          await isSignedRequest(second, components, published, vectors.http_exchange.key, kind === 'exchange'),
        ])
        compared++
      }
      const isUnpadded = field === 'signature' && text === vector.signature.replace('==', '')
      if (!isSame && !isUnpadded) expect([fields, accepted]).toEqual([fields, false])
    }
    expect(compared).toBeGreaterThan(4000)
  })

  test('with any parameters and neighbours is accepted or refused as by a second reader', async () => {
    const random = new Random(1609)
    let accepted = 0
    for (let i = 0; i < 10_000; i++) {
      let input = kind === 'exchange' && random.below(8) > 0 ? `${covered};keyid="${name}"` : covered
      for (let more = random.below(4); more > 0; more--) input += random.of(parameters)
      const fields = signed(kind, input)
      const [before, after] = random.below(2) === 0 ? around[0]! : random.of(around)
      fields.signatureInput = before + fields.signatureInput! + after
      if (random.below(4) === 0) fields.signature = random.of(around).join(fields.signature!)
      const isOurs = isAccepted(kind, fields, name)
      const second = { input: fields.signatureInput, signature: fields.signature! }
      expect([fields, isOurs]).toEqual([
        fields,
        await isSignedRequest(second, components, key.publicKey, name, kind === 'exchange'),
      ])
      if (isOurs) accepted++
    }
    expect(accepted).toBeGreaterThan(300)
  })

  test('is refused without one of the fields, with two of one, and at any length', () => {
    const fields = signed(kind, `${covered};keyid="${name}"`)
    const long = 'a'.repeat(1_000_000)
    for (const field of Object.keys(vector).filter((each) => fields[each as keyof SignedFields] !== null)) {
      const value = fields[field as keyof SignedFields]!
      for (const other of [null, '', `${value}, ${value}`, long, `"${long}`, `;${',;'.repeat(400_000)}`])
        expect([field, isAccepted(kind, { ...fields, [field]: other }, name)]).toEqual([field, false])
    }
  })
})

test('a credential is no bearer token, a delegation is no credential, and the fault says what is missing', () => {
  const { exchange, use } = kinds
  expect(readSpaceUse({ ...use.vector, authorization: 'Bearer credential.jwt' })).toEqual({
    ok: false,
    fault: 'MissingJwt',
  })
  expect(readSpaceExchange({ ...exchange.vector, authorization: 'Atproto-Space delegation.jwt' })).toEqual({
    ok: false,
    fault: 'MissingJwt',
  })
  for (const audience of [null, '', 'alice.test', 'did:example:alice, did:example:bob', 'did:example:alice#x'])
    expect(readSpaceUse({ ...use.vector, audience })).toEqual({ ok: false, fault: 'BadSpaceAudience' })
  expect(readSpaceUse({ ...use.vector, signature: null })).toEqual({ ok: false, fault: 'BadSpaceSignature' })
  expect(readSpaceExchange(signed('exchange', '("authorization")'))).toEqual({ ok: false, fault: 'BadSpaceSignature' })
})

test('a key of secp256k1 signs no request', () => {
  const other = signingKey('k256', new Uint8Array(32).fill(3))
  const fields = signed('use', '("authorization" "atproto-space-audience")')
  const lines = [...kinds.use.components, ['@signature-params', '("authorization" "atproto-space-audience")']]
  const base = lines.map(([component, value]) => `"${component}": ${value}`).join('\n')
  const signature = `atproto-space=:${Buffer.from(other.sign(Buffer.from(base))).toString('base64')}:`
  expect(isAccepted('use', fields, name)).toBe(true)
  expect(isAccepted('use', { ...fields, signature }, formatDidKey(other.publicKey))).toBe(false)
})
