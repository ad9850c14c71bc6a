/**
 * Our own programs say what they are, and agents what they are called: in consent, sessions, mails and the account
 * page.
 */
import { beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { createAccount, logIn, PASSWORD, type TestAccount } from '../../support/clients/account.ts'
import { confirmAgent, openAgentClaim, previewAgent, registerAgent } from '../../support/clients/agent.ts'
import { AgentUser, shownCode } from '../../support/clients/agent-user.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { runProgram } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'
import { walletSession } from '../../support/clients/wallet.ts'
import { walletHolder } from '../../support/clients/wallet-holder.ts'
import { CookieBrowser } from '../../support/clients/wallet-sign-in.ts'
import { useWorld } from '../../support/world.ts'

const SYSTEM = { linux: 'Linux', darwin: 'macOS', win32: 'Windows' }[process.platform as 'linux']

let alice: TestAccount
const { pds, plc } = useWorld({
  plc: true,
  config: { agentAuth: { anonymousEnabled: true, serviceAuthEnabled: true }, rateLimit: { enabled: false } },
})
beforeAll(async () => {
  alice = await createAccount(pds, 'alice')
})
beforeEach(async () => {
  alice = await logIn(pds, alice, PASSWORD)
  await pds.runSteps()
  pds.mails.length = 0
})

async function accountPage({ handle }: TestAccount): Promise<string> {
  const browser = new CookieBrowser(pds)
  await browser.send('/account/sign-in', { identifier: handle, password: PASSWORD })
  return String((await browser.open('/account')).body)
}
/** What a part of a page says, in one line. */
const wordsOf = (page: string, id: string): string =>
  (new RegExp(`<section class="card" id="${id}">(.*?)</section>`, 's').exec(page)?.[1] ?? '')
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll(/\s+/g, ' ')

async function mailed(): Promise<string[]> {
  await pds.runSteps()
  await pds.runSteps()
  return pds.mails.splice(0).map(({ text }) => text)
}
const confirmAddress = (confirmed: boolean) =>
  pds.damage('account', { did: alice.did }, { email_confirmed_at: confirmed ? pds.clock.now() : null })

describe('an agent with a name', () => {
  test('is told from another one wherever its holder decides and looks', async () => {
    using first = new AgentUser(pds.clock)
    using second = new AgentUser(pds.clock)
    const codeOf = async (user: AgentUser, name: string) =>
      shownCode(await user.do(['register', '--server', pds.url, '--name', name]))
    const codes = [await codeOf(first, 'Night writer'), await codeOf(second, 'Kalender & Söhne')]
    expect((await previewAgent(pds, alice, codes[0]!)).body).toMatchObject({ clientName: 'Night writer' })
    const consent = await request(`${pds.url}/agent/claim`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({
        step: 'identify',
        user_code: codes[1]!,
        identifier: alice.handle,
        password: PASSWORD,
      }).toString(),
    })
    expect(consent.body).toContain('It calls itself “<bdi>Kalender &amp; Söhne</bdi>”')
    expect(consent.body).toContain(`<dd>Holdfast agent on ${SYSTEM}</dd>`)
    expect(consent.body).toContain(', from the network 127.0.0.0/24')

    await confirmAddress(true)
    for (const code of codes) expect((await confirmAgent(pds, alice, code)).status).toBe(200)
    const [one, other] = await mailed()
    expect(one).toContain('It calls itself "Night writer".')
    expect(other).toContain('It calls itself "Kalender & Söhne".')

    const words = wordsOf(await accountPage(alice), 'agents')
    for (const name of ['“Night writer”', '“Kalender &amp; Söhne”']) expect(words).toContain(name)
    expect(words).toMatch(
      new RegExp(
        `No identity provider vouches for it\\. Registered on \\d+ \\w+ \\d{4} at \\S+ UTC with Holdfast agent on ${SYSTEM}, from the network`,
      ),
    )
    const { body } = await request(`${pds.url}/v1/agents`, { headers: bearer(alice.accessJwt) })
    expect(body.agents.map(({ clientName, openedWith }: Record<string, string>) => [clientName, openedWith])).toEqual([
      ['Kalender & Söhne', `Holdfast agent on ${SYSTEM}`],
      ['Night writer', `Holdfast agent on ${SYSTEM}`],
    ])
    const { body: ended } = await request(`${pds.url}/v1/admin/agents/revoke`, {
      json: { registrationId: body.agents[1].registrationId },
      headers: bearer(ADMIN_TOKEN),
    })
    expect(ended.status).toBe('revoked')
    expect((await mailed())[0]).toContain('It calls itself "Night writer".')
  })

  test('that others made is known by what its requests say, if it gives no name', async () => {
    const { body } = await registerAgent(pds, { type: 'anonymous' }, { 'user-agent': 'Feeder/2.1 (Linux)' })
    const { body: opened } = await openAgentClaim(pds, body.claim_token)
    await confirmAgent(pds, alice, opened.claim_attempt.user_code)
    expect(wordsOf(await accountPage(alice), 'agents')).toContain('“Feeder on Linux”')
  })

  test('is not named in a mail that a stranger causes, nor to an address that is not confirmed', async () => {
    await confirmAddress(true)
    await registerAgent(
      pds,
      { type: 'service_auth', login_hint: alice.email, client_name: 'Call 555 0199' },
      { 'user-agent': 'holdfast-agent/9.9 (Windows)' },
    )
    const [asked] = await mailed()
    expect(asked).not.toContain('555')
    const { body: waiting } = await registerAgent(pds, {
      type: 'service_auth',
      login_hint: alice.email,
      client_name: 'Call 555 0199',
    })
    await mailed()
    const end = { json: { registrationId: waiting.registration_id }, headers: bearer(ADMIN_TOKEN) }
    expect((await request(`${pds.url}/v1/admin/agents/revoke`, end)).status).toBe(200)
    const [ended] = await mailed()
    expect(ended).toContain('or its request for access')
    expect(ended).not.toContain('555')
    expect(asked).toContain('With: Holdfast agent on Windows')
    await confirmAddress(false)
    const { body } = await registerAgent(pds, { type: 'anonymous', client_name: 'Call 555 0199' })
    const { body: opened } = await openAgentClaim(pds, body.claim_token)
    expect((await confirmAgent(pds, alice, opened.claim_attempt.user_code)).status).toBe(200)
    expect((await mailed())[0]).not.toContain('555')
  })

  test.each([
    ['x'.repeat(81), 400],
    [7, 400],
    [null, 400],
    ['', 200],
    ['x'.repeat(80), 200],
  ])('%p as its name gets %d', async (client_name, status) => {
    expect(await registerAgent(pds, { type: 'anonymous', client_name })).toMatchObject({
      status,
      body: status === 400 ? { error: 'invalid_request' } : {},
    })
  })

  test('an agent with a name cannot disguise it', async () => {
    const { body } = await registerAgent(pds, {
      type: 'service_auth',
      login_hint: alice.email,
      client_name: ' <b>ab\u202ecd</b>\n\u200be\t ',
    })
    expect(body.registration_id).toStartWith('reg_')
    const page = await accountPage(alice)
    expect(page).toContain('“&lt;b&gt;abcd&lt;/b&gt;e”')
  })

  test('gives one that can be shown, in the first place', async () => {
    using user = new AgentUser(pds.clock)
    for (const name of ['', ' ', 'x'.repeat(81), 'two\nlines', 'back\u202ewards'])
      expect(await user.run(['register', '--server', pds.url, '--name', name])).toMatchObject({
        code: 2,
        err: expect.stringContaining('--name takes one line of at most 80 characters'),
      })
  })
})

