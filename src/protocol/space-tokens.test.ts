import { describe, expect, test } from 'bun:test'
import vectors from '../../tests/vectors/contract/permissioned-data-v1.json' with { type: 'json' }
import { mutated } from '../../tests/support/mutations.ts'
import { Random } from '../../tests/support/random.ts'
import { isAttestation, isCredential, isDelegation } from '../../tests/support/space-token-oracle.ts'
import type { Did } from './identifiers.ts'
import { decodeJws, signJws } from './jws.ts'
import { formatDidKey, parseDidKey, signingKey, type Curve, type PublicKey, type SigningKey } from './keys.ts'
import { parseSpaceUri } from './space-address.ts'
import {
  formatDelegation,
  formatSpaceCredential,
  readClientAttestation,
  readDelegation,
  readSpaceCredential,
  verifySpaceToken,
  type SpaceTokenFault,
} from './space-tokens.ts'

const keyOf = (curve: Curve): SigningKey =>
  signingKey(curve, new Bun.SHA256().update(`holdfast spaces ${curve}`).digest() as Uint8Array)
const space = parseSpaceUri('at://did:example:space/space/app.bsky.group/test')!
const user = 'did:example:alice' as Did
const holder = vectors.http_exchange.key as Did
const others: readonly Did[] = [1, 2].map((byte) =>
  formatDidKey(signingKey('p256', new Uint8Array(32).fill(byte)).publicKey),
)
const issuedSecs = 1_790_000_000
const now = issuedSecs * 1000

interface Made {
  header: Record<string, unknown>
  payload: Record<string, unknown>
}
const partsOf = (text: string): Made => {
  const { header, payload } = decodeJws(text)!
  return { header, payload }
}

const kinds = {
  delegation: {
    vector: vectors.delegation,
    key: keyOf('k256'),
    made: formatDelegation(keyOf('k256'), user, space, { now, jti: '0'.repeat(32) }),
    lifeSecs: 60,
    longestSecs: 300,
    read: (text: string, at = now) => readDelegation(text, at),
    isAccepted: (text: string, by: PublicKey) => isDelegation(text, issuedSecs, by),
  },
  credential: {
    vector: vectors.credential,
    key: keyOf('p256'),
    made: formatSpaceCredential(keyOf('p256'), 'atproto', space, holder, { now, jti: '1'.repeat(32) }),
    lifeSecs: 600,
    longestSecs: 3600,
    read: (text: string, at = now) => readSpaceCredential(text, at),
    isAccepted: (text: string, by: PublicKey) => isCredential(text, issuedSecs, by, [holder, ...others]),
  },
}

/** The fault of a token that is signed with its key, after a change of its parts; null if it is accepted. */
function faultOf(kind: keyof typeof kinds, change: (parts: Made) => void, at = now): SpaceTokenFault | null {
  const { made, key, read } = kinds[kind]
  const parts = partsOf(made)
  change(parts)
  const outcome = read(signJws(key, parts.header, parts.payload), at)
  return outcome.ok ? null : outcome.fault
}

/** Values that a member may have instead, in tokens that are signed with the right key. */
const values: readonly unknown[] = [
  [null, '', 0, -1, 1.5, 1e300, true, [], {}, ['did:example:space'], 'x', 'é', 'x'.repeat(200), '\n'],
  [issuedSecs, issuedSecs - 6, issuedSecs + 5, issuedSecs + 6, issuedSecs + 300, issuedSecs + 301],
  [issuedSecs + 3600, issuedSecs + 3601, String(issuedSecs)],
  [user, 'did:example:space', 'did:example:bob', 'alice.test', space.uri, `${space.uri}2`, `${space.uri}/`],
  ['did:example:space#atproto_space_host', 'did:example:space#atproto_pds', 'did:example:bob#atproto_space_host'],
  ['#atproto', '#atproto_space', 'atproto', 'did:example:space#atproto', 'constructor', '__proto__'],
  ['ES256', 'ES256K', 'none', 'HS256', 'JWT', 'dpop+jwt'],
  ['atproto-space-delegation+jwt', 'atproto-space-credential+jwt', 'atproto-client-attestation+jwt'],
  [...others, formatDidKey(keyOf('k256').publicKey)].map((kid) => ({ kid })),
  [{ kid: holder, jkt: 'x' }, { kid: 'did:key:z' }, { kid: null }, { jkt: holder }, ['kid']],
].flat()
const names = ['alg', 'typ', 'kid', 'crit', 'iss', 'sub', 'aud', 'iat', 'exp', 'jti', 'cnf', 'lxm', 'nbf', 'more']

