/** Ten thousand handshakes for names of others: no certificate is asked for, and no memory is kept. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'bun:test'
import { testAuthority } from '../../support/certificates.ts'
import { servedCertificate } from '../../support/clients/tls-client.ts'
import { freePort } from '../../support/ports.ts'
import { memoryMiB } from '../../support/process-memory.ts'
import { startAcmeHost } from '../../support/servers/acme-host.ts'
import { startProgram } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'

const DOMAIN = 'pds.example.com'
const HANDSHAKES = 10_000
const AT_ONCE = 100
/** After which the server has loaded all that handshakes need. */
const WARM = 2000
/** What 8,000 further handshakes may add: 4 KiB each. */
const MAX_GROWTH_MIB = 32

test('10,000 handshakes for names that do not exist cause no order, and leave the memory of the server bounded', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-names-'))
  await using stack = new AsyncDisposableStack()
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  const acme = stack.use(await startAcmeHost())
  const [port, tlsPort] = [await freePort(), await freePort()]
  acme.httpPort = await freePort()
  const root = join(folder, 'root.pem')
  writeFileSync(root, testAuthority)
  const server = stack.use(
    await startProgram(
      ['serve'],
      {
        SERVICE_PUBLIC_URL: `https://${DOMAIN}`,
        SERVICE_AVAILABLE_USER_DOMAINS: DOMAIN,
        SERVICE_DATA_DIR: join(folder, 'data'),
        SERVICE_BIND_ADDRESS: '127.0.0.1',
        SERVICE_PORT: String(port),
        SERVICE_TLS_MODE: 'acme',
        SERVICE_TLS_ACME_CHALLENGE: 'http-01',
        SERVICE_TLS_PORT: String(tlsPort),
        SERVICE_TLS_HTTP_PORT: String(acme.httpPort),
        SERVICE_TLS_ACME_DIRECTORY_URL: acme.directoryUrl,
        SERVICE_TLS_ACME_ROOT_FILE: root,
      },
      folder,
    ),
  )
  const ask = (name: string) => servedCertificate(tlsPort, acme.root, name)
  await until(async () => typeof (await ask(DOMAIN)) !== 'string')

  let made = 0
  const answers = new Set<unknown>()
  const askFor = async (count: number) => {
    for (const end = made + count; made < end; made += AT_ONCE) {
      const names = Array.from({ length: AT_ONCE }, (_, index) => `stranger${made + index}.${DOMAIN}`)
      for (const answer of await Promise.all(names.map(ask))) answers.add(answer)
    }
  }
  await askFor(WARM)
  const before = memoryMiB(server.pid, 'VmRSS')
  await askFor(HANDSHAKES - WARM)
  // What the server frees, it frees at some time.
  await until(() => memoryMiB(server.pid, 'VmRSS') - before < MAX_GROWTH_MIB)
  expect(answers).toContain('ERR_TLS_CERT_ALTNAME_INVALID')
  expect([...answers].filter((answer) => typeof answer !== 'string')).toEqual([])
  expect(acme.orders).toEqual([[DOMAIN]])
})
