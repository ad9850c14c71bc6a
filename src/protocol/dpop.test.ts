import { createHash, generateKeyPairSync, sign, type KeyObject } from 'node:crypto'
import { expect, test } from 'bun:test'
import { acceptedCounters, accessTokenHash, checkDpop, dpopNonce, nonceCounter, type DpopRequest } from './dpop.ts'

const now = Date.parse('2026-01-02T03:04:05Z')
const url = 'https://pds.example/xrpc/com.atproto.server.getSession'

interface Key {
  privateKey: KeyObject
  jwk: Record<string, unknown>
}

function newKey(namedCurve = 'P-256'): Key {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve })
  return { privateKey, jwk: publicKey.export({ format: 'jwk' }) as Record<string, unknown> }
}

const key = newKey()
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const hashOf = (token: string) => createHash('sha256').update(token).digest('base64url')
const claims = { jti: 'first', htm: 'GET', htu: url, iat: now / 1000, nonce: 'good', ath: hashOf('token') }

function proof(changes: Record<string, unknown> = {}, header: Record<string, unknown> = {}, signer = key): string {
  const signed = `${encode({ typ: 'dpop+jwt', alg: 'ES256', jwk: signer.jwk, ...header })}.${encode({ ...claims, ...changes })}`
  return `${signed}.${sign('sha256', Buffer.from(signed), { key: signer.privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`
}

const check = (text: string | null, changes: Partial<DpopRequest> = {}) =>
  checkDpop({
    proof: text,
    method: 'GET',
    url,
    accessTokenHash: hashOf('token'),
    now,
    isNonce: (nonce) => nonce === 'good',
    ...changes,
  })

const invalid = { ok: false, error: 'invalid_dpop_proof' }

test('the examples of RFC 9449: a proof alone, and one with an access token', async () => {
  const header =
    'eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMiLCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19'
  const alone = `${header}.eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIsImh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwiaWF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg`
  // They carry no nonce; that this is all that is missing says that the rest was found good.
  const lacksNonce = { ok: false, error: 'use_dpop_nonce' }
  expect(
    await check(alone, {
      method: 'POST',
      url: 'https://server.example.com/token',
      accessTokenHash: null,
      now: 1562262616_000,
    }),
  ).toMatchObject(lacksNonce)

  const withToken = `${header}.eyJqdGkiOiJlMWozVl9iS2ljOC1MQUVCIiwiaHRtIjoiR0VUIiwiaHR1IjoiaHR0cHM6Ly9yZXNvdXJjZS5leGFtcGxlLm9yZy9wcm90ZWN0ZWRyZXNvdXJjZSIsImlhdCI6MTU2MjI2MjYxOCwiYXRoIjoiZlVIeU8ycjJaM0RaNTNFc05yV0JiMHhXWG9hTnk1OUlpS0NBcWtzbVFFbyJ9.2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA`
  const resource = { url: 'https://resource.example.org/protectedresource', now: 1562262618_000 }
  expect(
    await check(withToken, {
      ...resource,
      accessTokenHash: accessTokenHash('Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU'),
    }),
  ).toMatchObject(lacksNonce)
  expect(await check(withToken, { ...resource, accessTokenHash: accessTokenHash('another') })).toMatchObject(invalid)
})

test('a good proof answers its jti and the RFC 7638 thumbprint of its key', async () => {
  const { crv, kty, x, y } = key.jwk
  expect(await check(proof())).toEqual({ ok: true, jti: 'first', jkt: hashOf(JSON.stringify({ crv, kty, x, y })) })
})

test('each claim that is wrong refuses the proof', async () => {
  const wrong: Record<string, unknown>[] = [
    { iat: undefined },
    { iat: '1' },
    { iat: now / 1000 - 191 },
    { iat: now / 1000 + 181 },
    { jti: undefined },
    { jti: '' },
    { jti: 7 },
    { htm: 'get' },
    { htm: 'POST' },
    { htu: undefined },
    { htu: 'https://other.example/xrpc/com.atproto.server.getSession' },
    { htu: 'https://pds.example/xrpc/com.atproto.server.getsession' },
    { htu: 'https://user@pds.example/xrpc/com.atproto.server.getSession' },
    { htu: 'ftp://pds.example/xrpc/com.atproto.server.getSession' },
    { ath: undefined },
    { ath: hashOf('another token') },
    { nonce: 7 },
  ]
  for (const changes of wrong)
    expect({ changes, outcome: await check(proof(changes)) }).toMatchObject({ changes, outcome: invalid })
})