describe.each(['delegation', 'credential'] as const)('a %s', (kind) => {
  const { vector, key, made, lifeSecs, longestSecs, read, isAccepted } = kinds[kind]

  test('has the header and the claims of the vector, which is accepted', () => {
    expect(partsOf(made)).toEqual(partsOf(vector))
    for (const text of [vector, made]) {
      const outcome = read(text)
      if (!outcome.ok) throw new Error(outcome.fault)
      expect(outcome.token).toMatchObject({ space, jti: expect.any(String), exp: issuedSecs + lifeSecs })
      expect(verifySpaceToken(outcome.token, key.publicKey)).toBe(true)
      expect(verifySpaceToken(outcome.token, parseDidKey(holder)!)).toBe(false)
    }
  })

  test('is accepted until five seconds after its end, and from five seconds before it was made', () => {
    expect(faultOf(kind, () => {}, now + lifeSecs * 1000 + 4999)).toBeNull()
    expect(faultOf(kind, () => {}, now + lifeSecs * 1000 + 5000)).toBe('JwtExpired')
    expect(faultOf(kind, () => {}, now - 5000)).toBeNull()
    expect(faultOf(kind, () => {}, now - 5001)).toBe('BadJwt')
  })

  test('may not live longer than its kind does', () => {
    expect(faultOf(kind, ({ payload }) => (payload['exp'] = issuedSecs + longestSecs))).toBeNull()
    expect(faultOf(kind, ({ payload }) => (payload['exp'] = issuedSecs + longestSecs + 1))).toBe('BadJwt')
    expect(faultOf(kind, ({ payload }) => (payload['exp'] = issuedSecs))).toBe('BadJwt')
  })

  test('is of no other type, and no other token is taken for it', () => {
    for (const typ of [undefined, 'JWT', 'at+jwt', 'atproto-client-attestation+jwt'])
      expect(faultOf(kind, ({ header }) => (header['typ'] = typ))).toBe('BadJwtType')
    const [other] = Object.keys(kinds).filter((name) => name !== kind) as [keyof typeof kinds]
    expect(read(kinds[other].made)).toEqual({ ok: false, fault: 'BadJwtType' })
  })

  test('with 10,000 changes of its text is refused, as a second reader has it', async () => {
    const random = new Random(1606)
    let readable = 0
    for (let i = 0; i < 10_000; i++) {
      const text = mutated(vector, random, 'aZ09-_.=+/ é\n')
      if (text === vector) continue
      const outcome = read(text)
      if (outcome.ok) readable++
      const accepted = outcome.ok && verifySpaceToken(outcome.token, key.publicKey)
      expect([text, accepted]).toEqual([text, false])
      if (outcome.ok && readable % 10 === 0)
        expect([text, await isAccepted(text, key.publicKey)]).toEqual([text, false])
    }
    expect(readable).toBeGreaterThan(500)
  })

  test('with 10,000 changes of what is signed is accepted or refused as by a second reader', async () => {
    const random = new Random(1607)
    const count = { accepted: 0, refused: 0 }
    for (let i = 0; i < 10_000; i++) {
      const parts = partsOf(made)
      for (let changes = random.below(2); changes >= 0; changes--) {
        const name = random.of(names)
        const part = Object.hasOwn(parts.header, name) || name === 'crit' ? parts.header : parts.payload
        const present = part[name]
        if (random.below(8) === 0) delete part[name]
        else if (typeof present === 'string' && random.below(2) === 0)
          part[name] = mutated(present, random, 'aZ09.-_~:/%?# @\né')
        else part[name] = random.of(values)
      }
      // `alg` of the parts comes after the one that the key determines.
      const text = signJws(key, parts.header, parts.payload)
      const outcome = read(text)
      const accepted = outcome.ok && verifySpaceToken(outcome.token, key.publicKey)
      expect([parts, accepted]).toEqual([parts, await isAccepted(text, key.publicKey)])
      count[accepted ? 'accepted' : 'refused']++
    }
    expect(count.accepted).toBeGreaterThan(500)
    expect(count.refused).toBeGreaterThan(5000)
  })
})

test('only the authority of a space grants access to it, with a key of its own', () => {
  expect(faultOf('credential', ({ payload }) => (payload['iss'] = user))).toBe('BadJwtIss')
  expect(faultOf('credential', ({ payload }) => (payload['iss'] = undefined))).toBe('BadJwtIss')
  expect(faultOf('credential', ({ header }) => (header['kid'] = '#atproto_space'))).toBeNull()
  for (const kid of [undefined, '#atproto_label', 'atproto', 'did:example:space#atproto'])
    expect(faultOf('credential', ({ header }) => (header['kid'] = kid))).toBe('BadJwt')
})

