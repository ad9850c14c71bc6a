/** Several nodes with one push relay. */
import { expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { startCluster } from '../../support/servers/cluster.ts'
import { PushRelay } from '../../support/servers/push-relay.ts'
import { until } from '../../support/until.ts'
import { Phone, tell, waitingSteps } from '../../support/clients/phone.ts'

test('events at several nodes are told once each, in order, through one relay', async () => {
  await using relay = await PushRelay.start({ codes: null })
  await using cluster = await startCluster(2, { ...relay.config, rateLimit: { enabled: false } })
  const [one, other] = [cluster.nodes[0]!, cluster.nodes[1]!]
  const ann = new Phone(one, await createAccount(one, 'ann'))
  expect((await ann.register()).status).toBe(200)
  await until(() => relay.handleOf(ann.token) !== undefined)
  const titles = Array.from({ length: 9 }, (_, i) => `event ${i}`)
  for (const [index, title] of titles.entries())
    expect(await tell(index % 2 === 0 ? one : other, ann, { title })).toBe(1)
  await until(async () => (await waitingSteps(one, 'push')) === 0)
  const told = await Promise.all(relay.sent.map(async (sent) => (await ann.read(sent))['title']))
  expect(told).toEqual(titles)
})
