/** Answers are those of the reference, as they were recorded from it, but for the deviations that are listed. */
import { beforeAll, expect, test } from 'bun:test'
import { basic } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { answerAsAppview, ask, deviations, expectAnswer, populate, rows, type Told } from './questions.ts'
import recorded from './reference-answers.json'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const { pds, appview } = useWorld({
  appview: true,
  config: { rateLimit: { enabled: false } },
  options: { alone: 'an answer is that of a server without a master key' },
})
beforeAll(() => answerAsAppview(appview))
const world = setUp(() => populate(pds.url, basic('admin', ADMIN_TOKEN)))

const answers = new Map(Object.entries(recorded as Record<string, Told>))

test.each(rows)('%s', async (name, step) => {
  expectAnswer(name, await ask(world, step), answers.get(name)!)
})

test('every question has one name, one recorded answer, and no deviation is about nothing', () => {
  const names = rows.map(([name]) => name)
  expect(new Set(names).size).toBe(names.length)
  expect([...answers.keys()].toSorted()).toEqual(names.toSorted())
  expect([...deviations.keys()].filter((name) => !names.includes(name))).toEqual([])
})