test('a credential is bound to a key of P-256, and to no audience', () => {
  for (const cnf of [undefined, null, {}, { jkt: 'x' }, { kid: formatDidKey(keyOf('k256').publicKey) }])
    expect(faultOf('credential', ({ payload }) => (payload['cnf'] = cnf))).toBe('BadJwtCnf')
  expect(faultOf('credential', ({ payload }) => (payload['aud'] = user))).toBe('BadJwtAudience')
})

test('a delegation is for the host of the space that it names, and for no method', () => {
  for (const aud of [undefined, 'did:example:space', 'did:example:space#atproto_pds', `${user}#atproto_space_host`])
    expect(faultOf('delegation', ({ payload }) => (payload['aud'] = aud))).toBe('BadJwtAudience')
  expect(faultOf('delegation', ({ payload }) => (payload['lxm'] = 'com.atproto.space.getSpaceCredential'))).toBe(
    'BadJwt',
  )
  expect(faultOf('delegation', ({ header }) => (header['kid'] = '#atproto_space'))).toBe('BadJwt')
  expect(faultOf('delegation', ({ payload }) => (payload['sub'] = `${space.uri}/`))).toBe('BadJwtSub')
})

test('the attestation of a client is for one host, and names the client twice', () => {
  const client = 'https://app.example.com/client.json'
  const claims = { iss: client, sub: client, aud: 'did:example:space#atproto_space_host' }
  const life = { iat: issuedSecs, exp: issuedSecs + 60, jti: 'x' }
  const header = { typ: 'atproto-client-attestation+jwt', kid: 'key-1' }
  const attest = (changes: object, headerChanges: object = {}) => {
    const text = signJws(keyOf('p256'), { ...header, ...headerChanges }, { ...claims, ...life, ...changes })
    const outcome = readClientAttestation(text, space.authority, now)
    return outcome.ok ? [outcome.token.client, outcome.token.keyId] : outcome.fault
  }
  expect(attest({})).toEqual([client, 'key-1'])
  expect(attest({ sub: 'https://other.example.com' })).toBe('BadJwtSub')
  expect(attest({ iss: '', sub: '' })).toBe('BadJwtIss')
  expect(attest({ aud: `${user}#atproto_space_host` })).toBe('BadJwtAudience')
  expect(attest({ exp: issuedSecs + 301 })).toBe('BadJwt')
  expect(attest({}, { kid: undefined })).toBe('BadJwt')
  expect(attest({}, { crit: ['x'] })).toBe('BadJwt')
})

test('a second reader accepts and refuses the same of 10,000 changed attestations', async () => {
  const random = new Random(1611)
  const key = keyOf('p256')
  const client = 'https://app.example.com/client.json'
  const made: Made = {
    header: { alg: 'ES256', typ: 'atproto-client-attestation+jwt', kid: 'key-1' },
    payload: {
      iss: client,
      sub: client,
      aud: 'did:example:space#atproto_space_host',
      iat: issuedSecs,
      exp: issuedSecs + 60,
      jti: 'x',
    },
  }
  const count = { accepted: 0, refused: 0 }
  for (let i = 0; i < 10_000; i++) {
    const parts = structuredClone(made)
    for (let changes = random.below(3); changes > 0; changes--) {
      const part = random.of([parts.header, parts.payload])
      const name = random.of(names)
      if (random.below(4) === 0) delete part[name]
      else part[name] = random.of([...values, client, `${client}?x`])
    }
    let text = signJws(key, parts.header, parts.payload)
    if (random.below(3) === 0) text = mutated(text, random, 'aZ09-_.=')
    const outcome = readClientAttestation(text, space.authority, now)
    const accepted = outcome.ok && verifySpaceToken(outcome.token, key.publicKey)
    expect([parts, text, accepted]).toEqual([
      parts,
      text,
      await isAttestation(text, space.authority, issuedSecs, key.publicKey),
    ])
    count[accepted ? 'accepted' : 'refused']++
  }
  expect(count.accepted).toBeGreaterThan(1000)
  expect(count.refused).toBeGreaterThan(3000)
})

test('text of any size that is no token is refused', () => {
  for (const text of ['', '.', '..', 'a.b', '.'.repeat(100_000), 'a'.repeat(1_000_000), `${'e'.repeat(9000)}.e.e`])
    expect([readDelegation(text, now).ok, readSpaceCredential(text, now).ok]).toEqual([false, false])
})
