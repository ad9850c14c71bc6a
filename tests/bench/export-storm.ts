/**
 * What many exports at the same time cost: memory, the time of everybody else's requests, and the throughput; and what
 * one export alone takes.
 *
 *     bun tests/bench/export-storm.ts [exports, 300] [records, 10000] [slow]
 *
 * The server, the clients and the one who asks for its health are processes of their own. With `slow`, a client reads
 * 64 KiB in every tenth of a second.
 */
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { writeRecords, type RecordWriteInput } from '../../src/features/data/repo/record-writing.ts'
import type { Did, Nsid } from '../../src/protocol/identifiers.ts'
import { createAccount } from '../support/clients/account.ts'
import { startPds } from '../support/servers/pds.ts'
import { sessionCaller } from '../support/clients/session-token.ts'

const BATCH = 200
/** With it, a record takes about 450 bytes in an archive. */
const TEXT_CHARS = 290
const ALONE_ROUNDS = 30
const NETWORKS = 30
const SLOW_MILLIS = 100
const MEMORY_MILLIS = 20
/** The last answers of the health arrive by then. */
const SETTLE_MILLIS = 100
const MAX_STORM_MILLIS = 45_000

const [first = '300', second = '10000', third = ''] = process.argv.slice(2)
const roles: Record<string, () => Promise<void>> = { serve, ask, load }
await (roles[first] ?? measure)()

async function serve(): Promise<void> {
  const pds = await startPds(
    { rateLimit: { globalIpPer5min: 0, writePointsHourly: 0, writePointsDaily: 0 } },
    { strictTransactions: false },
  )
  const did = (await createAccount(pds, 'alice')).did as Did
  const caller = await sessionCaller(pds, did)
  const collection = 'app.bsky.feed.post' as Nsid
  for (let made = 0; made < Number(second); made += BATCH) {
    const writes = Array.from({ length: BATCH }, (_, i): RecordWriteInput => {
      const text = String(made + i).padEnd(TEXT_CHARS, ' words')
      return {
        action: 'create',
        collection,
        record: { $type: collection, text, createdAt: '2026-01-01T00:00:00.000Z' },
      }
    })
    await writeRecords(pds.ctx, caller, did, { writes })
  }
  Bun.gc(true)
  process.send!({ url: pds.url, did })
}

/** Tells how long its requests took, in milliseconds, when it is asked. */
async function ask(): Promise<void> {
  let millis: number[] = []
  process.on('message', () => {
    process.send!(millis)
    millis = []
  })
  for (;;) {
    const begun = performance.now()
    await (await fetch(`${second}/xrpc/_health`)).text()
    millis.push(performance.now() - begun)
    await Bun.sleep(5)
  }
}

/**
 * Exports of as many clients as it is told to be. Tells what each got, and when the last was done.
 */
async function load(): Promise<void> {
  const { hostname, port, host } = new URL(second)
  const get = (client: number): Promise<{ status: number; bytes: number }> => {
    const { promise, resolve } = Promise.withResolvers<{ status: number; bytes: number }>()
    const socket = connect(Number(port), hostname)
    let [head, bytes] = ['', 0]
    socket.on('data', (chunk: Buffer) => {
      if (head === '') head = chunk.subarray(0, 20).toString('latin1')
      bytes += chunk.length
      if (process.argv[4] !== 'slow') return
      socket.pause()
      setTimeout(() => socket.resume(), SLOW_MILLIS)
    })
    const done = () => resolve({ status: Number(head.split(' ')[1] ?? 0), bytes })
    socket.on('close', done)
    socket.on('error', done)
    socket.setTimeout(MAX_STORM_MILLIS, () => socket.destroy())
    socket.write(
      `GET /xrpc/com.atproto.sync.getRepo?did=${process.argv[5]} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\nX-Forwarded-For: 198.51.${client % NETWORKS}.7\r\n\r\n`,
    )
    return promise
  }
  process.on('message', async (clients: number) => {
    const begun = performance.now()
    const ends: number[] = []
    const found = await Promise.all(
      Array.from({ length: clients }, (_, i) =>
        get(i).then((answer) => (ends.push(performance.now() - begun), answer)),
      ),
    )
    process.send!({ found, millis: Math.max(...ends) })
  })
}

interface Child {
  process: Bun.Subprocess
  next(): Promise<any>
}

function start(...args: string[]): Child {
  const [told, awaited]: [unknown[], ((message: unknown) => void)[]] = [[], []]
  const child = Bun.spawn([process.execPath, import.meta.path, ...args], {
    ipc: (message) => (awaited.length > 0 ? awaited.shift()!(message) : told.push(message)),
    stdout: 'inherit',
    stderr: 'inherit',
    onExit: (_, code) => void (code !== null && code !== 0 && process.exit(1)),
  })
  return {
    process: child,
    next: () => (told.length > 0 ? Promise.resolve(told.shift()) : new Promise((resolve) => awaited.push(resolve))),
  }
}

async function measure(): Promise<void> {
  const [exports, records] = [Number(first), second]
  const server = start('serve', records)
  const { url, did } = await server.next()
  const health = start('ask', url)
  const client = start('load', url, third === 'slow' ? 'slow' : 'fast', did)
  const rssMib = () =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.process.pid}/status`, 'utf8'))![1]) / 1024
  const storm = async (clients: number) => {
    client.process.send(clients)
    return (await client.next()) as { found: { status: number; bytes: number }[]; millis: number }
  }
  const waits = async () => {
    health.process.send('')
    return ((await health.next()) as number[]).toSorted((a, b) => a - b)
  }
  try {
    await Bun.sleep(1000)
    const alone: number[] = []
    for (let round = 0; round < ALONE_ROUNDS; round++) alone.push((await storm(1)).millis)
    alone.sort((a, b) => a - b)
    const before = rssMib()
    await waits()
    let peak = 0
    const watch = setInterval(() => (peak = Math.max(peak, rssMib())), MEMORY_MILLIS)
    const { found, millis } = await storm(exports)
    clearInterval(watch)
    await Bun.sleep(SETTLE_MILLIS)
    const beside = await waits()
    const whole = found.filter(({ status }) => status === 200)
    const mib = whole.reduce((sum, { bytes }) => sum + bytes, 0) / 1024 ** 2
    const at = (share: number) => beside[Math.min(beside.length - 1, Math.floor(beside.length * share))]!.toFixed(1)
    console.log(
      `alone ${alone[0]!.toFixed(1)} ms at best, ${alone[alone.length >> 1]!.toFixed(1)} ms in the median\n` +
        `${exports} exports: ${whole.length} served (${new Set(whole.map(({ bytes }) => bytes)).size} sizes), ${found.filter(({ status }) => status === 503).length} refused, ` +
        `${(millis / 1000).toFixed(1)} s, ${(mib / (millis / 1000)).toFixed(0)} MiB/s\n` +
        `memory ${before.toFixed(0)} MiB before, ${peak.toFixed(0)} MiB at most\n` +
        `health p50 ${at(0.5)}, p99 ${at(0.99)}, at most ${at(1)} ms`,
    )
  } finally {
    for (const child of [client, health, server]) {
      child.process.kill()
      await child.process.exited
    }
  }
}
