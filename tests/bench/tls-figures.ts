/**
 * What connections cost that the server encrypts itself, beside plain ones and those of a Caddy in front of it.
 *
 *     bun tests/bench/tls-figures.ts [rounds]
 *
 * Requires wrk, curl and caddy. The server is a process of its own; figures are the processor time of server and proxy
 * together, which depends less on what else the machine does than rates do. Ways take turns; each figure is the median.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Did, Tid } from '../../src/protocol/identifiers.ts'
import { serverCertificate, serverKey } from '../support/certificates.ts'
import { createAccount } from '../support/clients/account.ts'
import { sequence } from '../support/clients/events.ts'
import { freePort } from '../support/ports.ts'
import { startPds } from '../support/servers/pds.ts'

const CLIENTS = 32
const SECS = 4
const UPLOADS = 4
const UPLOAD_MIB = 16
const EVENTS = 4000
const EVENT_BYTES = 5000
/** Linux counts processor time in hundredths of a second. */
const TICK_MILLIS = 10
const TLS = { rejectUnauthorized: false }

interface Place {
  folder: string
  port: number
}

interface Served {
  plain: string
  record: string
  token: string
}

async function runServer({ folder, port }: Place): Promise<void> {
  const files = { certificateFiles: [join(folder, 'cert.pem')], keyFiles: [join(folder, 'key.pem')] }
  const pds = await startPds(
    { rateLimit: { enabled: false }, tls: { mode: 'files', port, httpPort: 0, ...files } },
    { publicUrl: `https://localhost:${port}` },
  )
  const alice = await createAccount(pds, 'alice')
  const record = { $type: 'app.example.note', text: 'a note of a usual length, in the record that all clients read' }
  const made = await alice.call('com.atproto.repo.createRecord', {
    json: { repo: alice.did, collection: 'app.example.note', rkey: 'one', record, validate: false },
  })
  if (made.status !== 200) throw new Error(`createRecord returned ${made.status}`)
  const event = {
    type: 'sync' as const,
    did: 'did:plc:aliceaaaaaaaaaaaaaaaaaaa' as Did,
    rev: '3jzfcijpj2z2a' as Tid,
    blocks: new Uint8Array(EVENT_BYTES),
  }
  for (let made = 0; made < EVENTS; made += 200) await sequence(pds, ...Array<typeof event>(200).fill(event))
  process.send!({
    plain: pds.url.replace('localhost', '127.0.0.1'),
    record: `com.atproto.repo.getRecord?repo=${alice.did}&collection=app.example.note&rkey=one`,
    token: alice.accessJwt,
  } satisfies Served)
}

interface Way {
  name: string
  url: string
  pids: number[]
}

async function measure(rounds: number): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-tls-'))
  writeFileSync(join(folder, 'cert.pem'), serverCertificate)
  writeFileSync(join(folder, 'key.pem'), serverKey)
  const [port, caddyPort] = [await freePort(), await freePort()]
  const { promise: served, resolve } = Promise.withResolvers<Served>()
  const server = Bun.spawn([process.execPath, import.meta.path, 'serve', JSON.stringify({ folder, port })], {
    ipc: resolve,
    stdout: 'inherit',
    stderr: 'inherit',
  })
  const { plain, record, token } = await served
  const caddyfile = `{
  admin off
  auto_https off
}
https://localhost:${caddyPort} {
  tls ${folder}/cert.pem ${folder}/key.pem
  reverse_proxy ${plain.replace('http://', '')}
}
`
  writeFileSync(join(folder, 'Caddyfile'), caddyfile)
  const caddy = Bun.spawn(['caddy', 'run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile'], {
    env: { ...process.env, HOME: folder },
    stdout: 'ignore',
    stderr: 'ignore',
  })
  const ways: Way[] = [
    { name: 'plain', url: plain, pids: [server.pid] },
    { name: 'tls', url: `https://localhost:${port}`, pids: [server.pid] },
    { name: 'caddy', url: `https://localhost:${caddyPort}`, pids: [server.pid, caddy.pid] },
  ]
  await Bun.write(join(folder, 'body'), new Uint8Array(UPLOAD_MIB * 1024 ** 2).fill(7))
  const kinds: Record<string, (way: Way) => Promise<number>> = {
    'handshakes with a request each': (way) => load(`${way.url}/xrpc/_health`, ['-H', 'Connection: close']),
    'getRecord on kept connections': (way) => load(`${way.url}/xrpc/${record}`),
    'MiB uploaded': (way) => upload(way, folder, token),
    'events replayed': replay,
  }
  try {
    await reachable(ways)
    for (const [kind, run] of Object.entries(kinds)) {
      const all = new Map(ways.map(({ name }) => [name, { millis: [] as number[], rates: [] as number[] }]))
      for (let round = 0; round < rounds; round++) {
        for (const way of ways) {
          const [cpu, began] = [cpuMillis(way), performance.now()]
          const count = await run(way)
          all.get(way.name)!.millis.push((cpuMillis(way) - cpu) / count)
          all.get(way.name)!.rates.push((count / (performance.now() - began)) * 1000)
        }
      }
      for (const [name, { millis, rates }] of all)
        console.log(`${kind}\t${name}\t${(median(millis) * 1000).toFixed(0)} µs each\t${median(rates).toFixed(0)}/s`)
    }
  } finally {
    server.kill()
    caddy.kill()
    rmSync(folder, { recursive: true })
  }
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!

/** User and system time of all processes of a way. */
const cpuMillis = ({ pids }: Way): number =>
  pids
    .map((pid) => {
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
      return (Number(fields[11]) + Number(fields[12])) * TICK_MILLIS
    })
    .reduce((sum, each) => sum + each)

async function reachable(ways: readonly Way[]): Promise<void> {
  for (const { url } of ways)
    while (
      !(await fetch(`${url}/xrpc/_health`, { tls: TLS }).then(
        ({ ok }) => ok,
        () => false,
      ))
    )
      await Bun.sleep(100)
}

/** Returns the number of responses. */
async function load(url: string, more: string[] = []): Promise<number> {
  const wrk = Bun.spawn(['wrk', '-t1', `-c${CLIENTS}`, `-d${SECS}s`, ...more, url])
  const said = await new Response(wrk.stdout).text()
  if (/Non-2xx/.test(said)) throw new Error(said)
  return Number(/(\d+) requests in/.exec(said)?.[1])
}

async function upload({ url }: Way, folder: string, token: string): Promise<number> {
  const headers = ['-H', `authorization: Bearer ${token}`, '-H', 'content-type: application/octet-stream']
  for (let sent = 0; sent < UPLOADS; sent++) {
    const where = `${url}/xrpc/com.atproto.repo.uploadBlob`
    const curl = Bun.spawn(['curl', '-sfk', ...headers, '-o', '/dev/null', '--data-binary', `@${folder}/body`, where])
    if ((await curl.exited) !== 0) throw new Error(`curl ended with ${curl.exitCode}`)
  }
  return UPLOADS * UPLOAD_MIB
}

async function replay({ url }: Way): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const socket = new WebSocket(`${url.replace('http', 'ws')}/xrpc/com.atproto.sync.subscribeRepos?cursor=0`, {
    tls: TLS,
  })
  let received = 0
  socket.onmessage = () => {
    if (++received === EVENTS) resolve(received)
  }
  socket.onerror = () => reject(new Error('no WebSocket'))
  const count = await promise
  socket.close()
  return count
}

if (process.argv[2] === 'serve') await runServer(JSON.parse(process.argv[3]!) as Place)
else await measure(Number(process.argv[2] ?? 3))
