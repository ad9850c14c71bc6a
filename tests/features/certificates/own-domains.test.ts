/** Certificates for the domains of did:web accounts whose documents this server serves, by either kind of proof. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { describe, expect, test } from 'bun:test'
import { testAuthority } from '../../support/certificates.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { servedCertificate } from '../../support/clients/tls-client.ts'
import { arrive, type WebHolder } from '../../support/clients/web-holder.ts'
import { freeDnsPort, freePort } from '../../support/ports.ts'
import { startAcmeHost } from '../../support/servers/acme-host.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'

const DOMAIN = 'pds.test'
const DAY_MILLIS = 86_400_000
/** What is wanted however many accounts there are. */
const standing = { 'http-01': [[DOMAIN]], 'dns-01': [[`*.${DOMAIN}`, DOMAIN]] }

describe.each(['http-01', 'dns-01'] as const)('handles are proven by %s', (acmeChallenge) => {
  const root = setUp(
    () => {
      const folder = mkdtempSync(join(tmpdir(), 'holdfast-acme-'))
      const path = join(folder, 'root.pem')
      writeFileSync(path, testAuthority)
      return { folder, path }
    },
    ({ folder }) => rmSync(folder, { recursive: true }),
  )
  const ports = setUp(async () => ({
    port: await freePort(),
    httpPort: await freePort(),
    dnsPort: await freeDnsPort(),
  }))
  const acme = setUp(startAcmeHost)
  const { pds, web, dns } = useWorld({
    web: [],
    config() {
      const { port, httpPort, dnsPort } = ports
      ;[acme.httpPort, acme.dnsPort] = [httpPort, dnsPort]
      const where = { port, httpPort, dnsPort, dnsAddress: '127.0.0.1' }
      const authority = { acmeDirectoryUrl: acme.directoryUrl, acmeRootFile: root.path }
      return {
        availableUserDomains: [DOMAIN],
        rateLimit: { enabled: false },
        tls: { mode: 'acme', acmeChallenge, ...where, ...authority },
      }
    },
    options: { publicUrl: `https://${DOMAIN}`, alone: 'both nodes would open its ports' },
  })

  /** Makes a pass, and returns the names that it has ordered, apart from handles of the service. */
  async function ordered(): Promise<string[]> {
    const before = acme.orders.length
    await pds.runSweep('certificates')
    const names = acme.orders.slice(before).map((each) => each.join(' '))
    return names.filter((each) => !each.endsWith(`.${DOMAIN}`)).toSorted()
  }
  const someone = (name: string) => arrive({ pds, web, dns }, `${name}.web.test`)
  const host = async ({ accessJwt }: WebHolder, enabled: boolean) => {
    const json = { enabled }
    const { status } = await request(`${pds.url}/v1/did-web/hosting`, { json, headers: bearer(accessJwt) })
    expect(status).toBe(200)
  }
  const served = async (name: string) => {
    const found = await servedCertificate(ports.port, acme.root, name)
    return typeof found === 'string' ? found : found.names
  }

  test('a domain has a certificate once this server serves its document, and with it the document', async () => {
    await pds.runSweep('certificates')
    expect(acme.orders.slice(0, 1)).toEqual(standing[acmeChallenge])
    const dora = await someone('dora')
    expect(await ordered()).toEqual([])
    await host(dora, true)
    expect(await ordered()).toEqual([dora.host])
    const document = () =>
      request(`https://127.0.0.1:${ports.port}/.well-known/did.json`, {
        headers: { host: dora.host },
        tls: { ca: acme.root, serverName: dora.host },
        keepalive: false,
      } as RequestInit)
    // The listener of before takes connections for some seconds more.
    await until(() =>
      document().then(
        ({ body }) => isDeepStrictEqual(body, dora.document),
        () => false,
      ),
    )
    expect(await ordered()).toEqual([])
  })

  test('names that clients ask for, and domains of accounts that serve their documents themselves, make no order', async () => {
    const nora = await someone('nora')
    const names = [nora.host, 'stranger.web.test', 'web.test', `www.${nora.host}`]
    for (const name of names) {
      expect(await served(name)).toBe('ERR_TLS_CERT_ALTNAME_INVALID')
      await request(`http://127.0.0.1:${ports.httpPort}/.well-known/did.json`, { headers: { host: name } })
      await request(`${pds.url}/tls-check?domain=${name}`)
    }
    expect(await ordered()).toEqual([])
  })

  test('the domain of an account that was taken down has no certificate before the account is back', async () => {
    const tara = await someone('tara')
    await host(tara, true)
    const subject = { $type: 'com.atproto.admin.defs#repoRef', did: tara.did }
    const takeDown = (applied: boolean) =>
      request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
        json: { subject, takedown: { applied } },
        headers: basic('admin', ADMIN_TOKEN),
      })
    expect(await takeDown(true)).toMatchObject({ status: 200 })
    expect(await ordered()).toEqual([])
    expect(await takeDown(false)).toMatchObject({ status: 200 })
    expect(await ordered()).toEqual([tara.host])
  })

  test('a domain that does not point here holds up no other, and its order is dropped when it is given up', async () => {
    const [zora, yann] = [await someone('zora'), await someone('yann')]
    acme.refused.add(zora.host)
    for (const holder of [zora, yann]) await host(holder, true)
    expect(await ordered()).toEqual([yann.host, zora.host])
    expect(await pds.rows('certificate_order')).toMatchObject([{ names: zora.host, fault: `${zora.host}: not proven` }])
    await host(zora, false)
    await host(yann, false)
    expect(await ordered()).toEqual([])
    expect(await pds.rows('certificate_order')).toEqual([])
  })

  test('a domain whose certificates are used up elsewhere holds up no other, today or tomorrow', async () => {
    const [wanda, xena] = [await someone('wanda'), await someone('xena')]
    acme.limited.add(wanda.host)
    await host(wanda, true)
    expect(await ordered()).toEqual([])
    expect(await pds.rows('certificate_order')).toMatchObject([{ names: wanda.host, fault: 'too many certificates' }])
    await host(xena, true)
    expect(await ordered()).toEqual([xena.host])
    await host(wanda, false)
    await host(xena, false)
  })

  test('a domain that is given up is not renewed, and without certificate in the end', async () => {
    const [rita, sven] = [await someone('rita'), await someone('sven')]
    for (const holder of [rita, sven]) await host(holder, true)
    expect(await ordered()).toEqual([rita.host, sven.host])
    await host(rita, false)
    acme.lifeMillis = 200 * DAY_MILLIS
    pds.clock.advance({ days: 61 })
    const renewed = await ordered()
    expect(renewed).toContain(sven.host)
    expect(renewed).not.toContain(rita.host)
    pds.clock.advance({ days: 30 })
    await ordered()
    expect(await pds.rows('certificate', { names: rita.host })).toEqual([])
    await until(async () => (await served(rita.host)) === 'ERR_TLS_CERT_ALTNAME_INVALID')
    await until(async () => (await served(sven.host)) === `DNS:${sven.host}`)
  })
})
