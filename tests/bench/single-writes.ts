/**
 * How long a createRecord takes that is alone, and what its slowest percent waits for. Linux only.
 *
 *     bun tests/bench/single-writes.ts [--requests 5000] [--warm-up 20000] [--rounds 2] [--memory FOLDER]
 *
 * One account writes one record after another. The client is a process of its own that makes no garbage, and looks at
 * the threads of both between two requests: how long each has run, and how long it was ready to run while processors
 * did something else. The server is measured as it is, without collections of garbage, and with its files in memory.
 * The disk alone writes and flushes what the log of such a commit does.
 *
 * The runtime goes on compiling for 20,000 requests. Other work on the machine shows as time that threads were ready.
 */
import {
  closeSync,
  fdatasync,
  fstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { createAccount, type TestAccount } from '../support/clients/account.ts'
import { publicService } from '../support/request-cost.ts'
import { startProgram } from '../support/servers/program.ts'

const { values: options } = parseArgs({
  options: {
    requests: { type: 'string', default: '5000' },
    'warm-up': { type: 'string', default: '20000' },
    rounds: { type: 'string', default: '2' },
    memory: { type: 'string', default: '/dev/shm' },
  },
})
const REQUESTS = Number(options.requests)
const ROUNDS = Number(options.rounds)
const WARM_UP = Number(options['warm-up'])
/** Of a commit alone. Each page has a head, which is written by itself. */
const PAGES = 6
const HEAD_BYTES = 24
const PAGE_BYTES = 4096
/** What the log is made longer by before it is written: see `platform/database/wal.ts`. */
const STEP_BYTES = 512 * 1024
const collection = 'app.bsky.feed.post'

/** What the threads of one name did during a request, in milliseconds. */
interface Doings {
  ran: number
  /** Ready to run, but did not. */
  waited: number
}

interface Request {
  millis: number
  threads: Map<string, Doings>
}

/** Tells what the threads of processes did between two looks. */
class Threads {
  readonly #before = new Map<string, Doings & { name: string }>()

  constructor(readonly processes: readonly { pid: number; name: string }[]) {}

  look(): Map<string, Doings> {
    const since = new Map<string, Doings>()
    for (const process of this.processes) {
      for (const thread of readdirSync(`/proc/${process.pid}/task`)) {
        const task = `/proc/${process.pid}/task/${thread}`
        const [ran = 0, waited = 0] = textOf(`${task}/schedstat`)
          .split(' ', 2)
          .map((nanos) => Number(nanos) / 1e6)
        const kind = () => (Number(thread) === process.pid ? 'main thread' : textOf(`${task}/comm`).trim())
        const before = this.#before.get(task) ?? { ran, waited, name: `${process.name}, ${kind()}` }
        const all = since.get(before.name) ?? { ran: 0, waited: 0 }
        since.set(before.name, { ran: all.ran + ran - before.ran, waited: all.waited + waited - before.waited })
        this.#before.set(task, { ran, waited, name: before.name })
      }
    }
    return since
  }
}

/** Empty if the thread has ended. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code!)) return ''
    throw error
  }
}

/** Writes records one after another. The connection is a bare socket: another client would have garbage of its own. */
function write(
  url: URL,
  { did, accessJwt }: TestAccount,
  count: number,
  onAnswer: (millis: number) => void,
): Promise<void> {
  const record = {
    $type: collection,
    text: 'a post of a usual length, '.repeat(10),
    createdAt: new Date().toISOString(),
  }
  const body = JSON.stringify({ repo: did, collection, record })
  const head = [
    'POST /xrpc/com.atproto.repo.createRecord HTTP/1.1',
    `Host: ${url.host}`,
    `Authorization: Bearer ${accessJwt}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ]
  const request = Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let left = count
  let sentAt = 0
  const connection = Bun.connect({
    hostname: url.hostname,
    port: Number(url.port),
    socket: {
      open(socket) {
        sentAt = performance.now()
        socket.write(request)
      },
      data(socket, answer) {
        const millis = performance.now() - sentAt
        if (!answer.toString('latin1').startsWith('HTTP/1.1 200 ')) return reject(new Error(answer.toString()))
        onAnswer(millis)
        if (--left === 0) {
          socket.end()
          return resolve()
        }
        sentAt = performance.now()
        socket.write(request)
      },
      error: (_, error) => reject(error),
    },
  })
  connection.catch(reject)
  return promise
}

/** Calls `onAnswer` once a server that has been used for a while has answered a request. */
async function measureServer(
  parent: string,
  env: Record<string, string>,
  begin: (pid: number) => (millis: number) => void,
): Promise<void> {
  const folder = mkdtempSync(join(parent, 'holdfast-single-'))
  try {
    const settings = { SERVICE_DATA_DIR: folder, SERVICE_PORT: '0', SERVICE_RATE_LIMIT_ENABLED: 'false' }
    await using server = await startProgram(['dev'], { ...settings, ...publicService, ...env }, folder)
    const account = await createAccount(server, 'writer')
    const url = new URL(server.url)
    await write(url, account, WARM_UP, () => {})
    await write(url, account, REQUESTS, begin(server.pid))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Milliseconds of each request, in order. */
async function timesOf(parent: string, env: Record<string, string> = {}): Promise<number[]> {
  const times: number[] = []
  await measureServer(parent, env, () => (millis) => times.push(millis))
  return times.toSorted((a, b) => a - b)
}

/** Milliseconds that the disk takes for the log of a commit, in order. */
async function measureDisk(): Promise<number[]> {
  const flush = promisify(fdatasync)
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-single-'))
  const file = openSync(join(folder, 'log'), 'w')
  const [head, page, step] = [HEAD_BYTES, PAGE_BYTES, STEP_BYTES].map((bytes) => new Uint8Array(bytes).fill(1))
  const millis: number[] = []
  try {
    for (let i = 0, at = 0; i < REQUESTS; i++) {
      const { size } = fstatSync(file)
      if (at + STEP_BYTES / 2 > size) writeSync(file, step!, 0, STEP_BYTES, size)
      const startedAt = performance.now()
      for (let written = 0; written < PAGES; written++) {
        at += writeSync(file, head!, 0, HEAD_BYTES, at)
        at += writeSync(file, page!, 0, PAGE_BYTES, at)
      }
      await flush(file)
      millis.push(performance.now() - startedAt)
    }
  } finally {
    closeSync(file)
    rmSync(folder, { recursive: true })
  }
  return millis.toSorted((a, b) => a - b)
}

const shares = [0.5, 0.9, 0.99, 0.999]

function printTimes(what: string, sorted: readonly number[]): void {
  const at = (share: number) => sorted[Math.floor(share * sorted.length)]!.toFixed(2)
  console.log(`| ${what} | ${shares.map(at).join(' | ')} |`)
}

/** Prints means of what threads did, by name; those that did next to nothing are left out. */
async function printThreads(): Promise<void> {
  const requests: Request[] = []
  await measureServer(tmpdir(), {}, (pid) => {
    const threads = new Threads([
      { pid: process.pid, name: 'client' },
      { pid, name: 'server' },
    ])
    threads.look()
    return (millis) => requests.push({ millis, threads: threads.look() })
  })
  requests.sort((a, b) => a.millis - b.millis)
  const parts = [requests.slice(REQUESTS / 4, (3 * REQUESTS) / 4), requests.slice(-REQUESTS / 100)]
  console.log(
    '\n| ms, means | of the middle half: ran | was ready | of the slowest percent: ran | was ready |\n| --- | ---: | ---: | ---: | ---: |',
  )
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  console.log(
    `| the request | ${parts.map((part) => `${mean(part.map(({ millis }) => millis)).toFixed(2)} | `).join(' | ')} |`,
  )
  for (const name of new Set(requests.flatMap(({ threads }) => [...threads.keys()]))) {
    const figures = parts.flatMap((part) =>
      (['ran', 'waited'] as const).map((what) => mean(part.map(({ threads }) => threads.get(name)?.[what] ?? 0))),
    )
    if (Math.max(...figures) >= 0.05)
      console.log(`| ${name} | ${figures.map((millis) => millis.toFixed(2)).join(' | ')} |`)
  }
}

console.log(
  `| createRecord, one at a time, ms | ${shares.map((share) => `${share * 100}%`).join(' | ')} |\n| --- |${' ---: |'.repeat(shares.length)}`,
)
const noCollections = { BUN_JSC_gcMaxHeapSize: String(4 * 1024 ** 3), BUN_GC_TIMER_DISABLE: '1' }
for (let round = 0; round < ROUNDS; round++) {
  printTimes('server', await timesOf(tmpdir()))
  printTimes('the disk alone', await measureDisk())
  printTimes('server that collects no garbage', await timesOf(tmpdir(), noCollections))
  printTimes('server with its files in memory', await timesOf(options.memory))
}
await printThreads()
process.exit()
