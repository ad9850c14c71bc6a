/**
 * Certificates from Pebble, the certificate authority for tests of those who wrote RFC 8555: here it refuses every
 * third nonce, uses authorizations again, and completes orders in the background. Debian has it (`apt install pebble`).
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'bun:test'
import { serverCertificate, serverKey, testAuthority } from '../support/certificates.ts'
import { createAccount } from '../support/clients/account.ts'
import { servedCertificate } from '../support/clients/tls-client.ts'
import { freeDnsPort, freePort } from '../support/ports.ts'
import { startNameServer } from '../support/servers/name-server.ts'
import { startPds, type TestPds } from '../support/servers/pds.ts'
import { until } from '../support/until.ts'

const DOMAIN = 'example.test'
const TEST_MILLIS = 120_000

/** Pebble, and a server that gets its certificates there. */
async function startBoth(acmeChallenge: 'http-01' | 'dns-01') {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-pebble-'))
  const [certificate, privateKey, acmeRootFile] = ['server.pem', 'server.key', 'root.pem'].map((name) =>
    join(folder, name),
  ) as [string, string, string]
  writeFileSync(certificate, serverCertificate)
  writeFileSync(privateKey, serverKey)
  writeFileSync(acmeRootFile, testAuthority)
  const [port, httpPort, dnsPort] = [await freePort(), await freePort(), await freeDnsPort()]
  const [acmePort, managementPort] = [await freePort(), await freePort()]
  // All names lead here; challenges are delegated as an NS record does it.
  const names = await startNameServer()
  names.set('*', 'A', '127.0.0.1')
  names.delegate(`_acme-challenge.${DOMAIN}`, dnsPort)
  const pebble = {
    listenAddress: `127.0.0.1:${acmePort}`,
    managementListenAddress: `127.0.0.1:${managementPort}`,
    certificate,
    privateKey,
    httpPort,
    tlsPort: port,
    ocspResponderURL: '',
    externalAccountBindingRequired: false,
    certificateValidityPeriod: 90 * 86_400,
  }
  const config = join(folder, 'pebble.json')
  writeFileSync(config, JSON.stringify({ pebble }))
  const child = Bun.spawn(['pebble', '-strict', '-config', config, '-dnsserver', names.address], {
    env: { PATH: process.env['PATH'], PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '33' },
    stdout: 'ignore',
    stderr: 'ignore',
  })
  const ask = (at: number, path: string) =>
    fetch(`https://localhost:${at}${path}`, { tls: { ca: testAuthority } }).then((answer) => answer.text())
  await until(() =>
    ask(acmePort, '/dir').then(
      () => true,
      () => false,
    ),
  )
  const pds = await startPds(
    {
      availableUserDomains: [DOMAIN],
      tls: {
        mode: 'acme',
        acmeChallenge,
        port,
        httpPort,
        dnsPort,
        dnsAddress: '127.0.0.1',
        acmeDirectoryUrl: `https://localhost:${acmePort}/dir`,
        acmeRootFile,
      },
    },
    { publicUrl: `https://${DOMAIN}` },
  )
  const root = await ask(managementPort, '/roots/0')
  return {
    pds,
    served: (name: string) => servedCertificate(port, root, name),
    async [Symbol.asyncDispose]() {
      await pds[Symbol.asyncDispose]()
      child.kill()
      await child.exited
      await names[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true })
    },
  }
}

/** Makes passes until no order is left. */
const certify = (pds: TestPds) =>
  until(async () => {
    await pds.runSweep('certificates')
    // Pebble may have refused nonces too often in a row.
    pds.clock.advance({ secs: 600 })
    return (await pds.count('certificate_order')) === 0
  })

test(
  'by HTTP, the host and each handle get a certificate, which clients accept and which is renewed',
  async () => {
    await using both = await startBoth('http-01')
    const { pds, served } = both
    await certify(pds)
    expect(await served(DOMAIN)).toMatchObject({ names: `DNS:${DOMAIN}` })
    for (const name of ['alice', 'bob']) await createAccount(pds, name, { handle: `${name}.${DOMAIN}` })
    await certify(pds)
    // The listener of before the last certificate takes connections for some seconds more.
    const serials = new Set<string>()
    const untilServed = () =>
      until(async () => {
        const found = await served(`alice.${DOMAIN}`)
        if (typeof found === 'string' || serials.has(found.serial)) return false
        serials.add(found.serial)
        return true
      })
    await untilServed()
    pds.clock.advance({ days: 61 })
    await certify(pds)
    await untilServed()
  },
  TEST_MILLIS,
)

test(
  'by DNS, one certificate is for the host and all handles',
  async () => {
    await using both = await startBoth('dns-01')
    const { pds, served } = both
    await certify(pds)
    for (const name of [DOMAIN, `anyone.${DOMAIN}`])
      expect(await served(name)).toMatchObject({ names: expect.stringContaining(`DNS:*.${DOMAIN}`) })
  },
  TEST_MILLIS,
)
