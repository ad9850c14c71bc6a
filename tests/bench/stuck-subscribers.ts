/**
 * What subscribers that never read cost the server, and how fast one that reads is served.
 *
 *     bun tests/bench/stuck-subscribers.ts [sockets]
 *
 * The server is a process of its own, so that its memory is. Each socket comes from another address.
 */
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import type { Did, Tid } from '../../src/protocol/identifiers.ts'
import { sequence } from '../support/clients/events.ts'
import { startPds } from '../support/servers/pds.ts'

const EVENTS = 4000
const EVENT_BYTES = 20_000
const BATCH = 200
const SETTLE_MILLIS = 6000
const sockets = Number(process.argv[2] ?? 600)

if (process.argv[2] === 'serve') await runServer()
else await measure()

async function runServer(): Promise<void> {
  const pds = await startPds({ firehose: { maxSubscribers: 0 } } as object)
  const events = Array.from({ length: BATCH }, () => ({
    type: 'sync' as const,
    did: 'did:plc:aliceaaaaaaaaaaaaaaaaaaa' as Did,
    rev: '3jzfcijpj2z2a' as Tid,
    blocks: new Uint8Array(EVENT_BYTES),
  }))
  const fill = async (count: number) => {
    for (let made = 0; made < count; made += BATCH) await sequence(pds, ...events)
  }
  await fill(EVENTS)
  Bun.gc(true)
  process.send!(pds.url)
  process.on('message', async (count: number) => {
    await fill(count)
    process.send!('done')
  })
}

async function measure(): Promise<void> {
  const messages: ((message: unknown) => void)[] = []
  const child = Bun.spawn([process.execPath, import.meta.path, 'serve'], {
    ipc: (message) => messages.shift()?.(message),
    stdout: 'inherit',
    stderr: 'inherit',
  })
  const nextMessage = () => new Promise<unknown>((resolve) => messages.push(resolve))
  const url = new URL((await nextMessage()) as string)
  const rssKib = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))![1])
  const settle = async () => {
    await Bun.sleep(SETTLE_MILLIS)
    return rssKib()
  }
  try {
    console.log(`a replay of ${EVENTS} events of ${EVENT_BYTES} bytes to one that reads: ${await replayMillis(url)} ms`)
    for (const [name, query, live] of [
      ['replaying', '?cursor=0', 0],
      ['live', '', 2000],
    ] as const) {
      const before = await settle()
      const stuck = await Promise.all(Array.from({ length: sockets }, (_, i) => open(url, query, i)))
      if (live > 0) {
        const done = nextMessage()
        child.send(live)
        await done
      }
      const after = await settle()
      console.log(
        `${name}: ${sockets} sockets that never read: ${before} KiB before, ${after} KiB with them, ${((after - before) / sockets).toFixed(0)} KiB each`,
      )
      for (const socket of stuck) socket.destroy()
      console.log(`  gone: ${await settle()} KiB`)
    }
  } finally {
    child.kill()
    await child.exited
  }
}

/** Upgraded, and never read from again. */
function open(url: URL, query: string, i: number): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const socket = connect(Number(url.port), '127.0.0.1')
  socket.on('error', reject)
  socket.write(
    `GET /xrpc/com.atproto.sync.subscribeRepos${query} HTTP/1.1\r\nHost: ${url.host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nX-Forwarded-For: 198.51.${i >> 8}.${i & 255}\r\n\r\n`,
  )
  socket.once('data', () => {
    socket.pause()
    resolve(socket)
  })
  return promise
}

function replayMillis(url: URL): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>()
  const started = performance.now()
  const socket = new WebSocket(`ws://${url.host}/xrpc/com.atproto.sync.subscribeRepos?cursor=0`)
  let left = EVENTS
  socket.onmessage = () => {
    if (--left > 0) return
    resolve(Math.round(performance.now() - started))
    socket.close()
  }
  return promise
}
