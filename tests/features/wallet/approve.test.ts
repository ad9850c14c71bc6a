/** Deciding with a wallet on an app that asks to sign in. */
import { describe, expect, test } from 'bun:test'
import { answerOf, loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { completeConsent, openConsent, statusOf, latch } from '../../support/clients/wallet-consent.ts'
import { walletHolder } from '../../support/clients/wallet-holder.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const SCOPES = 'atproto repo:app.bsky.feed.post transition:generic'

let app: OAuthClient
const { pds, plc } = useWorld({
  plc: true,
  config: {
    rateLimit: { enabled: false },
    accounts: { passwordOptional: true },
  },
})
const alice = setUp(() => walletHolder(pds, plc.url, 'alice', { password: undefined }))

/** The app asks, and a browser opens the page. */
function open() {
  app = new OAuthClient(pds, loopbackClientId(SCOPES))
  return openConsent(app, { scope: SCOPES, login_hint: 'alice.test' })
}

/** What the page hears that asks now and then. */
async function stateOf(requestId: string) {
  pds.clock.advance({ secs: 3 })
  return (await statusOf(pds, requestId)).body.status
}

/** What the app gets once the page goes on. */
async function tokens(requestId: string) {
  const completed = await completeConsent(pds, requestId)
  return (await app.redeem(answerOf(completed).get('code')!)).body
}

test('shows the app and what it asks for, in plain words, before it asks', async () => {
  const { userCode, requestId } = await open()
  const { code, out } = await alice.user.run(['approve', userCode], { answers: { 'Type yes': 'no' } })
  expect(code).toBe(1)
  expect(out).toMatch(/^address +http:\/\/localhost\/\?scope=/)
  expect(out).toMatch(
    /^redirects to +http:\/\/127\.0\.0\.1:9\/callback\nrequested from +127\.0\.0\.1\nrequested for +alice\.test$/m,
  )
  expect(out).toContain('Know who you are (atproto)')
  expect(out).toContain('! Post and act as you (transition:generic)')
  expect(out).toContain('- Create, change and delete posts (repo:app.bsky.feed.post)')
  expect(await stateOf(requestId)).toBe('pending')
})

describe('an app is let in', () => {
  test('by the code on the page, however it is typed', async () => {
    for (const typed of [
      (code: string) => code,
      (code: string) => code.toLowerCase(),
      (code: string) => code.replace('-', ''),
    ]) {
      const { userCode, requestId } = await open()
      await alice.user.do(['approve', typed(userCode), '--yes'])
      expect(await tokens(requestId)).toMatchObject({ sub: alice.account.did, scope: SCOPES })
    }
  })

  test('by the link of the page, and by the id of the request', async () => {
    for (const reference of ['link', 'requestId'] as const) {
      const opened = await open()
      await alice.user.do(['approve', opened[reference], '--yes'])
      expect((await tokens(opened.requestId)).sub).toBe(alice.account.did)
    }
  })

  test('with less than it asks for', async () => {
    const { userCode, requestId } = await open()
    await alice.user.do(['approve', userCode, '--yes', '--without', 'transition:generic atproto'])
    expect((await tokens(requestId)).scope).toBe('atproto repo:app.bsky.feed.post')
  })

  test('once the number on the page is repeated, if there is one', async () => {
    const { userCode, requestId } = await open()
    await latch(pds, requestId, '07')
    expect(await alice.user.run(['approve', userCode, '--yes'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('--match-code'),
    })
    expect((await alice.user.run(['approve', userCode, '--yes', '--match-code', '70'])).code).toBe(1)
    expect(await stateOf(requestId)).toBe('pending')
    await alice.user.do(['approve', userCode], { answers: { 'number on the page': '07', 'Type yes': 'yes' } })
    expect(await stateOf(requestId)).toBe('approved')
  })
})

test('an app is refused, for good', async () => {
  const { userCode, requestId } = await open()
  expect(await alice.user.do(['deny', userCode, '--yes'])).not.toBe('')
  expect(await stateOf(requestId)).toBe('denied')
  expect((await alice.user.run(['approve', userCode, '--yes'])).code).toBe(1)
  expect(answerOf(await completeConsent(pds, requestId)).get('code')).toBeNull()
})

describe('nothing is decided', () => {
  test('by the wallet of somebody else', async () => {
    using bob = await walletHolder(pds, plc.url, 'bob', { password: undefined })
    const { userCode, requestId } = await open()
    expect((await bob.user.run(['approve', userCode, '--yes'])).code).toBe(1)
    expect((await bob.user.run(['deny', userCode, '--yes'])).code).toBe(1)
    expect(await stateOf(requestId)).toBe('pending')
  })

  test('twice, late, for a request that there is none of, or for words that name none', async () => {
    const { userCode } = await open()
    await alice.user.do(['approve', userCode, '--yes'])
    expect((await alice.user.run(['approve', userCode, '--yes'])).code).toBe(1)
    const late = await open()
    pds.clock.advance({ secs: 301 })
    expect((await alice.user.run(['approve', late.userCode, '--yes'])).code).toBe(1)
    expect((await alice.user.run(['approve', 'AAAA-AAAA', '--yes'])).code).toBe(1)
    for (const words of ['hello', 'poauth_x', 'obsign:/elsewhere?request_id=poauth_12345678', 'https://example.com'])
      expect(await alice.user.run(['approve', words, '--yes'])).toMatchObject({
        code: 1,
        err: expect.stringContaining('is neither the code'),
      })
  })

  test('nothing is decided without the holder being asked', async () => {
    const { userCode, requestId } = await open()
    expect(await alice.user.run(['approve', userCode])).toMatchObject({
      code: 2,
      err: expect.stringContaining('--yes'),
    })
    expect(await alice.user.run(['approve', userCode, '--yes', '--without', 'transition:email'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('does not request transition:email'),
    })
    expect(await stateOf(requestId)).toBe('pending')
  })
})