test('a proof at the wrong time is refused with the difference, so that a wrong clock is found', async () => {
  const reasonOf = async (iat: number) => await check(proof({ iat }))
  expect(await reasonOf(now / 1000 - 3 * 86_400)).toMatchObject({
    reason: 'the proof is too old: iat is 259200 s behind the clock of this server',
  })
  expect(await reasonOf(now / 1000 + 181)).toMatchObject({
    reason: 'the proof is from the future: iat is 181 s ahead of the clock of this server',
  })
})

test('the clocks may differ by three minutes either way, and htu is compared after normalisation', async () => {
  for (const changes of [
    { iat: now / 1000 - 189 },
    { iat: now / 1000 + 179 },
    { htu: `${url}?a=b#c` },
    { htu: 'HTTPS://PDS.example:443/xrpc/./com.atproto.server.getSession' },
  ])
    expect({ changes, outcome: await check(proof(changes)) }).toMatchObject({ changes, outcome: { ok: true } })
})

test('each header that is wrong refuses the proof', async () => {
  const other = newKey()
  const { x, y } = key.jwk as { x: string; y: string }
  const wrong: Record<string, unknown>[] = [
    { typ: 'JWT' },
    { typ: undefined },
    { alg: 'none' },
    { alg: 'HS256' },
    { alg: 'ES384' },
    { jwk: undefined },
    { jwk: other.jwk },
    { jwk: { ...key.jwk, d: x } },
    { jwk: { ...key.jwk, crv: 'P-384' } },
    { jwk: { ...key.jwk, x: `${x}=` } },
    { jwk: { ...key.jwk, x: y, y: x } },
    { crit: ['b64'] },
  ]
  for (const header of wrong)
    expect({ header, outcome: await check(proof({}, header)) }).toMatchObject({ header, outcome: invalid })
})

test('what is no single proof is refused', async () => {
  const good = proof()
  const [header, payload, signature] = good.split('.') as [string, string, string]
  const bad = [
    null,
    '',
    'a.b',
    'a.b.c',
    `${good}, ${proof({ jti: 'second' })}`,
    `${header}.${payload}.`,
    `${header}.${encode([])}.${signature}`,
    `${good}${'A'.repeat(5000)}`,
  ]
  for (const text of bad) expect(await check(text)).toMatchObject(invalid)
})

test('an access token is not spoken of where there is none', async () => {
  expect(await check(proof(), { accessTokenHash: null })).toMatchObject(invalid)
  expect(await check(proof({ ath: undefined }), { accessTokenHash: null })).toMatchObject({ ok: true })
})

test('the nonce is asked for last', async () => {
  expect(await check(proof({ nonce: undefined }))).toMatchObject({ ok: false, error: 'use_dpop_nonce' })
  expect(await check(proof({ nonce: 'old' }))).toMatchObject({ ok: false, error: 'use_dpop_nonce' })
  expect(await check(proof({ nonce: 'old', htm: 'PUT' }))).toMatchObject(invalid)
})

test('a nonce lives for two to three minutes', async () => {
  const secret = new Uint8Array(32).fill(7)
  const issuedAt = Math.floor(now / 60_000) * 60_000
  const nonce = dpopNonce(secret, nonceCounter(issuedAt))
  const accepted = (at: number) => acceptedCounters(at).some((counter) => dpopNonce(secret, counter) === nonce)
  expect([0, 60_000, 179_999, 180_000, -60_001].map((later) => accepted(issuedAt + later))).toEqual([
    true,
    true,
    true,
    false,
    false,
  ])
  expect(nonce).not.toBe(dpopNonce(new Uint8Array(32), nonceCounter(issuedAt)))
})
