import { expect, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import {
  issueAccessToken,
  issueRefreshToken,
  readAccessToken,
  readRefreshToken,
  sessionTokenKey,
} from '../../../src/features/access/sessions/session-tokens.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { startPds } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'

const did = 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa' as Did
const alice = { did, sessionId: 'a1', kind: 'full', personalDetails: false } as const

const { pds } = useWorld()

const decode = (part: string | undefined) => JSON.parse(Buffer.from(part ?? '', 'base64url').toString())

test('an access token carries the claims that clients know, and no more', async () => {
  const [header, payload] = (await issueAccessToken(pds.ctx, alice)).split('.')
  expect(decode(header)).toEqual({ typ: 'at+jwt', alg: 'HS256' })
  const { iat, exp, ...claims } = decode(payload)
  expect(claims).toEqual({ scope: 'com.atproto.access', aud: pds.ctx.config.serverDid, sub: did, sid: 'a1' })
  expect(exp - iat).toBe(7200)
})

test('the grant for personal details is a claim of the token', async () => {
  const token = await issueAccessToken(pds.ctx, { did, sessionId: 'a1', kind: 'app', personalDetails: true })
  expect(decode(token.split('.')[1])).toMatchObject({ scope: 'com.atproto.appPass', personal_details: true })
  expect(await readAccessToken(pds.ctx, token)).toEqual({
    ok: true,
    did,
    sessionId: 'a1',
    kind: 'app',
    personalDetails: true,
  })
})

test('a token is over when its time is, to the second', async () => {
  await using other = await startPds()
  const token = await issueAccessToken(other.ctx, alice)
  other.clock.advance({ secs: 7195 })
  expect(await readAccessToken(other.ctx, token)).toMatchObject({ ok: true })
  other.clock.advance({ secs: 5 })
  expect(await readAccessToken(other.ctx, token)).toEqual({ ok: false, fault: 'expired' })
})

test('a refresh token is no access token, nor the other way round', async () => {
  const access = await issueAccessToken(pds.ctx, alice)
  const refresh = await issueRefreshToken(pds.ctx, { did, tokenId: 'x' })
  expect(await readRefreshToken(pds.ctx, access)).toEqual({ ok: false, fault: 'unverifiable' })
  expect(await readAccessToken(pds.ctx, refresh)).toEqual({ ok: false, fault: 'unverifiable' })
  expect(await readRefreshToken(pds.ctx, refresh)).toEqual({ ok: true, expired: false, did, tokenId: 'x' })
})

test('nothing but our own seal is believed, beside a token that was seen before as well', async () => {
  const token = await issueAccessToken(pds.ctx, alice)
  expect(await readAccessToken(pds.ctx, token)).toMatchObject({ ok: true })
  const [header, payload, seal] = token.split('.') as [string, string, string]
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const widened = part({ ...decode(payload), sub: 'did:plc:bbbbbbbbbbbbbbbbbbbbbbbb' })
  const none = `${part({ typ: 'at+jwt', alg: 'none' })}.${payload}.`
  const foreign = createHmac('sha256', 'another key').update(`${header}.${payload}`).digest('base64url')
  const forgeries = [
    '',
    'x',
    '..',
    `${header}.`,
    `${header}.${payload}`,
    `${header}.${payload}.`,
    `${header}.${widened}.${seal}`,
    `${header}.${payload}.${foreign}`,
    `${header}.${payload}.${seal.slice(0, -4)}`,
    `${header}.${payload}.${seal}.${seal}`,
    none,
  ]
  for (const forgery of forgeries)
    expect(await readAccessToken(pds.ctx, forgery)).toEqual({ ok: false, fault: 'unverifiable' })
})

test('the key outlives a restart, and tokens of another server are refused', async () => {
  await using first = await startPds()
  await using second = await startPds()
  const token = await issueAccessToken(first.ctx, alice)
  expect(await readAccessToken(second.ctx, token)).toMatchObject({ ok: false })
  expect((await sessionTokenKey(first.ctx)).equals(await sessionTokenKey(second.ctx))).toBe(false)
  await first.restart()
  expect(await readAccessToken(first.ctx, token)).toMatchObject({ ok: true })
})
