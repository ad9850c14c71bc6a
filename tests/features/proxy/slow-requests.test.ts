/** Requests to other services that never end, because the service or the client is slow. */
import { connect, type Socket } from 'node:net'
import { afterEach, beforeAll, expect, test } from 'bun:test'
import { seedAccount } from '../../support/clients/seed-account.ts'
import { raw } from '../../support/clients/http.ts'
import { atOneNode } from '../../support/turns.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'

/** More than the runtime makes at a time. */
const MANY = 300
/** Longer than a request keeps its place while one of another network waits. */
const SLOW_MILLIS = 3500

const { pds, appview, chat, other } = useWorld({ appview: true, chat: true, other: true })
let authorization = ''
beforeAll(async () => {
  other.services['test_service'] = other.url
  const alice = await seedAccount(pds, 'alice')
  authorization = (await alice.as('full')).authorization
})

const open: Socket[] = []
afterEach(() => {
  for (const socket of open.splice(0)) socket.destroy()
})

interface Sent {
  from: string
  method?: 'GET' | 'POST'
  service?: string
}

const head = (nsid: string, { from, method = 'GET', service }: Sent) =>
  [
    `${method} /xrpc/${nsid} HTTP/1.1`,
    `Host: ${new URL(pds.url).host}`,
    `Authorization: ${authorization}`,
    `X-Forwarded-For: ${from}`,
    ...(service === undefined ? [] : [`Atproto-Proxy: ${service}`]),
    ...(method === 'POST' ? ['Content-Type: application/weird', 'Content-Length: 1000', '', '{'] : ['', '']),
  ].join('\r\n')

/** Sends requests whose bodies do not end. */
function sendMany(nsid: string, service?: string): void {
  const { hostname, port } = new URL(pds.url)
  for (let count = 0; count < MANY; count++) {
    const socket = connect({ host: hostname, port: Number(port) })
    socket.on('error', () => socket.destroy())
    socket.write(head(nsid, { from: '198.51.100.7', method: 'POST', ...(service !== undefined && { service }) }))
    open.push(socket)
  }
}

/** Returns the first line of the response. */
async function ask(nsid: string, service?: string): Promise<string> {
  const sent = head(nsid, { from: '203.0.113.9', ...(service !== undefined && { service }) })
  return (await raw(pds.url, sent, 30_000, (received) => received.includes('\r\n'))).split('\r\n')[0]!
}

test('however many requests a service that a stranger chose leaves open, others reach the configured ones', async () => {
  using _ = atOneNode(pds, 'each node has connections of its own')
  other.answer('com.example.never', () => new Promise(() => undefined))
  sendMany('com.example.never', `${other.did}#test_service`)
  await until(() => other.received.length >= 60)
  expect(await ask('app.bsky.graph.getFollows?actor=a')).toBe('HTTP/1.1 200 OK')
  expect(appview.received.length).toBe(1)
})

test('a service that another stranger chose is reached too, once the oldest of those requests has given way', async () => {
  using _ = atOneNode(pds, 'each node has connections of its own')
  other.answer('com.example.never', () => new Promise(() => undefined))
  sendMany('com.example.never', `${other.did}#test_service`)
  await until(() => other.received.length >= 60)
  expect(await ask('com.example.quick', `${other.did}#test_service`)).toBe('HTTP/1.1 200 OK')
})

test('a service that is slow for everybody answers everybody behind one address, however many ask', async () => {
  using _ = atOneNode(pds, 'each node has connections of its own')
  let answers = 0
  appview.answer('app.bsky.graph.getMutes', async () => {
    if (answers++ < 128) await Bun.sleep(SLOW_MILLIS)
    return Response.json({ mutes: [] })
  })
  const all = Array.from({ length: 140 }, () => ask('app.bsky.graph.getMutes'))
  expect(new Set(await Promise.all(all))).toEqual(new Set(['HTTP/1.1 200 OK']))
}, 20_000)

test('clients that never end what they send to a configured service keep no others from it', async () => {
  using _ = atOneNode(pds, 'each node has connections of its own')
  sendMany('chat.bsky.convo.sendMessage')
  await until(() => chat.received.length >= 120)
  expect(await ask('app.bsky.graph.getFollows?actor=a')).toBe('HTTP/1.1 200 OK')
})
