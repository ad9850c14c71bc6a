/** What the doctor finds in deployments that are well, and in those that are not. */
import { expect, test } from 'bun:test'
import { checks, examine, type Finding, type Patient } from '../../src/features/doctor/doctor.ts'
import { createOutbound } from '../../src/platform/outbound.ts'
import type { Resolver } from '../../src/platform/resolver.ts'
import { systemResolver } from '../../src/platform/resolver.ts'
import { startPds, freePort, type TestPds } from '../harness/pds.ts'
import { startUpstream } from '../harness/upstream.ts'

const resolver: Resolver = {
  addresses: (host) => (host.endsWith('.test') || host === 'localhost' ? Promise.resolve(['127.0.0.1']) : Promise.reject(new Error('no such host'))),
  texts: async () => [],
}
const upstream = createOutbound({ resolver: systemResolver(), reach: 'anywhere' })
const patientOf = (pds: TestPds, changes: Partial<Patient> = {}): Patient => ({ config: pds.ctx.config, resolver, upstream, mailer: pds.ctx.mailer, now: () => pds.clock.now(), ...changes })
const find = (name: string, patient: Patient): Promise<Finding> => examine(checks.find((check) => check.name === name)!, patient)

test('a server that is reached, with its names in order, is well', async () => {
  await using pds = await startPds()
  const patient = patientOf(pds)
  for (const name of ['disk', 'database', 'dns', 'handles', 'proxy', 'websocket', 'plc']) expect([name, await find(name, patient)]).toEqual([name, { state: 'ok', text: expect.any(String) }])
  expect(await find('tls', patient)).toMatchObject({ state: 'warning', remedy: expect.stringContaining('https') })
  expect(await find('mail', patient)).toMatchObject({ state: 'warning', text: 'mail goes to the log' })
  expect(await find('relay', patient)).toMatchObject({ state: 'warning', text: 'no relay is configured' })
})

test('a proxy that swallows upgrades, one that leads elsewhere, and none at all are told apart', async () => {
  await using pds = await startPds()
  const target = pds.url
  using proxy = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: ({ url, method }) => fetch(target + new URL(url).pathname, { method }) })
  const through = (publicUrl: string) => patientOf(pds, { config: { ...pds.ctx.config, publicUrl } })
  expect(await find('proxy', through(`http://localhost:${proxy.port}`))).toMatchObject({ state: 'ok' })
  expect(await find('websocket', through(`http://localhost:${proxy.port}`))).toMatchObject({ state: 'fault', remedy: expect.stringContaining('WebSocket') })
  await using other = startUpstream()
  expect(await find('proxy', through(other.url))).toMatchObject({ state: 'fault', text: expect.stringContaining('not as did:web:') })
  expect(await find('proxy', through(`http://localhost:${await freePort()}`))).toMatchObject({ state: 'fault', text: expect.stringContaining('cannot be reached') })
})

test('names without records are named', async () => {
  await using pds = await startPds()
  const patient = patientOf(pds, { config: { ...pds.ctx.config, publicUrl: 'https://pds.nowhere.example', availableUserDomains: ['test', 'nowhere.example'] } })
  expect(await find('dns', patient)).toMatchObject({ state: 'fault', text: 'pds.nowhere.example has no address' })
  expect(await find('handles', patient)).toMatchObject({ state: 'fault', text: '*.nowhere.example do not resolve' })
  expect(await find('tls', patient)).toMatchObject({ state: 'fault' })
})

test('the clock is held against the directory', async () => {
  await using pds = await startPds()
  await using plc = startUpstream()
  const at = (offSecs: number) => patientOf(pds, { config: { ...pds.ctx.config, plcDirectoryUrl: plc.url }, now: () => Date.now() + offSecs * 1000 })
  expect(await find('clock', at(0))).toMatchObject({ state: 'ok' })
  expect(await find('clock', at(30))).toMatchObject({ state: 'warning', text: expect.stringContaining('ahead of') })
  expect(await find('clock', at(-600))).toMatchObject({ state: 'fault', text: expect.stringContaining('behind'), remedy: expect.stringContaining('time synchronisation') })
})

test('relays and directories are asked, and their answers told', async () => {
  await using pds = await startPds()
  await using relay = startUpstream()
  const patient = patientOf(pds, { config: { ...pds.ctx.config, crawlers: { urls: [relay.url] }, plcDirectoryUrl: `http://localhost:${await freePort()}` } })
  expect(await find('plc', patient)).toMatchObject({ state: 'fault', remedy: expect.stringContaining('outgoing https') })
  const says = (body: object, status = 200) => relay.answer('com.atproto.sync.getHostStatus', () => Response.json(body, { status }))
  says({ status: 'active' })
  expect(await find('relay', patient)).toMatchObject({ state: 'ok' })
  says({ status: 'idle' })
  expect(await find('relay', patient)).toMatchObject({ state: 'warning', text: expect.stringContaining('idle') })
  says({ error: 'HostNotFound' }, 400)
  expect(await find('relay', patient)).toMatchObject({ state: 'warning', text: expect.stringContaining('has not crawled') })
})

test('a mailer that would refuse is a fault', async () => {
  await using pds = await startPds()
  const config = { ...pds.ctx.config, email: { ...pds.ctx.config.email, provider: 'smtp' as const } }
  expect(await find('mail', patientOf(pds, { config, mailer: { send: async () => {}, check: async () => '535 no' } }))).toMatchObject({ state: 'fault', text: 'smtp: 535 no' })
})
