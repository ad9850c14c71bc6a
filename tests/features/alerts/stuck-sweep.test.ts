/** A pass of a sweep that does not finish. */
import { expect, test } from 'bun:test'
import { checks, examine } from '../../../src/features/operations/doctor/doctor.ts'
import { createOutbound } from '../../../src/platform/network/outbound.ts'
import { createAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'
import { atOneNode } from '../../support/turns.ts'

const OPERATOR = 'operator@example.org'
const { pds, line } = useWorld({
  line: true,
  config: ({ line }) => ({
    plcDirectoryUrl: line.url,
    identityWatch: { intervalSecs: 600 },
    alerts: { mailTo: [OPERATOR], diskFreeBytes: 0 },
  }),
})

const doctor = () => {
  const { config, resolver, mailer } = pds.ctx
  const upstream = createOutbound({ resolver, reach: 'anywhere' })
  return examine(
    checks.find(({ name }) => name === 'sweeps')!,
    { config, resolver, upstream, mailer, now: () => pds.clock.now() },
  )
}
const health = async () => (await request(`${pds.url}/v1/admin/health`, { headers: bearer(ADMIN_TOKEN) })).body

test('a pass that has been under way for six hours is in the health report, an alert, and what the doctor finds', async () => {
  using _ = atOneNode(pds, 'each node tells of its own passes')
  await createAccount(pds, 'alice')
  const reached = Promise.withResolvers<void>()
  const held = Promise.withResolvers<'answered'>()
  line.fate = ({ path }) => {
    if (!path.startsWith('/did:')) return 'answered'
    reached.resolve()
    return held.promise
  }
  pds.clock.advance({ secs: 600 })
  const began = pds.clock.now()
  const ended = pds.runSweep('identity-watch')
  await reached.promise

  pds.clock.advance({ secs: 6 * 3600 - 300 })
  await pds.runSweep('alerts')
  const [{ since, ...pass }] = (await health()).sweepsUnderWay
  expect(pass).toEqual({ name: 'identity-watch', isStuck: false })
  expect(Date.parse(since) - began).toBeWithin(0, 60_000)
  expect(await doctor()).toEqual({ state: 'ok', text: 'no sweep is stuck; passes under way: 1' })

  for (let looks = 0; looks < 3; looks++) {
    pds.clock.advance({ secs: 600 })
    await pds.runSweep('alerts')
  }
  await pds.runSteps()
  expect((await health()).sweepsUnderWay).toEqual([{ name: 'identity-watch', since, isStuck: true }])
  const text = `a pass of identity-watch has been under way since ${since}`
  expect(await doctor()).toMatchObject({ state: 'warning', text })
  const told = pds.mails.filter(({ to, subject }) => to === OPERATOR && subject.includes('does not finish'))
  expect(told.map((mail) => mail.text)).toEqual([expect.stringContaining(text)])

  held.resolve('answered')
  await ended
  expect((await health()).sweepsUnderWay).toEqual([])
  expect(await doctor()).toMatchObject({ state: 'ok' })
})
