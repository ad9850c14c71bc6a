/**
 * What a thread that reads adds: processor time of each thread for a request, while one thread answers alone, while
 * both do, and while two servers do that share nothing.
 *
 *     bun tests/bench/reader-costs.ts [--rounds 14] [--millis 300] [--only getRecord]
 *
 * Linux only. All cases take turns in slices of that many milliseconds, and medians are told. The system gives a
 * connection to one of the threads; so many are opened here that each thread gets as many as a case wants. Clients run
 * on the same processors. `gain` is how many times as much two processors answer as one, if clients run elsewhere: what
 * both threads answer in a second of their own, beside what the main thread answers alone.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Socket } from 'bun'
import { createAccount } from '../support/clients/account.ts'
import { freePort } from '../support/ports.ts'
import { publicService, threadsOf, type Threads } from '../support/request-cost.ts'
import { until } from '../support/until.ts'

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '14' },
    millis: { type: 'string', default: '300' },
    only: { type: 'string', default: '' },
    server: { type: 'string', default: join(import.meta.dir, '../..') },
  },
})
const ROUNDS = Number(options.rounds)
const SLICE_MILLIS = Number(options.millis)
const WARM_UP_MILLIS = 800
const WARM_UPS = 3
/** Connections that a thread answers if it answers alone. */
const CONNECTIONS = 32
const RECORDS = 200
/** Requests by which a connection shows which thread has it. */
const TRIAL_REQUESTS = 40
const collection = 'app.bsky.feed.post'
const rkey = '3jzfcijpj2z2a'

const paths: Record<string, (did: string) => string> = {
  getRecord: (did) => `com.atproto.repo.getRecord?repo=${did}&collection=${collection}&rkey=${rkey}`,
  'proof of a record': (did) => `com.atproto.sync.getRecord?did=${did}&collection=${collection}&rkey=${rkey}`,
  'listRecords of 100': (did) => `com.atproto.repo.listRecords?repo=${did}&collection=${collection}&limit=100`,
  [`getRepo of ${RECORDS} records`]: (did) => `com.atproto.sync.getRepo?did=${did}`,
}

/** Of a response without a length. */
const END = '0\r\n\r\n'

/** A connection that sends the same request again and again, and costs the client next to nothing. */
class Line {
  #head: Buffer | null = Buffer.alloc(0)
  /** Bytes of a response; null if its end is marked. */
  #size: number | null = null
  #arrived = 0
  #tail = ''
  onAnswer: () => void = () => undefined

  constructor(
    readonly socket: Socket<undefined>,
    readonly request: string,
  ) {}

  static open(port: number, path: string): Promise<Line> {
    const { promise, resolve, reject } = Promise.withResolvers<Line>()
    let line: Line
    void Bun.connect({
      hostname: '127.0.0.1',
      port,
      socket: {
        open(socket) {
          line = new Line(socket, `GET /xrpc/${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n\r\n`)
          resolve(line)
        },
        data: (_, bytes) => line.#take(bytes),
        connectError: (_, error) => reject(error),
      },
    })
    return promise
  }

  send(): void {
    this.socket.write(this.request)
  }

  ask(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.onAnswer = resolve
    this.send()
    return promise
  }

