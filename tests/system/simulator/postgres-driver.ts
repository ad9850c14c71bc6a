/**
 * The driver of PostgreSQL, and the line between a node and the database: connections, pools, what is on its way, and
 * what becomes of it when a line is cut or silent.
 */
import { PostgresServer, type Session, type Settings } from './postgres-server.ts'
import { LineLost, SqlFault, type Answer } from './sql-fault.ts'
import { Queue, type Actor, type Timeline } from './timeline.ts'

/** The way from a node to the database. */
export interface Wire {
  readonly node: Actor
  readonly server: PostgresServer
  readonly timeline: Timeline
  /** Nothing arrives until then, in either direction. */
  silentUntil: number
  /** The longest time that a message takes, in milliseconds. */
  latencyMillis: number
  /** How probable it is that a message is lost, and sent again. */
  lossShare: number
  readonly lines: Set<Line>
}

/** Delivers in the order of sending. */
class Direction {
  readonly #queue: Queue

  constructor(
    readonly wire: Wire,
    readonly to: Actor,
  ) {
    this.#queue = new Queue(wire.timeline)
  }

  /** Nothing arrives until then. */
  stuckUntil = 0

  deliver(act: () => void): void {
    const { timeline, latencyMillis, silentUntil, lossShare } = this.wire
    const again = lossShare > 0 && timeline.happens(lossShare) ? timeline.between(5, 200) : 0
    const from = Math.max(timeline.now, silentUntil, this.stuckUntil) + timeline.between(0.05, latencyMillis) + again
    this.#queue.schedule(from, this.to, act)
  }
}

interface Outstanding {
  resolve(answer: Answer): void
  reject(error: unknown): void
}

const lost = () => new LineLost('ERR_POSTGRES_CONNECTION_CLOSED')

/** One connection. */
export class Line {
  #session: Session | null = null
  #isClosed = false
  readonly #outstanding: Outstanding[] = []
  /** What was asked before the connection was open. */
  readonly #unsent: (() => void)[] = []
  readonly #up: Direction
  readonly #down: Direction
  /** Resolves once it is open. */
  readonly opened: Promise<void>
  #opening = Promise.withResolvers<void>()
  isReserved = false
  readonly channels = new Map<string, (channel: string) => void>()

