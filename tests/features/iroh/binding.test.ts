/** Where the endpoint listens, and what keeps a server with an endpoint from starting. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'bun:test'
import { OperatorError } from '../../../src/base/operator-error.ts'
import { emptyTally, livenessEcho } from '../../../src/features/push/iroh/liveness-echo.ts'
import { openEndpoint } from '../../../src/platform/network/iroh-endpoint.ts'
import { startPds } from '../../support/servers/pds.ts'
import { runProgram } from '../../support/servers/program.ts'
import { ECHO, endpointStatus, withEndpoint } from '../../support/servers/endpoint.ts'

const ANY_PORT = String.raw`:\d+`

test('a server for this machine alone stays on it, and one without IPv6 keeps that to this machine', async () => {
  const socketsOf = async (changes: Parameters<typeof startPds>[0]) => {
    await using pds = await startPds({ ...withEndpoint, ...changes })
    return ((await endpointStatus(pds)).sockets as string[]).map((socket) =>
      socket.replace(new RegExp(ANY_PORT + '$'), ''),
    )
  }
  expect(await socketsOf({ bindAddress: '127.0.0.1' })).toEqual(['127.0.0.1', '[::1]'])
  expect(await socketsOf({ bindAddress: '0.0.0.0' })).toEqual(['0.0.0.0', '[::]'])
  expect(await socketsOf({ bindAddress: '0.0.0.0', iroh: { ...withEndpoint.iroh, ipv6: false } })).toEqual([
    '0.0.0.0',
    '[::1]',
  ])
})

test('sockets that cannot be opened are a fault that says so', async () => {
  await using pds = await startPds()
  const service = livenessEcho(pds.ctx, emptyTally())
  // A documentation address (RFC 5737 section 3), which no host has.
  const opening = openEndpoint({
    secret: new Uint8Array(32),
    discovery: false,
    sockets: ['192.0.2.1:0'],
    alpn: ECHO,
    service,
  })
  const error = await opening.then(
    () => null,
    (fault: unknown) => fault,
  )
  expect(error).toBeInstanceOf(OperatorError)
  expect((error as Error).message).toMatch(/^the QUIC endpoint cannot open its sockets: [^\n]+$/)
})

test('where the library has no build, an endpoint is refused before the start, and in the check of the configuration', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-iroh-'))
  const preload = join(folder, 'elsewhere.ts')
  writeFileSync(preload, `Object.defineProperty(process, 'arch', { value: 'ppc64' })`)
  const elsewhere = [process.execPath, '--preload', preload, join(import.meta.dir, '../../../src/main.ts')]
  const env = { SERVICE_IROH_ENABLED: 'true', SERVICE_DATA_DIR: join(folder, 'data') }
  for (const words of [['config', 'check', '--dev'], ['dev']])
    expect(await runProgram(words, env, elsewhere)).toMatchObject({
      code: 1,
      err: expect.stringMatching(
        /iroh\.enabled .*: the QUIC library has no build for \w+-ppc64, only for Linux on x64 and for macOS on arm64/,
      ),
    })
  expect(
    await runProgram(['config', 'check', '--dev'], { ...env, SERVICE_IROH_ENABLED: 'false' }, elsewhere),
  ).toMatchObject({ code: 0 })
  rmSync(folder, { recursive: true })
})
