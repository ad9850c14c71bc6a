/** The nodes of a cluster share certificates: one asks the authority, all answer it and serve what it gave. */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testAuthority } from '../../support/certificates.ts'
import { servedCertificate } from '../../support/clients/tls-client.ts'
import { freeDnsPort, freePort } from '../../support/ports.ts'
import { startAcmeHost } from '../../support/servers/acme-host.ts'
import { startCluster } from '../../support/servers/cluster.ts'
import type { ConfigOverrides } from '../../support/servers/config.ts'
import { until } from '../../support/until.ts'

const DOMAIN = 'example.test'

/** Two nodes with ports of their own, while the authority is away. It asks the second node for proofs. */
async function startNodes(acmeChallenge: 'http-01' | 'dns-01') {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-acme-'))
  const acmeRootFile = join(folder, 'root.pem')
  writeFileSync(acmeRootFile, testAuthority)
  const acme = await startAcmeHost()
  acme.fault = 'down'
  const configOf = async () => {
    const [port, httpPort, dnsPort] = [await freePort(), await freePort(), await freeDnsPort()]
    const where = { port, httpPort, dnsPort, dnsAddress: '127.0.0.1' }
    const tls = { mode: 'acme', acmeChallenge, acmeDirectoryUrl: acme.directoryUrl, acmeRootFile, ...where } as const
    return { publicUrl: `https://${DOMAIN}`, availableUserDomains: [DOMAIN], tls } satisfies ConfigOverrides
  }
  const [one, other] = [await configOf(), await configOf()]
  const cluster = await startCluster(1, one)
  await cluster.add(other)
  // The passes that the nodes make when they start have ended.
  for (const node of cluster.nodes) await node.runSweep('certificates')
  acme.httpPort = other.tls.httpPort
  acme.dnsPort = other.tls.dnsPort
  acme.fault = null
  return {
    acme,
    cluster,
    tlsPorts: [one.tls.port, other.tls.port],
    async [Symbol.asyncDispose]() {
      await cluster[Symbol.asyncDispose]()
      await acme[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true })
    },
  }
}

test.each(['http-01', 'dns-01'] as const)(
  'by %s, one node asks, the other one answers, and both serve the certificate',
  async (challenge) => {
    await using nodes = await startNodes(challenge)
    const { acme, cluster, tlsPorts } = nodes
    cluster.clock.advance({ secs: 600 })
    expect(await cluster.nodes[0]!.runSweep('certificates')).toMatchObject({ issued: 1 })
    expect(acme.orders.length).toBe(1)
    for (const port of tlsPorts)
      await until(async () => typeof (await servedCertificate(port, acme.root, DOMAIN)) !== 'string')
  },
)

test('an authority that limits orders is left alone by every node', async () => {
  await using nodes = await startNodes('http-01')
  const { acme, cluster } = nodes
  cluster.clock.advance({ secs: 600 })
  acme.fault = 'rateLimited'
  expect(await cluster.nodes[0]!.runSweep('certificates')).toMatchObject({ failed: 1 })
  acme.fault = null
  cluster.clock.advance({ secs: 600 })
  expect(await cluster.nodes[1]!.runSweep('certificates')).toMatchObject({ issued: 0, failed: 0 })
  expect(acme.orders).toEqual([])
})