  constructor(
    readonly wire: Wire,
    readonly settings: Settings,
    readonly hooks: { timeoutMillis: number; onOpen(): void; onClose(): void },
  ) {
    this.#up = new Direction(wire, wire.server.actor)
    this.#down = new Direction(wire, wire.node)
    this.opened = this.#opening.promise
    this.opened.catch(() => undefined)
    wire.lines.add(this)
    this.#up.deliver(() => this.#accepted())
    wire.timeline.schedule(hooks.timeoutMillis, wire.node, () => {
      if (this.#session === null) this.#over('ERR_POSTGRES_CONNECTION_TIMEOUT')
    })
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  get busy(): number {
    return this.#outstanding.length
  }

  #accepted(): void {
    const { server, node } = this.wire
    if (this.#isClosed) return
    if (server.isDown) return this.#down.deliver(() => this.#over('ECONNREFUSED'))
    const session = server.connect(node, this.settings, () => this.#down.deliver(() => this.#over()))
    this.#down.deliver(() => {
      if (this.#isClosed) return this.#up.deliver(() => server.terminate(session))
      this.#session = session
      this.hooks.onOpen()
      for (const send of this.#unsent.splice(0)) send()
      this.#opening.resolve()
    })
    this.#waitingSession = session
  }

  /** The session that the client has not heard of yet. */
  #waitingSession: Session | null = null

  async ask(text: string, values: readonly unknown[]): Promise<Answer> {
    if (this.#isClosed) throw lost()
    const { promise, resolve, reject } = Promise.withResolvers<Answer>()
    this.#outstanding.push({ resolve, reject })
    if (this.#session === null) this.#unsent.push(() => this.#send(text, values))
    else this.#send(text, values)
    return promise
  }

  #send(text: string, values: readonly unknown[]): void {
    const session = this.#session!
    this.#up.deliver(() =>
      this.wire.server.receive(session, {
        text,
        values,
        answer: (answer) => this.#down.deliver(() => this.#answered(answer)),
      }),
    )
  }

  #answered(answer: Answer | SqlFault): void {
    if (this.#isClosed) return
    const { resolve, reject } = this.#outstanding.shift()!
    if (answer instanceof SqlFault) reject(answer)
    else resolve(answer)
  }

  listen(channel: string, act: (channel: string) => void): void {
    const session = this.#session!
    this.#up.deliver(() =>
      session.channels.set(channel, (name) => this.#down.deliver(() => this.#isClosed || act(name))),
    )
  }

  unlisten(channel: string): void {
    const session = this.#session
    if (session !== null) this.#up.deliver(() => void session.channels.delete(channel))
  }

  /** The client learns that the connection is gone. */
  #over(code = 'ERR_POSTGRES_CONNECTION_CLOSED'): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.wire.lines.delete(this)
    this.#opening.reject(new LineLost(code))
    for (const { reject } of this.#outstanding.splice(0)) reject(new LineLost(code))
    this.hooks.onClose()
  }

  /** Both sides learn of it at their own time. What was on its way up may arrive before, or be lost. */
  cut(arrives: boolean): void {
    const { server, timeline, node } = this.wire
    const session = this.#session ?? this.#waitingSession
    if (session !== null) {
      if (arrives) this.#up.deliver(() => server.terminate(session))
      else timeline.schedule(0, server.actor, () => server.terminate(session))
    }
    timeline.schedule(timeline.between(0, 3), node, () => this.#over())
  }

  /** Packets of this connection alone are lost and sent again. */
  delay(millis: number): void {
    const { now } = this.wire.timeline
    this.#up.stuckUntil = now + millis
    this.#down.stuckUntil = now + millis
  }

  /** The database ends the connection, and the client hears nothing for a time. */
  endUnheard(millis: number): void {
    const { server, timeline } = this.wire
    if (this.#session === null) return
    this.#down.stuckUntil = timeline.now + millis
    server.terminate(this.#session)
  }

  /** The client hangs up. */
  close(): void {
    const { server } = this.wire
    const session = this.#session ?? this.#waitingSession
    if (session !== null) this.#up.deliver(() => server.terminate(session))
    this.#over()
  }
}

export interface PoolOptions {
  max: number
  connectionTimeout: number
  connection: Settings
  onconnect?: () => void
  onclose?: () => void
}

/** A pool of connections, with the interface of the runtime's `SQL`. */
class Pool {
  readonly #lines = new Set<Line>()
  readonly #waiting: { take(line: Line): void; reject(error: unknown): void; reserves: boolean }[] = []
  #isClosed = false
  readonly #listeners = new Set<Listener>()

  constructor(
    readonly wire: Wire,
    readonly options: PoolOptions,
  ) {}

  /** `listens`: beside those that the pool counts. */
  #open(listens = false): Line {
    const { connection, connectionTimeout, onconnect, onclose } = this.options
    const line: Line = new Line(this.wire, connection, {
      timeoutMillis: connectionTimeout * 1000,
      onOpen: () => onconnect?.(),
      onClose: () => {
        this.#lines.delete(line)
        onclose?.()
        this.#serve()
      },
    })
    if (!listens) this.#lines.add(line)
    return line
  }

  #free(): Line | null {
    let best: Line | null = null
    for (const line of this.#lines) if (!line.isReserved && (best === null || line.busy < best.busy)) best = line
    if ((best === null || best.busy > 0) && this.#lines.size < this.options.max) return this.#open()
    return best
  }

  #serve(): void {
    while (this.#waiting.length > 0) {
      const line = this.#free()
      if (line === null) return
      const next = this.#waiting.shift()!
      if (next.reserves) line.isReserved = true
      next.take(line)
    }
  }

  #line(reserves: boolean): Promise<Line> {
    const { promise, resolve, reject } = Promise.withResolvers<Line>()
    if (this.#isClosed) reject(lost())
    else {
      this.#waiting.push({ take: resolve, reject, reserves })
      this.#serve()
    }
    return promise
  }

  async ask(text: string, values: readonly unknown[] = []): Promise<Answer> {
    const line = await this.#line(false)
    return line.ask(text, values)
  }

  async reserve(): Promise<unknown> {
    const line = await this.#line(true)
    try {
      await line.opened
    } catch (error) {
      line.isReserved = false
      throw error
    }
    return tagged((text, values) => line.ask(text, values), {
      array: listed,
      release: () => {
        line.isReserved = false
        this.#serve()
      },
    })
  }

  async listen(channel: string, act: (channel: string) => void, onListen: () => void): Promise<Listener> {
    const listener = new Listener(() => this.#open(true), this.wire, channel, act, onListen)
    this.#listeners.add(listener)
    await listener.start()
    return listener
  }

  close({ timeout }: { timeout: number }): Promise<void> {
    this.#isClosed = true
    for (const { reject } of this.#waiting.splice(0)) reject(lost())
    for (const listener of this.#listeners) listener.end()
    const end = () => {
      for (const line of this.#lines) line.close()
    }
    if (timeout === 0 || [...this.#lines].every(({ busy }) => busy === 0)) {
      end()
      return Promise.resolve()
    }
    return new Promise((resolve) => {
      this.wire.timeline.schedule(timeout * 1000, this.wire.node, () => {
        end()
        resolve()
      })
    })
  }
}

/** Between tries of the driver to open a connection again on which it listens. */
const REOPEN_MILLIS = 500

class Listener {
  #line: Line | null = null
  #isOver = false

  constructor(
    readonly open: () => Line,
    readonly wire: Wire,
    readonly channel: string,
    readonly act: (channel: string) => void,
    readonly onListen: () => void,
  ) {}

  async start(): Promise<void> {
    const line = this.open()
    line.isReserved = true
    await line.opened
    if (this.#isOver) return line.close()
    this.#line = line
    line.listen(this.channel, this.act)
    this.onListen()
    this.#watch(line)
  }

  #watch(line: Line): void {
    this.wire.timeline.schedule(REOPEN_MILLIS, this.wire.node, () => {
      if (this.#isOver) return
      if (!line.isClosed) return this.#watch(line)
      this.start().catch(() => this.#watch(line))
    })
  }

  end(): void {
    this.#isOver = true
    this.#line?.close()
  }

  async unlisten(): Promise<void> {
    this.end()
  }
}

const listed = (values: unknown[]): unknown[] => values

type Ask = (text: string, values: readonly unknown[]) => Promise<Answer>

/** A function that takes templates, with the rest of the interface as its members. */
const tagged = (ask: Ask, members: object): unknown =>
  Object.assign((texts: TemplateStringsArray) => ask(texts[0]!, []), {
    unsafe: (text: string, values: unknown[] = []) => ask(text, values),
    ...members,
  })

export function poolOn(wire: Wire, options: PoolOptions): unknown {
  const pool = new Pool(wire, options)
  return tagged((text, values) => pool.ask(text, values), {
    array: listed,
    reserve: () => pool.reserve(),
    listen: (channel: string, act: () => void, onListen: () => void) => pool.listen(channel, act, onListen),
    close: (how: { timeout: number }) => pool.close(how),
  })
}
