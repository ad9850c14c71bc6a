/**
 * A reader thread: it shares the port with the main thread, and answers public reads from a connection to the database
 * of its own. `http/reader-edge.ts` says what it leaves to the main thread.
 */
import { createReaderEdge } from './http/reader-edge.ts'
import { endpointRoute } from './http/endpoint.ts'
import { Forwarding } from './http/forwarding.ts'
import { openHttpServer, type HttpServer } from './http/http-server.ts'
import { unsentFile } from './http/reply.ts'
import type { AnswerMessage } from './http/thread-messages.ts'
import type { Config } from './platform/configuration/config.ts'
import type { Context } from './platform/context.ts'
import { onlyHere, ReaderDatabase } from './platform/database/reader-database.ts'
import { CommitBoard } from './platform/readers/commit-board.ts'
import {
  ReaderCounts,
  type FromReader,
  type ReaderConfig,
  type ReaderStart,
  type ToReader,
} from './platform/readers/reader-messages.ts'
import { readingContext } from './platform/readers/reading-context.ts'
import { SharedSlots } from './platform/readers/shared-windows.ts'
import type { Clock } from './platform/running/clock.ts'
import { Limits } from './platform/running/limits.ts'
import type { Log } from './platform/running/log.ts'
import { readerEndpoints } from './reader-endpoints.ts'

declare const self: Worker

/** RFC 6455, 7.4.1: going away. */
const GOING_AWAY = 1001

const post = (message: FromReader) => self.postMessage(message)
const forwarding = new Forwarding((message) => self.postMessage(message))

let config: Config | null = null
let server: HttpServer | null = null
let db: ReaderDatabase | null = null

function setConfig({ blobs, ...others }: ReaderConfig): void {
  config = onlyHere<Config>('config', { ...others, blobs: onlyHere<Config['blobs']>('blobs', blobs) })
}

const lineOf =
  (level: 'debug' | 'info' | 'warn' | 'error'): Log['info'] =>
  (message, fields = {}) => {
    const { error, ...others } = fields
    // An error of a class of its own cannot be sent.
    post({ type: 'log', level, message, fields: error instanceof Error ? { ...others, error: error.stack } : fields })
  }

const log: Log = {
  debug: lineOf('debug'),
  info: lineOf('info'),
  warn: lineOf('warn'),
  error: lineOf('error'),
  // What is not written is thrown away by the main thread.
  writes: () => true,
}

function clockOf({ monotonic, passed }: ReaderStart): Clock {
  const moved = passed === null ? null : new Float64Array(passed)
  const passedHere = () => moved?.[0] ?? 0
  const ahead = monotonic - performance.now() - passedHere()
  return {
    now: () => Date.now() + passedHere(),
    monotonic: () => performance.now() + ahead + passedHere(),
  }
}

/** What the handlers of the endpoints use of a context. */
function contextOf(start: ReaderStart, db: ReaderDatabase): Context {
  const clock = clockOf(start)
  const limits = new Limits(
    {
      get rateLimit() {
        return config!.rateLimit
      },
    },
    clock,
  )
  limits.slots = new SharedSlots(start.slots)
  return readingContext({
    get config() {
      return config!
    },
    db: db.asDatabase(),
    clock,
    log,
    limits,
  })
}

function serve(start: ReaderStart): void {
  setConfig(start.config)
  const reading = new ReaderDatabase(start.databasePath, new CommitBoard(start.readers, start.board), start.index)
  db = reading
  // One that cannot follow would keep the log from starting over: it is replaced.
  reading.follow().catch((error: unknown) => post({ type: 'failed', error }))
  const counts = new ReaderCounts(readerEndpoints.map(endpointRoute), start.counts)
  const ctx = contextOf(start, reading)
  const edge = createReaderEdge({
    ctx,
    endpoints: readerEndpoints,
    isCurrent: () => reading.isCurrent(),
    forward: (request, peer) => forwarding.answer(request, peer),
    chargesAgain: true,
    answered: (route, status) => counts.add(route, status),
    logsRequests: start.logsRequests,
  })
  server = openHttpServer(
    { ...edge, unsent: (error) => unsentFile(ctx, error) },
    { hostname: start.hostname, port: start.port, reusePort: true },
  )
}

async function stop(): Promise<void> {
  const retired = server?.retire()
  server?.closeSockets(GOING_AWAY, 'server is shutting down')
  await retired
  // A connection that is not closed would leave its locks on the log.
  db?.close()
  post({ type: 'stopped' })
}

// An error outside requests ends neither the thread nor its connections.
process.on('uncaughtException', (error) => log.error('uncaught exception', { error }))
process.on('unhandledRejection', (error) => log.error('unhandled rejection', { error }))

self.onmessage = ({ data }: MessageEvent<ToReader | AnswerMessage>) => {
  switch (data.type) {
    case 'serve':
      try {
        serve(data.start)
        return post({ type: 'serving' })
      } catch (error) {
        return post({ type: 'failed', error })
      }
    case 'config':
      return setConfig(data.config)
    case 'stop':
      return void stop()
    default:
      return forwarding.receive(data)
  }
}

post({ type: 'ready' })
