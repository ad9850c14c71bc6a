/**
 * A server behind nginx and behind Caddy, each configured as docs/behind-a-proxy.md has it. Debian has both
 * (`apt install nginx caddy`).
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'bun:test'
import { PADDING_HEADER, PROBE_PATH } from '../../src/features/operations/doctor/probe-route.ts'
import { serverCertificate, serverKey, testAuthority } from '../support/certificates.ts'
import { createAccount } from '../support/clients/account.ts'
import { bearer } from '../support/clients/http.ts'
import { freePort } from '../support/ports.ts'
import { ADMIN_TOKEN, startPds } from '../support/servers/pds.ts'
import { until } from '../support/until.ts'

const HOST = 'web.test'
const BLOB_BYTES = 20_000_000
const GUIDE = readFileSync(join(import.meta.dir, '../../docs/behind-a-proxy.md'), 'utf8')

/** Returns the first block of code under a heading of the guide. */
const blockUnder = (heading: string): string =>
  new RegExp(`^## ${heading}$[^]*?^\`\`\`\\w*\\n([^]*?)^\`\`\`$`, 'm').exec(GUIDE)![1]!

interface Place {
  folder: string
  port: number
  httpPort: number
  upstream: number
}

interface Proxy {
  /** The command that runs it, once its files are in the folder. */
  command(place: Place): string[]
  /** Certificate of its authority. Throws until there is one. */
  authority(folder: string): string
}

const proxies: Readonly<Record<string, Proxy>> = {
  nginx: {
    command({ folder, port, httpPort, upstream }) {
      writeFileSync(join(folder, 'fullchain.pem'), serverCertificate)
      writeFileSync(join(folder, 'privkey.pem'), serverKey)
      const site = blockUnder('nginx')
        .replaceAll(/^ *listen \[::\].*\n/gm, '')
        .replaceAll('listen 80;', `listen 127.0.0.1:${httpPort};`)
        .replaceAll('listen 443 ', `listen 127.0.0.1:${port} `)
        .replaceAll('/etc/letsencrypt/live/pds.example.com', folder)
        .replaceAll('pds.example.com', HOST)
        .replaceAll('127.0.0.1:8080', `127.0.0.1:${upstream}`)
      const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
        (name) => `${name}_temp_path ${folder}/${name};`,
      )
      const file = join(folder, 'nginx.conf')
      writeFileSync(
        file,
        `${process.getuid?.() === 0 ? 'user root;' : ''} pid ${folder}/pid; events {}
http { access_log off; ${paths.join(' ')}
${site} }`,
      )
      return ['nginx', '-c', file, '-e', join(folder, 'error.log'), '-g', 'daemon off;']
    },
    authority: () => testAuthority,
  },
  caddy: {
    command({ folder, port, httpPort, upstream }) {
      const options = [
        'admin off',
        'local_certs',
        'skip_install_trust',
        'default_bind 127.0.0.1',
        `https_port ${port}`,
        `http_port ${httpPort}`,
        `storage file_system ${folder}`,
      ]
      const file = join(folder, 'Caddyfile')
      writeFileSync(
        file,
        blockUnder('Caddy')
          .replace('{\n', `{\n${options.join('\n')}\n`)
          .replaceAll('pds.example.com', HOST)
          .replaceAll('127.0.0.1:8080', `127.0.0.1:${upstream}`),
      )
      return ['caddy', 'run', '--config', file, '--adapter', 'caddyfile']
    },
    authority: (folder) => readFileSync(join(folder, 'pki/authorities/local/root.crt'), 'utf8'),
  },
}

async function startBehind(name: string) {
  const pds = await startPds({ availableUserDomains: [HOST] }, { publicUrl: `https://${HOST}` })
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-proxy-'))
  const port = await freePort()
  const proxy = proxies[name]!
  const upstream = Number(new URL(pds.url).port)
  const child = Bun.spawn(proxy.command({ folder, port, httpPort: await freePort(), upstream }), {
    stdout: 'ignore',
    stderr: 'ignore',
  })
  const tlsFor = (serverName: string) => ({ ca: proxy.authority(folder), serverName })
  /** Sends a request to a host behind the proxy. Rejects if the proxy has no certificate for it. */
  const ask = async (path: string, { host = HOST, headers, ...init }: RequestInit & { host?: string } = {}) =>
    fetch(`https://127.0.0.1:${port}${path}`, {
      ...init,
      headers: { host, ...(headers as Record<string, string>) },
      // The next request may be to another host.
      keepalive: false,
      tls: tlsFor(host),
    })
  const firstEvent = () => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const socket = new WebSocket(`wss://127.0.0.1:${port}/xrpc/com.atproto.sync.subscribeRepos?cursor=0`, {
      headers: { host: HOST },
      tls: tlsFor(HOST),
    })
    socket.addEventListener('message', () => resolve())
    socket.addEventListener('error', () => reject(new Error('no event')))
    return promise.finally(() => socket.close())
  }
  await until(() =>
    ask('/livez').then(
      ({ ok }) => ok,
      () => false,
    ),
  )
  return {
    pds,
    ask,
    firstEvent,
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
      await pds[Symbol.asyncDispose]()
      rmSync(folder, { recursive: true })
    },
  }
}

test.each(Object.keys(proxies))('%s, as the guide has it, passes what the server needs', async (name) => {
  await using behind = await startBehind(name)
  const { pds, ask, firstEvent } = behind
  const alice = await createAccount(pds, 'alice', { handle: `alice.${HOST}` })

  expect(await (await ask('/.well-known/atproto-did', { host: alice.handle })).text()).toBe(alice.did)
  const nobody = await ask('/.well-known/atproto-did', { host: `nobody.${HOST}` }).then(
    ({ status }) => status,
    () => 'no certificate',
  )
  // Caddy asks the server before it orders one.
  expect(nobody).toBe(name === 'caddy' ? 'no certificate' : 404)

  const probe = (headers: Record<string, string>) =>
    ask(PROBE_PATH, { method: 'POST', headers: { ...bearer(ADMIN_TOKEN), ...headers } })
  expect(await (await probe({ 'x-forwarded-for': '192.0.2.77' })).json()).toMatchObject({
    forwardedFor: expect.stringMatching(/(^|, )127\.0\.0\.1$/),
    host: HOST,
  })
  expect(await probe({ [PADDING_HEADER]: '1' })).toMatchObject({ status: 200 })

  const film = new Uint8Array(BLOB_BYTES)
  crypto.getRandomValues(film.subarray(0, 1000))
  const uploaded = await ask('/xrpc/com.atproto.repo.uploadBlob', {
    method: 'POST',
    headers: { ...bearer(alice.accessJwt), 'content-type': 'video/mp4' },
    body: film,
  })
  const { blob } = (await uploaded.json()) as { blob: { ref: { $link: string } } }
  await alice.call('com.atproto.repo.createRecord', {
    json: { repo: alice.did, collection: 'com.example.film', record: { $type: 'com.example.film', film: blob } },
  })
  const part = await ask(`/xrpc/com.atproto.sync.getBlob?did=${alice.did}&cid=${blob.ref.$link}`, {
    headers: { range: 'bytes=100-199' },
  })
  expect([part.status, part.headers.get('content-range')]).toEqual([206, `bytes 100-199/${BLOB_BYTES}`])
  expect(await part.bytes()).toEqual(film.slice(100, 200))

  await firstEvent()
})
