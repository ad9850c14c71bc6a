/** The rooms of the console for programs that act for accounts, and for pushes. */
import { expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { confirmedAgent, withClaims } from '../../support/clients/agent.ts'
import { ConsoleBrowser } from '../../support/clients/console-browser.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { roleHolder } from '../../support/clients/role-holder.ts'
import { ADMIN_TOKEN, MASTER_KEY } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({
  config: {
    rateLimit: { enabled: false },
    signingKeyMasterKey: MASTER_KEY,
    agentAuth: withClaims(['atproto', 'repo:app.bsky.feed.post']),
    notifications: { relay: 'a'.repeat(64) },
  },
})
const oscar = setUp(() => roleHolder(pds, 'oscar', 'operator'))
const mona = setUp(() => roleHolder(pds, 'mona', 'moderator'))

async function desk({ did }: { did: string }): Promise<ConsoleBrowser> {
  const browser = new ConsoleBrowser(pds)
  await browser.signIn(did)
  return browser
}

test('programs are counted, and one of them is ended by an operator with a reason', async () => {
  const alice = await createAccount(pds, 'alice')
  const { registrationId } = await confirmedAgent(pds, alice)
  const browser = await desk(oscar)
  expect((await browser.open('/admin/agents')).body).toContain('1 acts for an account')
  const watching = await desk(mona)
  expect((await watching.open('/admin/agents')).body).not.toContain('End a program')
  expect((await watching.act('end-agent', { id: registrationId })).status).toBe(403)
  expect((await browser.act('end-agent', { id: registrationId })).body).toContain('may no longer act')
  expect((await browser.open('/admin/agents')).body).toContain('1 has ended')
  expect((await browser.act('end-agents-of', { issuer: 'https://<b>.example' })).status).toBe(200)
  const { body } = await request(`${pds.url}/v1/admin/audit?subject=${alice.did}`, { headers: bearer(ADMIN_TOKEN) })
  expect(body.events[0]).toMatchObject({ action: 'agents_ended', actor: `operator:${oscar.did}`, reason: 'a test' })
})

test('the keys of pushes are rotated and revoked by operators alone', async () => {
  const browser = await desk(oscar)
  expect((await browser.open('/admin/pushes')).body).toContain('Rotate the keys')
  expect((await browser.act('rotate-push-keys', {})).body).toContain('A new key seals pushes')
  const { body } = await browser.open('/admin/pushes')
  const [, kid = ''] = /Key (\d+): in use/.exec(body) ?? []
  const watching = await desk(mona)
  expect((await watching.open('/admin/pushes')).body).toContain('does not permit this')
  for (const act of ['rotate-push-keys', 'revoke-push-key'])
    expect([act, (await watching.act(act, { kid })).status]).toEqual([act, 403])
  expect((await browser.act('revoke-push-key', { kid })).body).toContain('The key is revoked')
  expect((await browser.act('revoke-push-key', { kid: '../../operators' })).status).not.toBe(200)
})
