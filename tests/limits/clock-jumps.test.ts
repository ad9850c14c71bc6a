/** Somebody sets the clock, ahead and back, while the server runs and while it does not. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { resolveDid } from '../../src/features/identity/identity.ts'
import { sql } from '../../src/platform/database.ts'
import type { Did } from '../../src/protocol/identifiers.ts'
import { createAccount, PASSWORD } from '../harness/account.ts'
import { basic, request } from '../harness/http.ts'
import { OAuthClient } from '../harness/oauth-client.ts'
import { ADMIN_TOKEN, startPds, type TestPds } from '../harness/pds.ts'

const YEAR = { days: 365 }
const BACK = { days: -365 }

const logIn = ({ url }: TestPds, identifier: string, password = 'no') => request(`${url}/xrpc/com.atproto.server.createSession`, { json: { identifier, password } })

describe('windows in memory are as long as they are', () => {
  let pds: TestPds
  beforeAll(async () => {
    pds = await startPds({ rateLimit: { createSessionPer5min: 10 } })
    await createAccount(pds, 'alice')
  })
  afterAll(() => pds[Symbol.asyncDispose]())

  test('a limited address is let in again after its five minutes, and not before', async () => {
    pds.clock.jump(YEAR)
    for (let i = 0; i < 10; i++) expect((await logIn(pds, `${i}.test`)).status).toBe(401)
    const refused = async () => {
      const { status, headers } = await logIn(pds, 'x.test')
      const resetSecs = Number(headers.get('ratelimit-reset')) - pds.clock.now() / 1000
      expect([resetSecs > 0, resetSecs < 302, Number(headers.get('retry-after')) <= 300]).toEqual([true, true, true])
      return status
    }
    expect(await refused()).toBe(429)
    pds.clock.jump(BACK)
    expect(await refused()).toBe(429)
    pds.clock.jump(YEAR)
    expect(await refused()).toBe(429)
    pds.clock.jump(BACK)
    pds.clock.advance({ secs: 301 })
    expect((await logIn(pds, 'x.test')).status).toBe(401)
  })

  test('so is the minute of an identifier at which was guessed', async () => {
    pds.clock.advance({ secs: 301 })
    pds.clock.jump(YEAR)
    for (let i = 0; i < 5; i++) expect((await logIn(pds, 'alice.test')).status).toBe(401)
    expect((await logIn(pds, 'alice.test', PASSWORD)).status).toBe(429)
    pds.clock.jump(BACK)
    pds.clock.advance({ secs: 61 })
    expect((await logIn(pds, 'alice.test', PASSWORD)).status).toBe(200)
  })

  test('a proof that was used is of no use again when the clock is back where it was', async () => {
    pds.clock.advance({ secs: 301 })
    const app = new OAuthClient(pds)
    const { access_token } = await app.signIn({ identifier: 'alice.test', password: PASSWORD })
    const call = () => app.call(access_token, 'com.atproto.server.getSession')
    expect((await call()).status).toBe(200)
    const used = app.lastProof
    for (let i = 0; i < 2; i++) {
      pds.clock.advance({ secs: 240 })
      expect((await call()).status).toBe(200)
    }
    pds.clock.jump({ secs: -480 })
    const again = await app.callOnce(access_token, 'com.atproto.server.getSession', { rawProof: used })
    expect([again.status, again.body.error]).toEqual([401, 'use_dpop_nonce'])
    expect((await call()).status).toBe(200)
    pds.clock.jump({ secs: 480 })
  })

  test('a document that was fetched in the future is not fresh for a year', async () => {
    const did = (await createAccount(pds, 'bob')).did as Did
    pds.clock.jump(YEAR)
    expect(await resolveDid(pds.ctx, did)).toMatchObject({ ok: true })
    pds.clock.jump(BACK)
    await pds.ctx.db.run(sql`DELETE FROM plc_operation WHERE did = ${did}`)
    expect(await resolveDid(pds.ctx, did)).toEqual({ ok: false, fault: 'not-found' })
  })

  test('the uptime is the time that has passed', async () => {
    await using fresh = await startPds()
    fresh.clock.advance({ secs: 90 })
    fresh.clock.jump(BACK)
    const { body } = await request(`${fresh.url}/v1/admin/health`, { headers: basic('admin', ADMIN_TOKEN) })
    expect(body.uptimeSeconds).toBe(90)
  })
})
