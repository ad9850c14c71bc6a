/** Requests that others leave no place, or too little time: that says nothing of the service that was to be asked. */
import { expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { AcmeClient } from '../../../src/platform/network/acme-client.ts'
import { remotePlcDirectory } from '../../../src/platform/network/directory-client.ts'
import { createOutbound, type Outbound } from '../../../src/platform/network/outbound.ts'
import { placesFull } from '../../../src/platform/network/outbound-places.ts'
import { LookupsFull } from '../../../src/platform/network/resolver.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { fakeDns } from '../../support/servers/dns.ts'
import { errorOf } from '../../support/thrown.ts'
import { until } from '../../support/until.ts'

test('a service that was asked late, because its request had to wait, has not failed to answer', async () => {
  const paths: string[] = []
  const silent = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      paths.push(new URL(request.url).pathname)
      return new Promise<Response>(() => undefined)
    },
  })
  const outbound = createOutbound({ resolver: fakeDns(), reach: 'anywhere' })
  const address = `http://127.0.0.1:${silent.port}`
  const crowd = Array.from({ length: 128 }, () => new AbortController())
  const held = crowd.map(({ signal }) => errorOf(outbound.fetch(`${address}/crowd`, { signal })))
  await until(() => paths.length === crowd.length)
  const late = errorOf(outbound.fetch(`${address}/late`, { headersTimeoutMillis: 1000 }))
  crowd[0]!.abort()
  await until(() => paths.includes('/late'))
  expect(await late).toBeInstanceOf(LookupsFull)
  for (const each of crowd) each.abort()
  await Promise.all(held)
  await silent.stop(true)
})

/** Every request fails, or its body does. */
const crowded: Record<'at once' | 'in its body', Outbound> = {
  'at once': { fetch: () => Promise.reject(placesFull()) },
  'in its body': {
    fetch: () =>
      Promise.resolve(new Response(new ReadableStream({ pull: (controller) => controller.error(placesFull()) }))),
  },
}

test.each(['at once', 'in its body'] as const)(
  'a directory whose answer is lost to others, %s, has not answered',
  async (when) => {
    const directory = remotePlcDirectory('http://plc.test', crowded[when])
    const read = errorOf(directory.state('did:plc:aaaaaaaaaaaaaaaaaaaaaaaa' as Did))
    expect(await read).toMatchObject({ status: null, message: 'PLC directory unreachable' })
  },
)

test.each(['at once', 'in its body'] as const)(
  'a certificate authority whose answer is lost to others, %s, is asked again',
  async (when) => {
    const { privateKey: key } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const client = new AcmeClient({
      outbound: crowded[when],
      directoryUrl: 'https://acme.test/directory',
      key,
      email: null,
      now: Date.now,
    })
    const asked = errorOf(client.order('https://acme.test/order', new AbortController().signal))
    expect(await asked).toMatchObject({ kind: 'unavailable', message: expect.stringContaining('acme.test') })
  },
)
