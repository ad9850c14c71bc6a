/**
 * Reader threads: they share the port of the main thread, which answers what they cannot. A thread that fails is
 * replaced, and its connections end.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { inTime } from '../base/in-time.ts'
import type { Context } from '../platform/context.ts'
import { CommitBoard } from '../platform/readers/commit-board.ts'
import {
  ReaderCounts,
  readerConfigOf,
  type FromReader,
  type ReaderStart,
  type ToReader,
} from '../platform/readers/reader-messages.ts'
import { SharedSlots } from '../platform/readers/shared-windows.ts'
import type { Dispatcher } from './dispatcher.ts'
import { ForwardedRequests } from './forwarded-requests.ts'
import type { ForwardMessage } from './thread-messages.ts'

/** Until a thread that has failed is replaced. */
const REPLACE_MILLIS = 1000

interface Ports {
  ctx: Context
  dispatcher: Dispatcher
  count: number
  /** Where the main thread listens. */
  hostname: string
  port: number
  databasePath: string
  /** Names of the endpoints that threads answer, in metrics. */
  routes: readonly string[]
  spawn(): Worker
  passed: SharedArrayBuffer | null
}

export class ReaderThreads {
  readonly #board: CommitBoard
  readonly #slots = new SharedSlots()
  readonly #counts: ReaderCounts[]
  readonly #threads: (ReaderThread | null)[] = []
  readonly #endConfig: () => void
  #isStopping = false
  #forwarded = 0

  private constructor(readonly ports: Ports) {
    const { ctx, count, routes } = ports
    this.#board = new CommitBoard(count)
    this.#counts = Array.from({ length: count }, () => new ReaderCounts(routes))
    ctx.limits.slots = this.#slots
    ctx.metrics.answeredElsewhere(() => this.#counts.flatMap((counts) => [...counts.all()]))
    ctx.metrics.gauge(
      'reader_threads',
      'Threads that answer public reads beside the main thread',
      () => this.#threads.filter((thread) => thread !== null).length,
    )
    ctx.metrics.gauge('reader_forwards_running', 'Requests that reader threads have passed on to the main thread', () =>
      this.#threads.reduce((sum, thread) => sum + (thread?.requests.running ?? 0), 0),
    )
    ctx.metrics.counter('reader_requests_total', 'Requests that came to reader threads', 'outcome', () => [
      ['answered', this.#counts.flatMap((counts) => [...counts.all()]).reduce((sum, { count }) => sum + count, 0)],
      ['forwarded', this.#forwarded],
    ])
    this.#endConfig = ctx.live.changed.subscribe(() => {
      for (const thread of this.#threads) thread?.post({ type: 'config', config: readerConfigOf(ctx.config) })
    })
  }

  /** Start them. Resolves when all of them serve. */
  static async start(ports: Ports): Promise<ReaderThreads> {
    const threads = new ReaderThreads(ports)
    await ports.ctx.db.threads!.notify(threads.#board)
    await Promise.all(Array.from({ length: ports.count }, (_, index) => threads.#begin(index)))
    return threads
  }

  async #begin(index: number): Promise<void> {
    const { ctx, dispatcher, count, hostname, port, databasePath, spawn, passed } = this.ports
    const start = (): ReaderStart => ({
      index,
      databasePath,
      hostname,
      port,
      config: readerConfigOf(ctx.config),
      board: this.#board.shared,
      readers: count,
      slots: this.#slots.shared,
      counts: this.#counts[index]!.shared,
      monotonic: ctx.clock.monotonic(),
      logsRequests: ctx.log.writes('debug'),
      passed,
    })
    const thread = new ReaderThread(spawn(), ctx, this.#counting(dispatcher), start)
    this.#threads[index] = thread
    const replaced = thread.failed.then((error) => this.#replace(index, error))
    replaced.catch((error: unknown) => ctx.log.error('could not replace a reader thread', { error }))
    await Promise.race([thread.serving, thread.failed])
  }

  #counting({ dispatch }: Dispatcher): Pick<Dispatcher, 'dispatch'> {
    return {
      dispatch: (request, peer) => {
        this.#forwarded++
        return dispatch(request, peer)
      },
    }
  }

  async #replace(index: number, error: unknown): Promise<void> {
    this.#threads[index] = null
    // Otherwise, writers would wait for this thread to leave the log.
    this.#board.leave(index)
    if (this.#isStopping) return
    this.ports.ctx.log.error('reader thread failed', { error })
    await pause(REPLACE_MILLIS, undefined, { ref: false })
    if (!this.#isStopping) await this.#begin(index)
  }

  /** As in `Listener`. */
  async stop(graceMillis: number): Promise<void> {
    this.#isStopping = true
    this.#endConfig()
    await Promise.all(this.#threads.map((thread) => thread?.stop(graceMillis)))
    await this.ports.ctx.db.threads!.notify(null)
  }
}

class ReaderThread {
  readonly #worker: Worker
  readonly requests: ForwardedRequests
  readonly #serving = Promise.withResolvers<void>()
  readonly #failed = Promise.withResolvers<unknown>()
  readonly #stopped = Promise.withResolvers<void>()

  constructor(
    worker: Worker,
    { log }: Pick<Context, 'log'>,
    dispatcher: Pick<Dispatcher, 'dispatch'>,
    readonly start: () => ReaderStart,
  ) {
    this.#worker = worker
    this.requests = new ForwardedRequests(dispatcher, (message) => worker.postMessage(message))
    worker.onmessage = ({ data }: MessageEvent<FromReader | ForwardMessage>) => {
      switch (data.type) {
        case 'ready':
          return this.post({ type: 'serve', start: this.start() })
        case 'serving':
          return this.#serving.resolve()
        case 'stopped':
          return this.#stopped.resolve()
        case 'failed':
          return this.#fail(data.error)
        case 'log':
          return log[data.level](data.message, data.fields)
        default:
          return this.requests.receive(data)
      }
    }
    worker.onerror = (event) => this.#fail(event.error ?? event.message)
    // A thread may also end without an error.
    worker.addEventListener('close', () => this.#fail(new Error('the thread has ended')))
  }

  get serving(): Promise<void> {
    return this.#serving.promise
  }

  /** Resolves if the thread fails. */
  get failed(): Promise<unknown> {
    return this.#failed.promise
  }

  post(message: ToReader): void {
    this.#worker.postMessage(message)
  }

  #fail(error: unknown): void {
    this.#worker.terminate()
    this.requests.end()
    this.#stopped.resolve()
    this.#failed.resolve(error)
  }

  async stop(graceMillis: number): Promise<void> {
    this.post({ type: 'stop' })
    await inTime(this.#stopped.promise, graceMillis)
    this.#worker.terminate()
    this.requests.end()
  }
}
