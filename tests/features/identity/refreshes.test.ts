/** What anyone may have the server tell the network of an identity that its owner changes all the time. */
import { expect, test } from 'bun:test'
import { createAccount, xrpc } from '../../support/clients/account.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { arrive } from '../../support/clients/web-holder.ts'
import { useWorld } from '../../support/world.ts'

const { pds, dns, web } = useWorld({
  web: [],
  config: { availableUserDomains: ['pds.test'] },
  options: { alone: 'what a node says of a limit is what it knows of the others' },
})

test('an owner who publishes another document for each refresh has twenty of them told in five minutes', async () => {
  const dora = await arrive({ pds, web, dns }, 'dora.web.test')
  const alice = await createAccount(pds, 'alice', { handle: 'alice.pds.test' })
  const refresh = async (identifier: string) =>
    (await xrpc(pds, 'com.atproto.identity.refreshIdentity', { json: { identifier } })).status
  const before = pds.ctx.limits.charge({ name: 'statusChange', key: dora.did })!.remaining
  const statuses = []
  for (let i = 0; i < before + 5; i++) {
    web.publishDidDocument(dora.host, { ...dora.document, alsoKnownAs: [`at://${dora.host}`, `https://x${i}.test`] })
    statuses.push(await refresh(dora.did))
  }
  expect(statuses).toEqual([...Array<number>(before).fill(200), ...Array<number>(5).fill(429)])
  expect(await refresh(alice.did)).toBe(200)

  const events = new Subscriber(pds.url, '?cursor=0')
  await alice.call('com.atproto.identity.updateHandle', { json: { handle: 'alice-two.pds.test' } })
  await events.untilSeen((messages) => messages.some(({ body }) => body['handle'] === 'alice-two.pds.test'))
  const told = events.messages.filter(({ type, body }) => type === '#identity' && body['did'] === dora.did)
  expect(told.length).toBeLessThanOrEqual(before + 1)
  events.close()

  pds.clock.advance({ secs: 301 })
  expect(await refresh(dora.did)).toBe(200)
})
