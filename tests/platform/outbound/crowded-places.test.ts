/** Requests that others leave no place, or too little time: that says nothing of the service that was to be asked. */
import { expect, test } from 'bun:test'
import { createOutbound } from '../../../src/platform/network/outbound.ts'
import { LookupsFull } from '../../../src/platform/network/resolver.ts'
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
