/**
 * What a person does who sets a server up, from the download to a post that the network has verified, on loopback: real
 * name server, certificate authority, PLC directory, client library and consumer of the firehose. Prints what each step
 * took.
 */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { AtpAgent } from '@atproto/api'
import { testAuthority } from '../../support/certificates.ts'
import { Consumer } from '../../support/clients/consumer.ts'
import { freeDnsPort, freePort } from '../../support/ports.ts'
import { startAcmeHost } from '../../support/servers/acme-host.ts'
import { startCrawler } from '../../support/servers/crawler.ts'
import { startNameServer } from '../../support/servers/name-server.ts'
import { startPlcServer } from '../../support/servers/plc-server.ts'
import { runProgram, startProgram } from '../../support/servers/program.ts'

const DOMAIN = 'pds.example.com'
const HANDLE = `alice.${DOMAIN}`
const ADDRESS = '127.0.0.1'

test('from an empty machine to a post that the network has verified', async () => {
  await using stack = new AsyncDisposableStack()
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-five-minutes-'))
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  const [names, acme, plc] = await Promise.all([startNameServer(), startAcmeHost(), startPlcServer()])
  const relay = startCrawler()
  for (const each of [names, acme, plc, relay]) stack.use(each)
  const [port, tlsPort, httpPort] = [await freePort(), await freePort(), await freePort()]
  acme.httpPort = httpPort
  acme.dnsPort = await freeDnsPort()
  const acmeRoot = join(folder, 'acme-root.pem')
  writeFileSync(acmeRoot, testAuthority)
  const settings = { SERVICE_CONFIG: join(folder, 'holdfast.env') }
  const began = performance.now()
  const took: string[] = []
  const step = (what: string) =>
    void took.push(`${((performance.now() - began) / 1000).toFixed(1).padStart(5)} s  ${what}`)

  // The records that init asks for are set once it has asked.
  const setUp = runProgram(
    ['init', '--yes', '--json', '--domain', DOMAIN, '--port', String(port), '--config', settings.SERVICE_CONFIG].concat(
      ['--data', join(folder, 'data'), '--backups', join(folder, 'backups'), '--tls', 'acme'],
      ['--address', ADDRESS, '--name-server', names.address, '--dns-wait', '60'],
    ),
    {
      SERVICE_PLC_DIRECTORY_URL: plc.url,
      SERVICE_CRAWLERS: relay.url,
      SERVICE_BIND_ADDRESS: ADDRESS,
      SERVICE_TLS_PORT: String(tlsPort),
      SERVICE_TLS_HTTP_PORT: String(httpPort),
      SERVICE_TLS_DNS_PORT: String(acme.dnsPort),
      SERVICE_TLS_DNS_ADDRESS: ADDRESS,
      SERVICE_TLS_ACME_DIRECTORY_URL: acme.directoryUrl,
      SERVICE_TLS_ACME_ROOT_FILE: acmeRoot,
    },
  )
  for (const name of [DOMAIN, `*.${DOMAIN}`]) names.set(name, 'A', ADDRESS)
  names.delegate(`_acme-challenge.${DOMAIN}`, acme.dnsPort)
  const { code, out, err } = await setUp
  expect({ code, err }).toMatchObject({ code: 0, err: expect.stringContaining('all records are there') })
  const report = JSON.parse(out) as { invite: string; signUpUrl: string; checks: object[] }
  expect(report.checks).toContainEqual({
    name: 'reach',
    state: 'ok',
    text: `a request to port ${httpPort} of ${DOMAIN} arrives here`,
  })
  step('holdfast init: DNS is seen, the configuration is written, an invite is made')

  const server = stack.use(await startProgram(['serve'], settings, folder))
  step('holdfast serve: listens')
  expect(await runProgram(['sweep', 'certificates'], settings)).toMatchObject({ code: 0 })
  const fetchAs = fetchThrough(tlsPort, acme.root)
  expect(await (await fetchAs(report.signUpUrl)).text()).toContain(`value="${report.invite}"`)
  expect(acme.orders).toEqual([[`*.${DOMAIN}`, DOMAIN]])
  step('the certificate is there, and the sign-up page opens')

  const agent = new AtpAgent({ service: `https://${DOMAIN}`, fetch: fetchAs })
  await agent.createAccount({
    handle: HANDLE,
    email: 'alice@example.com',
    password: 'alice-password',
    inviteCode: report.invite,
  })
  step('an account is made with the invite, by @atproto/api')
  const did = await (await fetchAs(`https://${HANDLE}/.well-known/atproto-did`)).text()
  expect(did).toBe(agent.assertDid)
  step('the handle is proven, with the certificate for all of them')

  const { uri } = await agent.post({ text: 'Hello, network!', createdAt: new Date().toISOString() })
  await relay.until(1)
  expect(relay.requests).toContain(DOMAIN)
  const line = stack.use(lineTo(tlsPort, acme.root))
  const consumer = new Consumer(`http://${ADDRESS}:${await line.listening}`, { startCursor: 0, plcUrl: plc.url })
  stack.defer(() => consumer.stop())
  const events = await consumer.until((seen) => seen.some(({ event }) => event === 'create'))
  expect(consumer.faults).toEqual([])
  expect(events.find(({ event }) => event === 'create')).toMatchObject({
    did: agent.assertDid,
    uri: expect.objectContaining({ href: uri }),
    record: { text: 'Hello, network!' },
  })
  step('a relay was asked, and has read and verified the post')
  server.signal('SIGTERM')
  expect(await server.exited).toBe(0)
  console.log(took.join('\n'))
}, 60_000)

/** Requests to any name arrive at the port, by HTTPS with a certificate of that name that the authority has signed. */
const fetchThrough = (port: number, ca: string): typeof fetch =>
  (async (input: string | URL | Request, init: RequestInit = {}) => {
    const request = input instanceof Request ? input : new Request(String(input), init)
    const { hostname, pathname, search } = new URL(request.url)
    const headers = new Headers(request.headers)
    headers.set('host', hostname)
    return fetch(`https://${ADDRESS}:${port}${pathname}${search}`, {
      method: request.method,
      headers,
      body: request.body === null ? undefined : await request.arrayBuffer(),
      tls: { ca, serverName: hostname },
      keepalive: false,
    })
  }) as typeof fetch

/** A port whose connections go on to the server, encrypted: the consumer knows no authority of the tests. */
function lineTo(port: number, ca: string) {
  const { promise: listening, resolve } = Promise.withResolvers<number>()
  const line = createServer((plain) => {
    const encrypted = connect({ host: ADDRESS, port, servername: DOMAIN, ca })
    for (const [from, to] of [
      [plain, encrypted],
      [encrypted, plain],
    ] as const) {
      from.on('error', () => to.destroy())
      from.pipe(to)
    }
  })
  line.listen(0, ADDRESS, () => resolve((line.address() as AddressInfo).port))
  return { listening, [Symbol.dispose]: () => void line.close() }
}
