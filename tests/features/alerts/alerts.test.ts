/** What operators are told of, when, and how often. */
import { expect, test } from 'bun:test'
import { bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN, startPds, type TestPds } from '../../support/servers/pds.ts'
import type { ConfigOverrides } from '../../support/servers/config.ts'
import { thrownBy } from '../../support/thrown.ts'

const OPERATOR = 'operator@example.org'
/** A sweep that a missing table lets fail. */
const SWEEP = 'admin-nonce-sweep'
const FULL = Number.MAX_SAFE_INTEGER
const mailed = (more: ConfigOverrides['alerts'] = {}): ConfigOverrides => ({
  alerts: { mailTo: [OPERATOR], diskFreeBytes: 0, ...more },
})

/** Let this many minutes go by, with a pass in each. */
async function passes(pds: TestPds, minutes = 1): Promise<void> {
  for (let minute = 0; minute < minutes; minute++) {
    pds.clock.advance({ secs: 60 })
    await pds.runSweep('alerts')
  }
  await pds.runSteps()
}

/** Of the mails, without what stands in parentheses: the node or sweep, and the server. */
const subjects = ({ mails }: TestPds) =>
  mails.filter(({ to }) => to === OPERATOR).map(({ subject }) => subject.replace(/ \([^()]*\)/g, ''))

const listed = async (pds: TestPds) =>
  (await request(`${pds.url}/v1/admin/alerts`, { headers: bearer(ADMIN_TOKEN) })).body

test('an alert is mailed once, and once that it is over, over restarts', async () => {
  await using pds = await startPds(mailed())
  await passes(pds)
  expect(pds.mails).toEqual([])

  await pds.restart(mailed({ diskFreeBytes: FULL }))
  await passes(pds, 3)
  expect(subjects(pds)).toEqual(['Alert: the disk is nearly full'])
  expect(pds.mails[0]!.text).toMatch(
    /[\d.]+ GiB are free at .*\nSince: .* UTC\nWhat to do: free some space.*docs\/alerts\.md#disk-nearly-full/,
  )
  await pds.restart(mailed({ diskFreeBytes: FULL }))
  await passes(pds, 3)
  expect(subjects(pds)).toHaveLength(1)
  expect(await listed(pds)).toMatchObject({
    enabled: true,
    alerts: [{ name: 'disk-nearly-full', state: 'on', overSince: null }],
  })

  await pds.restart(mailed())
  await passes(pds, 10)
  expect(subjects(pds)).toHaveLength(1)
  await passes(pds, 10)
  expect(subjects(pds)).toEqual(['Alert: the disk is nearly full', 'Over: the disk is nearly full'])
  expect(pds.mails[1]!.text).toMatch(/It began on .* UTC, and ended on .* UTC\./)
  expect(await listed(pds)).toMatchObject({ alerts: [{ state: 'over', overSince: expect.any(String) }] })
  await passes(pds, 3)
  expect(subjects(pds)).toHaveLength(2)
})

test('while an alert lasts, it is mailed again after the time of the reminder', async () => {
  await using pds = await startPds(mailed({ diskFreeBytes: FULL, reminderSecs: 600 }))
  await passes(pds, 9)
  expect(subjects(pds)).toHaveLength(1)
  await passes(pds, 3)
  expect(subjects(pds)).toEqual(['Alert: the disk is nearly full', 'Still: the disk is nearly full'])
})

test('a sweep that fails three times in a row is named with its error, until it is completed', async () => {
  await using pds = await startPds(mailed())
  const fail = async () => {
    const bringBack = await pds.hide('operator_nonce')
    expect(await thrownBy(pds.runSweep(SWEEP))).toThrow()
    await bringBack()
  }
  await fail()
  await fail()
  await passes(pds)
  expect(subjects(pds)).toEqual([])
  await fail()
  await passes(pds)
  expect(subjects(pds)).toEqual(['Alert: a sweep keeps failing'])
  expect(pds.mails[0]!.text).toMatch(/admin-nonce-sweep has failed 3 times in a row: .*operator_nonce/)
  expect((await request(`${pds.url}/metrics`)).body).toContain('sweep_failures{sweep="admin-nonce-sweep"} 3')

  await pds.runSweep(SWEEP)
  await passes(pds, 20)
  expect(subjects(pds)).toHaveLength(2)
  expect((await request(`${pds.url}/metrics`)).body).toContain('sweep_failures{sweep="admin-nonce-sweep"} 0')
})

test('what begins at the same time is one mail, and an hour has at most six', async () => {
  await using pds = await startPds(mailed({ diskFreeBytes: FULL }))
  const bringBack = await pds.hide('operator_nonce')
  for (let i = 0; i < 3; i++) expect(await thrownBy(pds.runSweep(SWEEP))).toThrow()
  await bringBack()
  await passes(pds)
  expect(pds.mails.map(({ subject }) => subject)).toEqual([expect.stringMatching(/^Alerts: 2 begun \(/)])

  await pds.restart(mailed({ diskFreeBytes: FULL, reminderSecs: 1 }))
  await passes(pds, 59)
  expect(pds.mails).toHaveLength(6)
  await passes(pds, 60)
  expect(pds.mails).toHaveLength(12)
})

test('without an address alerts are off', async () => {
  await using pds = await startPds({ alerts: { diskFreeBytes: FULL } })
  expect(await listed(pds)).toEqual({ enabled: false, alerts: [] })
})

test('alerts are for operators', async () => {
  await using pds = await startPds()
  expect((await request(`${pds.url}/v1/admin/alerts`)).status).toBe(401)
})
