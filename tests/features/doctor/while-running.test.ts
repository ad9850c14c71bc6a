/** What the doctor finds while the server runs, which no request waits for. */
import { expect, test } from 'bun:test'
import { ConsoleBrowser } from '../../support/clients/console-browser.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { roleHolder } from '../../support/clients/role-holder.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })
const mona = setUp(() => roleHolder(pds, 'mona', 'moderator'))
const ivo = setUp(() => roleHolder(pds, 'ivo', 'invite-steward'))

const look = async () => (await request(`${pds.url}/v1/admin/doctor`, { headers: bearer(ADMIN_TOKEN) })).body
/** Each node of a cluster examines itself. */
const examined = () => until(async () => (await look()).examinedAt !== null && (await look()).examinedAt !== null)

test('the first look begins an examination, and later ones get its findings with remedies', async () => {
  expect(await look()).toMatchObject({
    examinedAt: null,
    findings: [],
    leftOut: ['database', 'passphrase', 'continuous', 'body-size'],
  })
  await examined()
  const { findings } = await look()
  const of = (name: string) => findings.find(({ check }: { check: string }) => check === name)
  expect(of('disk')).toMatchObject({
    state: expect.stringMatching(/ok|warning/),
    text: expect.stringContaining('free'),
  })
  expect(of('backups')).toMatchObject({
    state: 'warning',
    text: expect.stringContaining('no backups'),
    remedy: expect.stringContaining('backup.destination'),
  })
  expect(of('server')).toMatchObject({ state: 'ok', remedy: null })
  expect(of('master-key')).toMatchObject({ state: 'ok' })
  expect(of('database')).toBeUndefined()
  expect(JSON.stringify(findings)).not.toContain(ADMIN_TOKEN)
})

test('findings are kept for some minutes', async () => {
  await examined()
  const times = async (): Promise<string[]> => [await look(), await look()].map(({ examinedAt }) => examinedAt).sort()
  const before = await times()
  pds.clock.advance({ secs: 60 })
  expect(await times()).toEqual(before)
  pds.clock.advance({ secs: 600 })
  await until(async () => (await times())[0]! > before[1]!)
})

test('the overview shows them to those who may see how the server does', async () => {
  await examined()
  const desk = new ConsoleBrowser(pds)
  await desk.signIn(mona.did)
  const { body } = await desk.open('/admin')
  expect(body).toContain('<span lang="en">backups</span>: warning')
  expect(body).toContain('What to do: <span lang="en">set backup.destination')
  expect((await ivo.operate('/v1/admin/doctor')).status).toBe(403)
})
