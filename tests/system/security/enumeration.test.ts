/**
 * Who does not know whether an account exists does not learn it from a page: its answers are the same. Handles are
 * public names; addresses and how somebody signs in are not.
 */
import { beforeEach, expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { openAgentClaim, registerAgent } from '../../support/clients/agent.ts'
import { FactorHolder } from '../../support/clients/factor-holder.ts'
import { request, type Answer } from '../../support/clients/http.ts'
import { hiddenFields, OAuthClient } from '../../support/clients/oauth-client.ts'
import { giveRole } from '../../support/clients/role-holder.ts'
import { sovereignAccount } from '../../support/clients/wallet.ts'
import { CookieBrowser } from '../../support/clients/wallet-sign-in.ts'
import { EVERYTHING_ON } from '../../support/lived-in.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: EVERYTHING_ON })

/** Accounts of all kinds, and `nobody-here`, whom there is none of. All names are of the same length. */
const names = setUp(async () => {
  await createAccount(pds, 'with-passwd')
  await sovereignAccount(pds, 'with-wallet', { password: undefined })
  const holder = new FactorHolder(pds, await createAccount(pds, 'with-factor'))
  await holder.signIn()
  await holder.addApp()
  const { did } = await createAccount(pds, 'with-a-role')
  await giveRole(pds, did, 'owner')
  const gone = await createAccount(pds, 'deactivated')
  await gone.call('com.atproto.server.deactivateAccount', { json: {} })
  return ['with-passwd', 'with-wallet', 'with-factor', 'with-a-role', 'deactivated']
})
const NOBODY = 'nobody-here'

/** What somebody sees, with nothing that differs between two requests of the same person. */
const seen = ({ status, headers, body }: Answer, name: string) => ({
  status,
  location: headers.get('location')?.replaceAll(name, 'NAME') ?? null,
  cookies: headers.getSetCookie().map((cookie) => cookie.replace(/=[^;]*/, '=')),
  body: (typeof body === 'string' ? body : JSON.stringify(body))
    .replaceAll(name, 'NAME')
    .replaceAll(/[\w%-]{40,}|\d{6}|[\da-f]{8}-[\da-f-]{27}|[A-Z0-9]{4}-[A-Z0-9]{4}/g, 'TOKEN')
    .replaceAll(/data-[\w-]+="[^"]*"|<svg[\s\S]*?<\/svg>/g, ''),
})

/** So that wrong passwords of the test before count no more. */
beforeEach(() => pds.clock.advance({ secs: 61 }))

type Try = (name: string) => Promise<Answer>
const form = (path: string, fields: (name: string) => Record<string, string>): Try => {
  const browser = new CookieBrowser(pds)
  return (name) => browser.send(path, fields(name))
}
const handle = (name: string) => `${name}.test`
const email = (name: string) => `${name}@example.com`

const tries: Readonly<Record<string, () => Promise<Try>>> = {
  'a sign-in with a wrong password': async () =>
    form('/account/sign-in', (name) => ({ identifier: handle(name), password: 'wrong password' })),
  'a sign-in with an address': async () =>
    form('/account/sign-in', (name) => ({ identifier: email(name), password: 'wrong password' })),
  'a sign-in at the console': async () =>
    form('/admin/sign-in', (name) => ({ identifier: handle(name), password: 'wrong password' })),
  'a sign-in of an operator by program': async () => (name) =>
    request(`${pds.url}/v1/admin/sessions`, { json: { account: handle(name), password: 'wrong password' } }),
  'the question for a new password': async () => form('/account/reset-password', (name) => ({ email: email(name) })),
  'the question for a recovery code': async () => form('/account/recovery', (name) => ({ identifier: handle(name) })),
  'the recovery share': async () =>
    form('/account/recovery/share', (name) => ({ identifier: handle(name), code: 'AAAAA-BBBBB' })),
  'the waiting list': async () => (name) => request(`${pds.url}/waitlist`, { json: { email: email(name) } }),
  async 'the sign-in of an app'() {
    const client = new OAuthClient(pds)
    return async (name) => {
      const { body } = await request(client.authorizeUrl(await client.requestUri()))
      const browser = new CookieBrowser(pds)
      return browser.send('/oauth/authorize', {
        ...hiddenFields(String(body)),
        identifier: handle(name),
        password: 'wrong password',
        action: 'approve',
      })
    }
  },
  async 'the page of a program’s code'() {
    const { body } = await registerAgent(pds, { type: 'anonymous' })
    const { user_code } = (await openAgentClaim(pds, body.claim_token)).body.claim_attempt
    return form('/agent/claim', (name) => ({ user_code, identifier: handle(name), password: 'wrong password' }))
  },
  'the appeal of a decision': async () => (name) => request(`${pds.url}/account/appeal?code=${name}`),
}

test.each(Object.keys(tries))('%s answers the same whether there is such an account or not', async (what) => {
  const attempt = await tries[what]!()
  // The first answer sets the cookie of forms.
  await attempt(NOBODY)
  const toNobody = seen(await attempt(NOBODY), NOBODY)
  for (const name of names) expect({ name, ...seen(await attempt(name), name) }).toEqual({ name, ...toNobody })
})
