/** Somebody with a phone lets a program act for them: in a browser, without scripts. */
import { expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { openAgentClaim, pollAgent, registerAgent } from '../../support/clients/agent.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const { pds, freshPage } = useWorld({
  browser: true,
  config: { agentAuth: { anonymousEnabled: true }, rateLimit: { enabled: false } },
})
const alice = setUp(() => createAccount(pds, 'alice'))

async function waiting() {
  const { body } = await registerAgent(pds, { type: 'anonymous' })
  const { body: opened } = await openAgentClaim(pds, body.claim_token)
  return { token: body.claim_token as string, code: opened.claim_attempt.user_code as string }
}

test.each([
  ['Approve', 'The program now has access', undefined],
  ['Deny', 'Denied', 'expired_token'],
])('a person enters the code in two groups, reads, and chooses: %s', async (button, heading, error) => {
  const { token, code } = await waiting()
  const page = await freshPage()
  await page.goto(`${pds.url}/agent/claim`)
  await page.getByLabel('Code that the program shows').fill(`${code.slice(0, 3)} ${code.slice(3)}`)
  await page.getByLabel('Handle or email address').fill(alice.handle)
  await page.getByLabel('Password', { exact: true }).fill(alice.password)
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByRole('heading', { name: 'Let this program act for you?' }).waitFor()
  for (const text of ['@alice.test', 'Create and change any of your public data', 'Upload files of any kind'])
    expect(await page.getByText(text).first().isVisible()).toBe(true)
  await page.getByRole('button', { name: button }).click()
  await page.getByRole('heading', { name: heading }).waitFor()
  expect((await pollAgent(pds, token)).body.error).toBe(error)
})

test('the browser itself refuses what cannot be a code', async () => {
  const page = await freshPage()
  await page.goto(`${pds.url}/agent/claim`)
  const field = page.getByLabel('Code that the program shows')
  for (const [typed, fits] of [
    ['12345', false],
    ['1234567', false],
    ['12a456', false],
    ['123456', true],
    ['123-456', true],
  ] as const) {
    await field.fill(typed)
    expect([
      typed,
      await field.evaluate((input) => (input as unknown as { checkValidity(): boolean }).checkValidity()),
    ]).toEqual([typed, fits])
  }
})