  #take(bytes: Buffer): void {
    if (this.#head !== null && !this.#readHead(bytes)) return
    if (this.#size === null) {
      this.#tail = (this.#tail + bytes.subarray(-END.length).toString('latin1')).slice(-END.length)
      if (this.#tail === END) this.onAnswer()
      return
    }
    this.#arrived += bytes.length
    if (this.#arrived < this.#size) return
    this.#arrived -= this.#size
    this.onAnswer()
  }

  /** The heads of all responses are as long as the first one. Returns whether it is complete. */
  #readHead(bytes: Buffer): boolean {
    const head = (this.#head = Buffer.concat([this.#head!, bytes]))
    const end = head.indexOf('\r\n\r\n')
    if (end < 0) return false
    const text = head.subarray(0, end).toString('latin1')
    if (!text.startsWith('HTTP/1.1 200')) throw new Error(head.toString())
    const [, length] = /content-length: (\d+)/i.exec(text) ?? []
    if (length !== undefined) this.#size = end + 4 + Number(length)
    this.#arrived = head.length - bytes.length
    this.#head = null
    return true
  }
}

interface Server {
  pid: number
  port: number
  did: string
  stop(): Promise<void>
}

async function startServer(readers: 0 | 1): Promise<Server> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-readers-'))
  const port = await freePort()
  const child = Bun.spawn([process.execPath, join(options.server, 'src/main.ts'), 'dev'], {
    cwd: options.server,
    env: {
      ...process.env,
      SERVICE_DATA_DIR: join(folder, 'data'),
      SERVICE_PORT: String(port),
      SERVICE_RATE_LIMIT_ENABLED: 'false',
      SERVICE_SERVER_READERS: String(readers),
      ...publicService,
    },
    stdout: 'ignore',
    stderr: 'inherit',
  })
  const url = `http://127.0.0.1:${port}`
  await until(async () => (await fetch(`${url}/xrpc/_health`).catch(() => null))?.ok === true)
  const { did, call } = await createAccount({ url }, 'alice')
  const value = {
    $type: collection,
    text: 'a post of a usual length, '.repeat(10),
    createdAt: '2026-01-01T00:00:00.000Z',
  }
  const writes = Array.from({ length: RECORDS }, (_, i) => ({
    $type: 'com.atproto.repo.applyWrites#create',
    collection,
    ...(i === 0 && { rkey }),
    value,
  }))
  const { status } = await call('com.atproto.repo.applyWrites', { json: { repo: did, writes } })
  if (status !== 200) throw new Error(`applyWrites returned ${status}`)
  const stop = async () => {
    child.kill('SIGINT')
    await child.exited
    rmSync(folder, { recursive: true })
  }
  return { pid: child.pid, port, did, stop }
}

const ran = (before: Threads, after: Threads, thread: string): number =>
  after.get(thread)!.micros - (before.get(thread)?.micros ?? 0)

/** Connections of a server, by the thread that has them. */
async function linesOf({ pid, port }: Server, path: string, threads: 1 | 2): Promise<Map<string, Line[]>> {
  const lines = new Map<string, Line[]>()
  const full = () => [...lines].filter(([, { length }]) => length >= CONNECTIONS)
  while (full().length < threads) {
    const line = await Line.open(port, path)
    await line.ask()
    const before = threadsOf(pid)
    for (let i = 0; i < TRIAL_REQUESTS; i++) await line.ask()
    const after = threadsOf(pid)
    const candidates = [...after].filter(([, { kind }]) => kind !== 'compilers').map(([thread]) => thread)
    const thread = candidates.reduce((most, one) => (ran(before, after, one) > ran(before, after, most) ? one : most))
    const known = lines.get(thread) ?? []
    lines.set(thread, known)
    if (known.length < CONNECTIONS) known.push(line)
    else line.socket.end()
  }
  // A thread that collects garbage may have run longest for once.
  return new Map(full())
}

/** Some connections of one thread. */
interface Part {
  server: Server
  thread: string
  lines: readonly Line[]
}

/** Sends requests for that long. Returns the microseconds that each thread took for one. */
async function slice(parts: readonly Part[], millis: number): Promise<number[]> {
  const before = parts.map(({ server }) => threadsOf(server.pid))
  const end = performance.now() + millis
  const counts = await Promise.all(
    parts.map(async ({ lines }) => {
      let answers = 0
      await Promise.all(
        lines.map((line) => {
          const { promise, resolve } = Promise.withResolvers<void>()
          line.onAnswer = () => {
            answers++
            if (performance.now() < end) line.send()
            else resolve()
          }
          line.send()
          return promise
        }),
      )
      return answers
    }),
  )
  return parts.map(({ server, thread }, i) => ran(before[i]!, threadsOf(server.pid), thread) / counts[i]!)
}

const median = (values: number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!

const [alone, other, shared] = [await startServer(0), await startServer(0), await startServer(1)]
console.log('| µs for each request | Main alone | Reader alone | Both | 24 and 8 connections | Two servers | Gain |')
console.log('| --- | ---: | ---: | ---: | ---: | ---: | ---: |')
for (const [name, pathOf] of Object.entries(paths)) {
  if (!name.includes(options.only)) continue
  const parts = async (server: Server, threads: 1 | 2): Promise<Part[]> => {
    const found = await linesOf(server, pathOf(server.did), threads)
    return [...found].map(([thread, lines]) => ({ server, thread, lines }))
  }
  const [[first], [second], both] = [await parts(alone, 1), await parts(other, 1), await parts(shared, 2)]
  const main = both.find(({ thread }) => Number(thread) === shared.pid)!
  const reader = both.find((part) => part !== main)!
  const some = (part: Part, count: number) => ({ ...part, lines: part.lines.slice(0, count) })
  const cases = [
    [first!],
    [reader],
    [some(main, CONNECTIONS / 2), some(reader, CONNECTIONS / 2)],
    [some(main, CONNECTIONS * 0.75), some(reader, CONNECTIONS / 4)],
    [some(first!, CONNECTIONS / 2), some(second!, CONNECTIONS / 2)],
  ]
  for (let i = 0; i < WARM_UPS; i++) for (const one of cases) await slice(one, WARM_UP_MILLIS)
  const found: number[][][] = cases.map(() => [])
  for (let round = 0; round < ROUNDS; round++)
    for (const [i, one] of cases.entries()) found[i]!.push(await slice(one, SLICE_MILLIS))
  const costs = found.map((rounds) => rounds[0]!.map((_, part) => median(rounds.map((costs) => costs[part]!))))
  const [[before], , [ofMain, ofReader]] = costs as [[number], [number], [number, number]]
  const gain = before / ofMain + before / ofReader
  const cells = costs.map((each) => each.map((micros) => micros.toFixed(1)).join('; '))
  console.log(`| ${name} | ${cells.join(' | ')} | ×${gain.toFixed(2)} |`)
  for (const { lines } of [first!, second!, ...both]) for (const { socket } of lines) socket.end()
}
for (const server of [alone, other, shared]) await server.stop()
process.exit()
