/** Connections that the server encrypts itself, with certificates in files. */
import { expect, test } from 'bun:test'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import WebSocket from 'ws'
import { serverCertificate, serverKey, testAuthority, untimely } from '../../support/certificates.ts'
import { selfSigned } from '../../support/self-signed.ts'
import { createAccount } from '../../support/clients/account.ts'
import { bearer, raw, request } from '../../support/clients/http.ts'
import type { ConfigOverrides } from '../../support/servers/config.ts'
import { ADMIN_TOKEN, freePort, startPds } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { until } from '../../support/until.ts'
import { thrownBy } from '../../support/thrown.ts'

/** Not the address of the port that is not encrypted. */
const ADDRESS = '127.0.0.2'
const COMMIT_BYTES = 100

/** A folder with a certificate and its key, as a link to it, which is what programs that renew certificates replace. */
class Folder implements Disposable {
  readonly #root = mkdtempSync(join(tmpdir(), 'holdfast-tls-'))
  readonly certificateFile = join(this.#root, 'certificate.pem')
  readonly keyFile = join(this.#root, 'key.pem')
  #versions = 0

  constructor() {
    this.place('certificate.pem', serverCertificate)
    this.place('key.pem', serverKey)
  }

  place(name: string, pem: string): void {
    const version = join(this.#root, `${++this.#versions}`)
    writeFileSync(version, pem)
    rmSync(join(this.#root, name), { force: true })
    symlinkSync(version, join(this.#root, name))
  }

  /** In place of a file, a link that leads nowhere: it cannot even be looked at. */
  loop(name: string): void {
    unlinkSync(join(this.#root, name))
    symlinkSync(join(this.#root, name), join(this.#root, name))
  }

  remove(name: string): void {
    unlinkSync(join(this.#root, name))
  }

  [Symbol.dispose](): void {
    rmSync(this.#root, { recursive: true })
  }
}

const folder = setUp(() => new Folder())

async function encrypting(tls: ConfigOverrides['tls'] = {}) {
  const [port, httpPort] = [await freePort(), await freePort()]
  const pds = await startPds(
    {
      bindAddress: ADDRESS,
      tls: {
        mode: 'files',
        port,
        httpPort,
        certificateFiles: [folder.certificateFile],
        keyFiles: [folder.keyFile],
        ...tls,
      },
    },
    { publicUrl: `https://localhost:${port}` },
  )
  return Object.assign(pds, { secure: `https://${ADDRESS}:${port}`, plain: `http://${ADDRESS}:${httpPort}` })
}

const pds = setUp(() => encrypting())

const trusted = { tls: { ca: testAuthority, serverName: 'localhost' }, keepalive: false }
const secureRequest = (path: string, init: Parameters<typeof request>[1] = {}) =>
  request(`${pds.secure}/xrpc/${path}`, { ...trusted, ...init })

function handshake(servername: string, secure = pds.secure): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>()
  const { port } = new URL(secure)
  const socket = connect({ host: ADDRESS, port: Number(port), servername, rejectUnauthorized: false }, () =>
    resolve(socket),
  )
  socket.on('error', reject)
  return promise
}

async function servedTo(servername: string, secure = pds.secure): Promise<string> {
  const socket = await handshake(servername, secure)
  const { serialNumber } = socket.getPeerCertificate()
  socket.destroy()
  return serialNumber
}

const serialOf = (pem: string) => new X509Certificate(pem).serialNumber

async function openFirehose(): Promise<{ socket: WebSocket; received: number[] }> {
  const url = `${pds.secure.replace('https', 'wss')}/xrpc/com.atproto.sync.subscribeRepos`
  const socket = new WebSocket(url, { rejectUnauthorized: false })
  const received: number[] = []
  socket.on('message', (data: Buffer) => received.push(data.length))
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  socket.on('open', () => resolve())
  socket.on('error', reject)
  await promise
  return { socket, received }
}

test('requests, uploads and the firehose work over encrypted connections', async () => {
  const alice = await createAccount(pds, 'alice')
  const { socket, received } = await openFirehose()
  const auth = { authorization: `Bearer ${alice.accessJwt}` }
  const bytes = new Uint8Array(4 * 1024 * 1024).fill(7)
  const blob = await secureRequest('com.atproto.repo.uploadBlob', {
    method: 'POST',
    body: bytes,
    headers: { ...auth, 'content-type': 'application/octet-stream' },
  })
  expect(blob.body.blob.size).toBe(bytes.length)
  const record = { $type: 'app.example.note', text: 'over TLS' }
  const json = { repo: alice.did, collection: 'app.example.note', record, validate: false }
  expect(await secureRequest('com.atproto.repo.createRecord', { json, headers: auth })).toMatchObject({ status: 200 })
  await until(() => received.some((length) => length > COMMIT_BYTES))
  socket.close()
})

test('what is not encrypted is answered on the loopback address only', async () => {
  const { port } = new URL(pds.url)
  expect(await request(`http://127.0.0.1:${port}/xrpc/_health`)).toMatchObject({ status: 200 })
  expect(await thrownBy(request(`http://${ADDRESS}:${port}/xrpc/_health`))).toThrow()
  expect(await thrownBy(request(`${pds.secure.replace('https', 'http')}/xrpc/_health`))).toThrow()
})

test('a client cannot choose its address, although it is on a private network', async () => {
  const headers = { ...bearer(ADMIN_TOKEN), 'x-forwarded-for': '203.0.113.9' }
  const probe = (url: string) => request(`${url}/v1/admin/probe`, { ...trusted, method: 'POST', headers })
  expect((await probe(pds.secure)).body.address).toBe('127.0.0.1')
  expect((await probe(pds.url)).body.address).toBe('203.0.113.9')
})

test('a client cannot choose for which handle it gets the proof, which no cache keeps', async () => {
  const erin = await createAccount(pds, 'erin')
  const proof = (url: string, headers: Record<string, string>) =>
    request(`${url}/.well-known/atproto-did`, { ...trusted, headers })
  const named = { 'x-forwarded-host': erin.handle }
  expect(await proof(pds.secure, { host: 'other.test', ...named })).toMatchObject({ status: 404 })
  const own = await proof(pds.secure, { host: erin.handle })
  expect([own.body, own.headers.get('cache-control')]).toEqual([erin.did, 'no-store'])
  expect((await proof(pds.url, named)).body).toBe(erin.did)
})

test('over encrypted connections nobody is near enough to read metrics without a credential', async () => {
  expect(await request(`${pds.secure}/metrics`, trusted)).toMatchObject({ status: 401 })
  expect(await request(`${pds.url}/metrics`)).toMatchObject({ status: 200 })
})

test('the other port redirects to the public address with path and query', async () => {
  const { port } = new URL(pds.secure)
  const { status, headers } = await request(`${pds.plain}/oauth/authorize?a=1%202`, { headers: { host: 'localhost' } })
  expect(status).toBe(308)
  expect(headers.get('location')).toBe(`https://localhost:${port}/oauth/authorize?a=1%202`)
})

test('the other port answers neither unknown challenges nor requests without a host', async () => {
  expect(await request(`${pds.plain}/.well-known/acme-challenge/token`)).toMatchObject({ status: 404 })
  expect(await raw(pds.plain, 'GET / HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n')).toContain(' 400 ')
})

test('a client that asks for another name gets the certificate of the service', async () => {
  expect(await servedTo('nobody.invalid')).toBe(serialOf(serverCertificate))
})

test('protocols before TLS 1.2 are refused', async () => {
  const { port } = new URL(pds.secure)
  const { promise, resolve } = Promise.withResolvers<string>()
  const socket = connect(
    { host: ADDRESS, port: Number(port), rejectUnauthorized: false, minVersion: 'TLSv1', maxVersion: 'TLSv1.1' },
    () => resolve(socket.getProtocol() ?? ''),
  )
  socket.on('error', () => resolve('refused'))
  expect(await promise).toBe('refused')
})

test('replaced files are served to new connections, and open ones continue', async () => {
  const bob = await createAccount(pds, 'bob')
  const { socket, received } = await openFirehose()
  folder.place('certificate.pem', untimely.notYetValid)
  await until(() => pds.log.some(({ message }) => message.startsWith('keeping the previous certificate')))
  expect(await servedTo('localhost')).toBe(serialOf(serverCertificate))
  folder.place('key.pem', untimely.key)
  await until(async () => (await servedTo('localhost')) === serialOf(untimely.notYetValid))
  const before = received.length
  await bob.call('com.atproto.repo.createRecord', {
    json: { repo: bob.did, collection: 'app.example.note', record: { $type: 'app.example.note' }, validate: false },
  })
  await until(() => received.length > before)
  expect(socket.readyState).toBe(WebSocket.OPEN)
  socket.close()
})

test('a connection that is kept is asked to end when its certificate is replaced, and loses no request', async () => {
  using files = new Folder()
  await using own = await encrypting({ certificateFiles: [files.certificateFile], keyFiles: [files.keyFile] })
  const socket = await handshake('localhost', own.secure)
  let received = ''
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString()
  })
  const { promise: closed, resolve } = Promise.withResolvers<void>()
  socket.on('close', () => resolve())
  const answers = () => received.split('HTTP/1.1 200 OK').length - 1
  files.place('certificate.pem', untimely.notYetValid)
  files.place('key.pem', untimely.key)
  for (let asked = 1; !/connection: close/i.test(received); asked++) {
    socket.write('GET /xrpc/_health HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await until(() => answers() === asked)
  }
  await closed
  expect(own.log.some(({ message }) => message === 'serving new certificates')).toBe(true)
})

test('expired and missing files are not served', async () => {
  folder.place('certificate.pem', untimely.expired)
  await until(() => pds.log.some(({ reason }) => reason?.includes('has expired') ?? false))
  folder.remove('certificate.pem')
  await until(() => pds.log.some(({ reason }) => reason?.includes('cannot be read') ?? false))
  // The server with the first certificate may still take connections, and resets those that it has not accepted when it
  // closes its port.
  const isOther = (served: string | null) => served !== null && served !== serialOf(serverCertificate)
  let served: string | null = null
  await until(async () => isOther((served = await servedTo('localhost').catch(() => null))))
  expect(served).not.toBe(serialOf(untimely.expired))
})

test('one that has expired keeps no other from being served, nor from being renewed', async () => {
  using own = new Folder()
  using other = new Folder()
  other.place('certificate.pem', untimely.expired)
  other.place('key.pem', untimely.key)
  await using at = await encrypting({
    certificateFiles: [own.certificateFile, other.certificateFile],
    keyFiles: [own.keyFile, other.keyFile],
  })
  const fault = `${other.certificateFile} has expired: renew the certificate`
  expect(at.log).toContainEqual(expect.objectContaining({ message: 'not serving a certificate', reason: fault }))
  const told = await request(`${at.url}/v1/admin/certificates`, { headers: bearer(ADMIN_TOKEN) })
  expect(told.body).toMatchObject({ served: 1, faults: [{ names: other.certificateFile, text: fault }] })
  expect(await servedTo('localhost', at.secure)).toBe(serialOf(serverCertificate))
  const renewed = await selfSigned(Date.now() - 1000, Date.now() + 90 * 86_400_000)
  own.place('key.pem', renewed.key)
  own.place('certificate.pem', renewed.cert)
  await until(async () => (await servedTo('localhost', at.secure).catch(() => '')) === serialOf(renewed.cert))
})

test('files that cannot even be looked at end nothing', async () => {
  using own = new Folder()
  await using at = await encrypting({ certificateFiles: [own.certificateFile], keyFiles: [own.keyFile] })
  own.loop('certificate.pem')
  await until(() => at.log.some(({ reason }) => reason?.includes('ELOOP') ?? false))
  expect(await request(`${at.secure}/xrpc/_health`, trusted)).toMatchObject({ status: 200 })
})

test('a server whose files cannot be served does not start, and says which', async () => {
  using wrong = new Folder()
  wrong.place('key.pem', untimely.key)
  const files = { certificateFiles: [wrong.certificateFile], keyFiles: [wrong.keyFile] }
  expect(await thrownBy(encrypting(files))).toThrow(`${wrong.certificateFile} has a key of another certificate`)
})

test('a server whose port is in use does not start, and names the key', async () => {
  using right = new Folder()
  const files = { certificateFiles: [right.certificateFile], keyFiles: [right.keyFile] }
  const other = createServer()
  const httpPort = await freePort()
  await new Promise<void>((resolve) => other.listen(httpPort, ADDRESS, resolve))
  expect(await thrownBy(encrypting({ ...files, httpPort }))).toThrow('set tls.http_port (SERVICE_TLS_HTTP_PORT)')
  await new Promise((resolve) => other.close(resolve))
})
