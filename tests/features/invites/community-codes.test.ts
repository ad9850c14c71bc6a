/** Claim codes of a community: good for handles under its domain alone. */
import { expect, test } from 'bun:test'
import { PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { forCeremonies, mobile, newWallet, operate } from '../../support/clients/ceremony.ts'
import { ConsoleBrowser } from '../../support/clients/console-browser.ts'
import { roleHolder } from '../../support/clients/role-holder.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { runProgram } from '../../support/servers/program.ts'
import { setUp } from '../../support/set-up.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({
  config: {
    ...forCeremonies,
    rateLimit: { enabled: false },
    availableUserDomains: ['test', 'garden.dev'],
  },
})
const ivo = setUp(async (): Promise<TestAccount> => roleHolder(pds, 'ivo', 'invite-steward'))

const mint = async (domain?: string) => {
  const { status, body } = await operate(pds, '/v1/accounts/claim-codes', { count: 1, ...(domain && { domain }) })
  return { status, code: body.codes?.[0] as string }
}
const signUp = (handle: string, inviteCode: string) =>
  xrpc(pds, 'com.atproto.server.createAccount', {
    json: { handle, email: `${handle}@example.com`, password: PASSWORD, inviteCode },
  })

test('a code for a domain makes accounts there, and nowhere else', async () => {
  const invitesRequired = async (value: string | null) =>
    expect((await operate(pds, '/v1/admin/configuration', { name: 'invite_code_required', value })).status).toBe(200)
  const isRequired = async () =>
    (await xrpc(pds, 'com.atproto.server.describeServer')).body.inviteCodeRequired as boolean
  await invitesRequired('true')
  // At each node of a cluster.
  await until(async () => (await isRequired()) && (await isRequired()))
  const { code } = await mint('garden.dev')
  expect(await signUp('rose.test', code)).toMatchObject({ status: 400, body: { error: 'InvalidInviteCode' } })
  expect((await signUp('rose.garden.dev', code)).status).toBe(200)
  expect((await signUp('tulip.garden.dev', code)).status).toBe(400)
  const { code: anywhere } = await mint()
  expect((await signUp('oak.test', anywhere)).status).toBe(200)
  expect((await mint('evil.example')).status).toBe(400)
  await invitesRequired(null)
})

test('a wallet begins with it under that domain alone', async () => {
  const { code } = await mint('garden.dev')
  const wallet = { ...newWallet('fern'), code }
  expect((await mobile(pds, wallet)).status).toBe(404)
  expect((await mobile(pds, wallet, { handle: 'fern.garden.dev' })).status).toBe(201)
})

test('commands and the console make, list and revoke codes of a domain', async () => {
  const run = (words: string[]) =>
    runProgram(['claim-code', ...words, '--url', pds.url], { SERVICE_ADMIN_TOKEN: ADMIN_TOKEN })
  const { out } = await run(['create', '--domain', '.garden.dev', '--hours', '2'])
  const code = out.trim()
  expect((await run(['list'])).out).toMatch(new RegExp(`^${code} +pending +garden.dev `, 'm'))
  expect((await run(['revoke', code])).code).toBe(0)
  expect((await run(['list'])).out).toMatch(new RegExp(`^${code} +revoked +garden.dev `, 'm'))

  const desk = new ConsoleBrowser(pds)
  await desk.signIn(ivo.did)
  expect((await desk.open('/admin/invites')).body).toContain('<option value="garden.dev">')
  expect((await desk.act('claim', { domain: 'garden.dev' })).body).toContain('Claim code')
  expect((await desk.open('/admin/invites')).body).toContain('not used yet, for handles under garden.dev')
})