test('a wallet and the command line are sessions and log lines of that name', async () => {
  using bob = await walletHolder(pds, plc.url, 'bob')
  await bob.user.do(['sign-in'])
  expect(pds.log.findLast(({ message }) => message === 'signed in')).toMatchObject({
    program: `Holdfast wallet on ${SYSTEM}`,
  })
  const told: string[] = []
  await until(async () => told.push(...(await mailed())) > 0)
  expect(told.join()).toContain(`With: Holdfast wallet on ${SYSTEM}`)
  const sessions = await pds.rows('session', { did: bob.account.did }, ['opened_at', 'opened_with'])
  expect(sessions.at(-1)).toMatchObject({ opened_with: `Holdfast wallet on ${SYSTEM}` })

  const made = await runProgram(['account', 'create', 'carol', 'carol@example.com', '--generate', '--url', pds.url], {
    SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
  })
  expect(made.code).toBe(0)
  expect(pds.log.findLast(({ message }) => message === 'account created')).toMatchObject({
    program: `Holdfast command line on ${SYSTEM}`,
  })
})

test('a device to which the account was transferred is called after its wallet', async () => {
  const token = await walletSession(pds, alice.did)
  const { body: begun } = await request(`${pds.url}/v1/transfer/initiate`, { method: 'POST', headers: bearer(token) })
  const device = { transferCode: begun.transferCode, devicePublicKey: 'zLaptop', platform: 'macos' }
  const headers = { 'user-agent': 'holdfast-wallet/1.0.0 (Macintosh)' }
  const accepted = await request(`${pds.url}/v1/transfer/accept`, { json: device, headers })
  expect(accepted.status).toBe(200)
  expect(wordsOf(await accountPage(alice), 'wallet')).toMatch(/Mac Since \d+ \w+ \d+ With Holdfast wallet on macOS/)
  const { deviceId, deviceToken } = accepted.body
  expect((await request(`${pds.url}/v1/devices/${deviceId}/pds`, { headers: bearer(deviceToken) })).status).toBe(200)
  await until(async () => /Mac Since [^,]+, last used \d+ \w+ \d+/.test(wordsOf(await accountPage(alice), 'wallet')))
})
