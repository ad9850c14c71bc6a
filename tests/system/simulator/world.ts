/**
 * A world: nodes that run the real server, a database, clients and a relay, and the faults that befall them. `run` lets
 * it go by and says what it came to.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Database } from 'bun:sqlite'
import { startApp, type App } from '../../../src/app.ts'
import type { Dispatcher } from '../../../src/http/dispatcher.ts'
import type { SocketHandler } from '../../../src/http/endpoint.ts'
import type { Peer } from '../../../src/http/peer.ts'
import { migrations } from '../../../src/platform/database/embedded-migrations.ts'
import { statementsIn } from '../../../src/platform/database/migrations.ts'
import type { Config } from '../../../src/platform/configuration/config.ts'
import { createLog } from '../../../src/platform/running/log.ts'
import { wireTime } from '../../../src/protocol/identifiers.ts'
import { formatDidKey, parseMultikey, signingKey, type PublicKey } from '../../../src/protocol/keys.ts'
import type { AuditEntry, LogOperation } from '../../../src/protocol/plc.ts'
import { MASTER_KEY, testConfig } from '../../support/servers/config.ts'
import { AppSessions } from './apps.ts'
import { Blobs, configOfBlobs } from './blobs.ts'
import type { SimulatedBucket } from './bucket.ts'
import { Client, type Holder } from './clients.ts'
import { SimulatedDirectory } from './directory.ts'
import { Disk } from './disk.ts'
import { faultsOf, longestOutage } from './faults.ts'
import { poolOn, type PoolOptions, type Wire } from './postgres-driver.ts'
import { PostgresServer } from './postgres-server.ts'
import { closeLeft } from './files.ts'
import type { Kind, Mood } from './moods.ts'
import { configOfPair, Pair } from './pair.ts'
import { Relay } from './relay.ts'
import { held, inTurn, wallMillis } from './seams.ts'
import { Sessions } from './sessions.ts'
import { Spaces } from './spaces.ts'
import { observe, Storage } from './storage.ts'
import { actorNamed, Timeline, type Actor } from './timeline.ts'
import { Watch } from './watch.ts'

export const URL_OF_SERVICE = 'http://localhost:2583'
export const HEADERS = { host: 'localhost:2583', 'content-type': 'application/json' }

/** Longest time that nodes may take to start, and that all may take to come to rest, in virtual milliseconds. */
const START_MILLIS = 30_000
const LOOK_MILLIS = 5
const REST_MILLIS = 120_000
/** By then, what was left at the directory is swept up. */
const SWEPT_MILLIS = 1_300_000
/** By then, others have what a dead node was at work on. */
const TAKEN_OVER_MILLIS = 45_000
const LONG_SHARE = 1 / 16
const LONG_MILLIS = 20_000
/** How long clients and faults act on two machines, which take seconds to take over, and the pace of that. */
const PAIR_MILLIS = 14_000
const PAIR_TEMPO_MILLIS = 700
/** Longest time of an operation on a file, unless the disk is slow. */
const PAIR_FILE_MILLIS = 1
/** How probable it is that the machine that serves at the end is gone for good. */
const BURN_SHARE = 0.5

/** What all worlds of a process begin with: a migrated database with some accounts. */
export interface Ground {
  storage: Storage
  holders: Holder[]
  dir: string
  /** Virtual time that has gone by. */
  now: number
  /** By the name of the node. */
  configs: Map<string, Config>
  /** The same for worlds of one server on SQLite. */
  file: { bytes: Uint8Array; holders: Holder[] } | null
  nextEventId: number
}

/** The answer to a request, or null if the client never gets one. */
export type Reply = { status: number; body: Record<string, unknown>; headers: Headers } | null

export interface Ask {
  path: string
  /** Null for a procedure without a body; missing for a query. */
  json?: object | null
  /** What a procedure gets instead. */
  content?: { bytes: Uint8Array; mimeType: string }
  token?: string
  headers?: Readonly<Record<string, string>>
}

export class Node {
  actor: Actor
  wire: Wire
  app: App | null = null
  #dispatcher: Dispatcher | null = null
  /** What clients wait for. */
  readonly #waiting = new Set<(reply: Reply) => void>()
  readonly sockets = new Set<{ lose(): void }>()
  starts = 0
  isLeaving = false
  /** Called once its server has started. */
  onceUp: () => void = () => {}

  constructor(
    readonly world: World,
    readonly name: string,
  ) {
    this.actor = actorNamed(name)
    this.wire = this.#wire()
  }

  #wire(): Wire {
    const { server, timeline } = this.world
    return {
      node: this.actor,
      server,
      timeline,
      silentUntil: 0,
      latencyMillis: this.world.options.mood?.latencyMillis ?? 1.5,
      lossShare: this.world.options.mood?.lossShare ?? 0,
      lines: new Set(),
    }
  }

  get isUp(): boolean {
    return this.#dispatcher !== null && !this.actor.isDead
  }

  /** A new process. */
  start(): void {
    const { world } = this
    const skewMillis = this.actor.skewMillis
    this.actor = actorNamed(this.name)
    this.actor.skewMillis = skewMillis
    this.wire = this.#wire()
    this.app = null
    this.#dispatcher = null
    this.isLeaving = false
    this.starts++
    world.wires.set(this.actor, this.wire)
    world.note(this.name, `starts${this.starts > 1 ? ' again' : ''}`)
    world.timeline.schedule(0, this.actor, () => this.#begin(null))
  }

  /** Starts the server, as the command does: again within the process if it may no longer use the database. */
  #begin(former: App | null): void {
    const { world, actor } = this
    this.app = null
    this.#dispatcher = null
    this.lose()
    void (former?.stop() ?? Promise.resolve()).then(() => {
      const overrides = world.overridesOf(this, (dispatcher) => (this.#dispatcher = dispatcher))
      const config = world.configOf(this)
      const mayStart = world.pair?.untilServing(this, config) ?? Promise.resolve()
      mayStart
        .then(() => startApp(config, { ...overrides, sent: former?.sent }))
        .then(
          (app) => {
            this.app = app
            world.note(this.name, `is up, with clock id ${app.ctx.db.cluster?.clockId ?? 'of its own'}`)
            world.watch.requireOwnClockId(this)
            this.onceUp()
            world.pair?.began(this)
            const gaveUp = () => {
              const { message } = app.ended.reason as Error
              world.note(this.name, `gives up: ${message.slice(0, 120)}`)
              world.watch.requireLoss(this, app.ended.reason)
              world.pair?.gaveUp(this, message)
              if (world.pair === null) this.#begin(app)
              else this.stop(1000)
            }
            if (app.ended.aborted) gaveUp()
            else app.ended.addEventListener('abort', gaveUp)
          },
          (error: Error) => {
            if (actor !== this.actor || actor.isDead) return
            world.note(this.name, `cannot start: ${error.message.slice(0, 160)}`)
            world.watch.requireLoss(this, error)
            world.pair?.gaveUp(this, error.message)
            this.restart(1000, world.pair === null ? 'killed' : 'stopped')
          },
        )
    })
  }

  /** The process ends as it should, and another one begins. */
  stop(waitMillis: number): void {
    const { app, actor } = this
    if (app === null || this.isLeaving) return
    this.isLeaving = true
    const stop = async () => {
      await app.stop()
      if (actor === this.actor && !actor.isDead) this.restart(waitMillis, 'stopped')
    }
    this.world.timeline.schedule(0, actor, () => void stop())
  }

  /** The process ends here and now, and another one begins. */
  restart(waitMillis: number, how: 'killed' | 'without power' | 'stopped' = 'killed'): void {
    const { world } = this
    if (!this.actor.isDead) {
      this.kill()
      const disk = world.diskOf(this)
      if (how !== 'stopped') disk?.restart(how === 'killed')
      if (how === 'without power') world.blobs?.folderOf(this)?.cut()
      // A machine that follows has put its database aside.
      if (disk !== null && disk === world.disk && (world.pair === null || this.app !== null))
        world.watch.requireReceived()
    }
    world.timeline.schedule(waitMillis, world.fate, () => {
      if (this.actor.isDead && world.pair?.lost !== this) this.start()
    })
  }

  kill(): void {
    const { timeline } = this.world
    if (this.actor.isDead) return
    this.actor.isDead = true
    for (const line of this.wire.lines) line.cut(timeline.happens(0.5))
    this.lose()
    this.world.pair?.ended(this)
    this.onceUp = () => {}
  }

  /** Clients and subscribers lose their connections. */
  lose(): void {
    for (const resolve of this.#waiting) resolve(null)
    this.#waiting.clear()
    for (const socket of this.sockets) socket.lose()
    this.sockets.clear()
  }

  /** A request on its way from a client, and its answer. */
  ask(client: Actor, ask: Ask, resolve: (reply: Reply) => void): void {
    const { timeline } = this.world
    const { actor } = this
    let isOver = false
    const end = (reply: Reply) => {
      if (isOver) return
      isOver = true
      this.#waiting.delete(lost)
      timeline.schedule(timeline.between(0.1, 3), client, () => resolve(reply))
    }
    const lost = () => end(null)
    this.#waiting.add(lost)
    timeline.schedule(timeline.between(0.1, 3), actor, () => {
      const dispatcher = this.#dispatcher
      if (dispatcher === null || actor !== this.actor) return lost()
      const { json, content = json == null ? undefined : contentOf(json), token } = ask
      const request = new Request(`${URL_OF_SERVICE}${ask.path}`, {
        method: json === undefined && content === undefined ? 'GET' : 'POST',
        headers: {
          ...HEADERS,
          ...(content !== undefined && {
            'content-length': String(content.bytes.length),
            'content-type': content.mimeType,
          }),
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
          ...ask.headers,
        },
        ...(content !== undefined && { body: content.bytes }),
      })
      void dispatcher.dispatch(request, peer).then(async (response) => {
        const answered = await response.text()
        const isJson = /\bjson\b/.test(response.headers.get('content-type') ?? '')
        const { status, headers } = response
        end({ status, headers, body: isJson ? JSON.parse(answered) : { message: answered } })
      })
    })
    if (this.actor.isDead) lost()
  }

  /** Opens the event stream. */
  subscribe(cursor: number | null, open: (handler: SocketHandler) => void, refused: () => void): void {
    const { timeline } = this.world
    const { actor } = this
    timeline.schedule(timeline.between(0.1, 3), actor, () => {
      if (this.#dispatcher === null) return refused()
      const path = `/xrpc/com.atproto.sync.subscribeRepos${cursor === null ? '' : `?cursor=${cursor}`}`
      const request = new Request(`${URL_OF_SERVICE}${path}`, { headers: { ...HEADERS, upgrade: 'websocket' } })
      const upgrading: Peer = {
        ...peer,
        upgrade: (_, handler) => {
          open(handler)
          return true
        },
      }
      void this.#dispatcher.dispatch(request, upgrading).then((response) => {
        if (response.status >= 400) refused()
      })
    })
  }
}

const peer: Peer = { addressOf: () => '10.0.0.1', isDirect: true, mayIdle() {}, upgrade: () => false }

const contentOf = (json: object) => ({
  bytes: Buffer.from(JSON.stringify(json)),
  mimeType: 'application/json',
})

export interface Mail {
  id: string
  to: string
  text: string
  at: number
  node: string
}

export interface WorldOptions extends Omit<Kind, 'name'> {
  clients: number
  /** How long clients and faults act, in virtual milliseconds. */
  millis: number
}

export interface Outcome {
  seed: number
  failure: string | null
  trace: string[]
  events: number
  /** Virtual milliseconds that went by. */
  millis: number
  acknowledged: number
  /** Requests whose outcome the client never learned. */
  unknown: number
  refused: number
  numbered: number
  faults: string[]
}

/** The part of the log that a trace shows. */
const shown = /^(?:database_history|could|another|lease)/

export class World {
  readonly timeline: Timeline
  readonly fate = actorNamed('fate')
  readonly server: PostgresServer
  /** Of servers on SQLite, in the order of nodes. */
  readonly disks: readonly Disk[]
  readonly pair: Pair | null
  /** Null in worlds without. */
  readonly blobs: Blobs | null
  readonly spaces: Spaces | null
  /** Null if servers have the one inside of them. */
  readonly directory: SimulatedDirectory | null
  readonly wires = new Map<Actor, Wire>()
  readonly nodes: Node[]
  readonly clients: Client[]
  readonly relay: Relay
  readonly watch: Watch
  readonly sessions: Sessions
  /** Null in worlds without. */
  readonly apps: AppSessions | null
  readonly mails: Mail[] = []
  readonly befallen: string[] = []
  readonly isLong: boolean
  /** How long clients and faults act. */
  readonly millis: number
  /** Longest time that a client waits between two of its doings. */
  readonly tempoMillis: number
  failure: string | null = null
  readonly #trace: { at: number; who: string; what: string }[] = []
  isEnding = false
  /** Clients pause until then. */
  quietUntil = 0

  constructor(
    readonly ground: Ground,
    readonly seed: number,
    readonly options: WorldOptions,
  ) {
    this.timeline = new Timeline(seed, ground.now, this.fate)
    this.server = new PostgresServer(ground.storage, this.timeline)
    this.server.nextEventId = ground.nextEventId
    this.disks = Array.from(
      { length: options.onFile ? options.nodes : 0 },
      (_, i) => new Disk(join(ground.dir, `disk${i}`), this.timeline, i === 0 ? (ground.file?.bytes ?? null) : null),
    )
    this.pair = options.isPair ? new Pair(this, options.isAsync ?? false) : null
    this.blobs = options.mood?.blobShare === undefined ? null : new Blobs(this, this.#foldersOfBlobs())
    this.spaces = options.mood?.spaceShare === undefined ? null : new Spaces(this)
    held.timeline = this.timeline
    held.diskInUse = () => this.#diskInUse!
    held.bucket = this.bucket
    held.folders = this.blobs?.folders ?? []
    held.fileMillis =
      this.pair === null && this.blobs === null ? null : () => this.#diskInUse?.fileMillis ?? PAIR_FILE_MILLIS
    // Some outages take longer than nodes and database wait for each other; then less happens, for longer.
    const { mood } = options
    this.isLong = mood?.isLong ?? this.timeline.happens(LONG_SHARE)
    this.tempoMillis =
      mood?.tempoMillis ??
      (this.pair !== null ? PAIR_TEMPO_MILLIS : this.isLong ? 1000 : this.timeline.random.of([60, 250, 600]))
    this.timeline.lots = mood?.lots ?? this.timeline.lots
    this.server.stallShare = mood?.stallShare ?? 0
    this.millis = this.pair !== null ? PAIR_MILLIS : this.isLong ? LONG_MILLIS : (mood?.millis ?? options.millis)
    this.directory = mood?.renameShare === undefined ? null : new SimulatedDirectory(this.timeline, this.#registered())
    this.watch = new Watch(this)
    this.sessions = new Sessions(this.watch.ledger)
    this.apps = options.mood?.appShare === undefined ? null : new AppSessions(this)
    this.nodes = Array.from({ length: options.nodes }, (_, i) => new Node(this, nameOfNode(i)))
    this.clients = Array.from({ length: options.clients }, (_, i) => new Client(this, i))
    this.relay = new Relay(this)
    this.server.onSilentCommit = ({ client }) => {
      const millis = this.timeline.between(100, longestOutage(this))
      this.note('fate', `${client.name} sends COMMIT, and its line is silent for ${(millis / 1000).toFixed(1)} s`)
      this.wires.get(client)!.silentUntil = this.timeline.now + millis
    }
    this.server.onFatalCommit = (session, fault) => {
      const node = this.nodes.find(({ actor }) => actor === session.client)
      this.note(
        'fate',
        `${session.client.name} sends COMMIT, and ${fault === 'cut' ? 'loses the connection' : 'is killed'}`,
      )
      if (fault === 'crash') node?.restart(this.timeline.between(100, 4000))
    }
    this.disks.forEach((disk, i) => (disk.onCut = () => this.cutPower(this.nodes[i]!)))
    held.connect = ((options: PoolOptions) => poolOn(this.wires.get(this.timeline.current)!, options)) as never
  }

  /** The logs of accounts that were there before. */
  #registered(): AuditEntry[] {
    return this.rows<{ did: string; cid: string; operation: string; createdAt: number }>(
      'SELECT did, cid, operation, created_at AS createdAt FROM plc_operation ORDER BY seq',
    ).map(({ operation, createdAt, ...entry }) => ({
      ...entry,
      operation: JSON.parse(operation) as LogOperation,
      nullified: false,
      createdAt: wireTime(createdAt),
    }))
  }

  get bucket(): SimulatedBucket | null {
    return this.pair?.bucket ?? this.blobs?.bucket ?? null
  }

  /** Data directories of machines whose blobs are not in a bucket. */
  #foldersOfBlobs(): string[] {
    if (!this.options.onFile) return []
    if (this.pair === null) return [join(this.ground.dir, FOLDER_ON_FILE)]
    return Array.from({ length: this.options.nodes }, (_, i) => this.pair!.folderOf(nameOfNode(i)))
  }

  /** The disk that counts: of the only server on SQLite, or of the machine that serves. Null on PostgreSQL. */
  get disk(): Disk | null {
    return this.disks[this.pair?.serving ?? 0] ?? null
  }

  /** Of the machine that is at work. */
  get #diskInUse(): Disk | undefined {
    return this.disks[this.nodes.findIndex(({ name }) => name === this.timeline.current.name)]
  }

  diskOf(node: Node): Disk | null {
    return this.disks[this.nodes.indexOf(node)] ?? null
  }

  get holders(): Holder[] {
    return this.disk === null ? this.ground.holders : (this.ground.file?.holders ?? [])
  }

  /** The machine of a server on SQLite goes out, and is back later. */
  cutPower(node: Node): void {
    if (node.actor.isDead) return
    this.note('fate', `the power of ${node.name} is cut`)
    node.restart(this.timeline.between(100, this.pair === null ? 3000 : 8000), 'without power')
  }

  note(who: string, what: string): void {
    this.#trace.push({ at: this.timeline.now, who, what })
  }

  /** The invariant that does not hold. Only the first counts. */
  fail(what: string): void {
    if (this.failure !== null) return
    this.failure = what
    this.note('WATCH', what)
  }

  configOf(node: Node) {
    const { pair, blobs, spaces } = this
    const folder = this.disk === null ? node.name.replaceAll(' ', '') : FOLDER_ON_FILE
    const extras = `${blobs === null ? '' : ' with blobs'}${spaces === null ? '' : ' with spaces'}`
    const name = `${pair?.nameOf(node.name) ?? folder}${extras}`
    const databaseUrl = this.diskOf(node)?.path ?? 'postgres://simulated@localhost/simulated'
    const known = this.ground.configs.get(name)
    if (known !== undefined) return { ...known, databaseUrl }
    const made = testConfig(
      {
        dataDir: pair?.folderOf(node.name) ?? join(this.ground.dir, folder),
        port: 2583,
        publicUrl: URL_OF_SERVICE,
      },
      {
        ...(pair !== null && configOfPair(node.name, pair.isAsync)),
        ...(blobs !== null && configOfBlobs(blobs)),
        ...(spaces !== null && { spaces: { enabled: true } }),
        signingKeyMasterKey: MASTER_KEY,
        database: { afterFailover: 'continue' },
        databaseUrl,
        rateLimit: { enabled: true },
      },
    )
    this.ground.configs.set(name, made)
    return made
  }

  overridesOf(node: Node, ready: (dispatcher: Dispatcher) => void) {
    const { timeline } = this
    const write = (line: string) => {
      const { level, message, error } = JSON.parse(line) as { level: string; message: string; error?: unknown }
      if (level !== 'info' || shown.test(message))
        this.note(
          node.name,
          `logs ${level}: ${message}${error === undefined ? '' : ` (${JSON.stringify(error).slice(0, 200)})`}`,
        )
    }
    return {
      clock: { now: wallMillis, monotonic: () => timeline.now },
      log: createLog({ format: 'json', level: 'info', now: wallMillis, write }),
      sharesDatabase: this.disk === null ? true : undefined,
      isLocked: true,
      plc: this.directory?.clientOf(node.actor),
      stopGraceMillis: this.options.mood?.graceMillis,
      mailer: {
        check: async () => null,
        send: (mail: { to: string; text: string }, id = '') => this.#mailed(node, mail, id),
      },
      listen: (_: unknown, dispatcher: Dispatcher) => {
        ready(dispatcher)
        return { url: URL_OF_SERVICE, port: 2583, stop: async (grace: number) => dispatcher.stop(grace) }
      },
    }
  }

  #mailed(node: Node, { to, text }: { to: string; text: string }, id: string): Promise<void> {
    const { timeline } = this
    const { actor } = node
    return new Promise((resolve, reject) => {
      timeline.schedule(
        timeline.happens(0.2) ? timeline.between(500, 4000) : timeline.between(1, 200),
        this.fate,
        () => {
          if (timeline.happens(0.05))
            return void timeline.schedule(1, actor, () => reject(new Error('try again later')))
          const mail = { id, to, text, at: timeline.now, node: node.name }
          this.watch.mailed(mail)
          this.mails.push(mail)
          this.note('mail', `${id.slice(-6)} to ${to} from ${node.name}`)
          timeline.schedule(timeline.between(1, 20), actor, resolve)
        },
      )
    })
  }

  /** Nodes that take requests, as a balancer sees them. */
  get serving(): Node[] {
    return this.nodes.filter((node) => node.isUp && node.app !== null && !node.isLeaving)
  }

  /** The condition is looked at now and then: some read the database. */
  #until(condition: () => boolean, millis: number): boolean {
    const { timeline } = this
    const end = timeline.now + millis
    let lookedAt = -Infinity
    while (this.failure === null) {
      try {
        if (timeline.now >= lookedAt + LOOK_MILLIS) {
          lookedAt = timeline.now
          if (condition()) return true
        }
        if (!timeline.step(end)) return condition()
      } catch (error) {
        this.fail(`the simulator does not understand: ${(error as Error).stack}`)
      }
    }
    return false
  }

  /** Everything that happens in this world. To be called in a turn of the real event loop. */
  run(): Outcome {
    const { timeline, nodes } = this
    const startedAt = timeline.now
    const { pair } = this
    for (const node of nodes) node.start()
    const isUp = () => pair?.isAtRest ?? nodes.every(({ app }) => app !== null)
    if (!this.#until(isUp, START_MILLIS)) this.fail(`the nodes do not start${pair === null ? '' : `: ${pair.unrest}`}`)
    this.relay.start()
    for (const client of this.clients) client.start()
    const heal = faultsOf(this)
    this.#until(() => false, this.millis)
    this.note('fate', 'no more faults')
    heal()
    this.isEnding = true
    const isBurning = pair !== null && timeline.happens(BURN_SHARE)
    // With a backup that is behind, what is promised then is everything.
    if (isBurning && pair.isAsync) this.#until(() => pair.isAtRest, REST_MILLIS)
    if (isBurning) pair.burn()
    timeline.schedule(TAKEN_OVER_MILLIS, this.fate, () => this.watch.requireTakenOver())
    const isAtRest = () =>
      (pair?.isAtRest ?? nodes.every(({ app, actor }) => app !== null && !actor.isDead)) &&
      this.clients.every(({ isDone }) => isDone) &&
      this.watch.isAtRest &&
      this.relay.hasAll
    const restMillis = this.directory === null ? REST_MILLIS : SWEPT_MILLIS
    if (!this.#until(isAtRest, restMillis))
      this.fail(`after ${restMillis / 1000} seconds without faults, ${this.#unrest()}`)
    if (this.failure === null) this.watch.finish()
    return this.#outcome(startedAt)
  }

  #unrest(): string {
    if (this.pair !== null && !this.pair.isAtRest) return this.pair.unrest!
    const down = this.nodes.filter(({ app, actor }) => app === null || actor.isDead).map(({ name }) => name)
    if (down.length > 0 && this.pair === null) return `${down.join(', ')} is not up`
    const waiting = this.clients.filter(({ isDone }) => !isDone).map(({ name }) => name)
    if (waiting.length > 0) return `${waiting.join(', ')} still waits`
    if (!this.watch.isAtRest) return this.watch.unrest
    return `the relay is at ${this.relay.cursor}, and the log at ${this.watch.newest}`
  }

  /** Rows of the committed state. */
  rows<Row>(text: string, ...values: (string | number | Uint8Array)[]): Row[] {
    if (this.disk !== null) return this.disk.rows<Row>(text, values)
    const { storage } = this.server
    storage.show(null)
    return storage.all(text, values) as Row[]
  }

  /** Nothing happens any more. */
  end(): void {
    for (const disk of this.disks) disk.end()
    this.blobs?.end()
    closeLeft()
    Object.assign(held, {
      timeline: null,
      diskInUse: null,
      bucket: null,
      folders: [],
      fileMillis: null,
      connect: null,
    })
  }

  #outcome(startedAt: number): Outcome {
    const { seed, failure, timeline, befallen } = this
    const count = (outcome: string) =>
      this.clients.reduce((sum, client) => sum + client.counts[outcome as 'refused'], 0)
    return {
      seed,
      failure,
      trace: this.#trace.map(
        ({ at, who, what }) => `${((at - startedAt) / 1000).toFixed(4).padStart(9)}  ${who.padEnd(9)} ${what}`,
      ),
      events: timeline.events,
      millis: timeline.now - startedAt,
      acknowledged: count('acknowledged'),
      unknown: count('unknown'),
      refused: count('refused'),
      numbered: this.watch.numbered,
      faults: befallen,
    }
  }
}

function migrated(): Database {
  const db = new Database(':memory:', { strict: true })
  db.run('CREATE TABLE schema_migration (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL)')
  for (const { number, name, text } of migrations.toSorted((a, b) => a.number - b.number)) {
    for (const statement of statementsIn(text)) db.run(statement)
    db.run('INSERT INTO schema_migration (number, name, applied_at) VALUES (?, ?, 0)', [number, name])
  }
  observe(db)
  return db
}

const nameOfNode = (i: number): string => `node ${i + 1}`

const MAX_NODES = 3
/** Of servers on SQLite. */
const FOLDER_ON_FILE = 'nodeonSQLite'
/** Files are in memory where the system has a place for that. */
const MEMORY = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()
/** Carol forgets her password, which ends her sessions, so clients write to the others. */
const HOLDERS = ['alice', 'bob', 'dave', 'carol']
const WITH_RECOVERY_KEY = 'dave'

const APPS_ALONE: Mood = { name: 'apps', appShare: 1, faults: [] }

/** Libraries that the server loads when it needs them first; a world cannot wait for that. */
const lateLibraries = ['@noble/curves/secp256k1.js', '@atproto/oauth-scopes', 'jose', 'file-type']

/** Make the ground: accounts sign up at a node in a world without faults. */
export async function makeGround(): Promise<Ground> {
  for (const name of lateLibraries) await import(name)
  await import('../../../src/platform/database/postgres.ts')
  await import('../../../src/features/operations/alerts/alert-pass.ts')
  await import('../../../src/features/operations/backup/continuous-sending.ts')
  await import('../../../src/features/access/factors/webauthn-library.ts')
  await import('../../../src/protocol/client-validation.ts')
  const dir = mkdtempSync(join(MEMORY, 'simulator-'))
  process.on('exit', () => rmSync(dir, { recursive: true, force: true }))
  for (let i = 1; i <= MAX_NODES; i++) mkdirSync(join(dir, `node${i}`))
  mkdirSync(join(dir, FOLDER_ON_FILE))
  const ground: Ground = {
    storage: new Storage(migrated()),
    holders: [],
    dir,
    now: 0,
    nextEventId: 1,
    configs: new Map(),
    file: null,
  }
  ground.storage.begin()
  const world = new World(ground, 0, { nodes: 1, clients: 0, millis: 0 })
  ground.holders = await settle(world)
  ground.now = world.timeline.now
  ground.nextEventId = world.server.nextEventId
  ground.storage.end({ keeps: true })
  const onFile = new World(ground, 0, { nodes: 1, clients: 0, millis: 0, onFile: true })
  const holders = await settle(onFile)
  ground.now = onFile.timeline.now
  ground.file = { bytes: readFileSync(onFile.disk!.path), holders }
  onFile.end()
  // Afterwards, the folders of all nodes are as a server leaves them, and what a process loads or draws once is there.
  await inTurn(() => runWorld(ground, 1, { nodes: MAX_NODES, clients: 3, millis: 3000 }))
  await inTurn(() => runWorld(ground, 1, { nodes: 1, clients: 3, millis: 3000, onFile: true }))
  await inTurn(() => runWorld(ground, 1, { nodes: 1, clients: 3, millis: 3000, mood: APPS_ALONE }))
  await inTurn(() => runWorld(ground, 1, { nodes: 2, clients: 3, millis: 3000, onFile: true, isPair: true }))
  return ground
}

/** Let accounts sign up at the only node, which stops afterwards. */
async function settle(world: World): Promise<Holder[]> {
  const [node] = world.nodes
  const { timeline } = world
  const holders: Holder[] = []
  const until = (condition: () => boolean) =>
    inTurn(() => {
      for (const end = timeline.now + 60_000; !condition() && timeline.step(end););
      if (!condition()) throw new Error(`the ground cannot be made: ${world.failure}`)
    })
  node!.start()
  await until(() => node!.app !== null)
  for (const name of HOLDERS) {
    let reply: Reply | undefined
    const recovery = name === WITH_RECOVERY_KEY ? signingKey('p256', new Uint8Array(32).fill(1)) : null
    const recoveryKey = recovery === null ? undefined : formatDidKey(recovery.publicKey)
    const json = { handle: `${name}.test`, email: `${name}@example.com`, password: PASSWORD, recoveryKey }
    node!.ask(world.fate, { path: '/xrpc/com.atproto.server.createAccount', json }, (answer) => (reply = answer))
    await until(() => reply !== undefined)
    if (reply?.status !== 200) throw new Error(`${name} cannot sign up: ${JSON.stringify(reply)}`)
    holders.push({ ...holderOf(name, reply.body), recovery })
  }
  await until(() => world.watch.isAtRest)
  let isStopped = false
  timeline.schedule(0, node!.actor, () => void node!.app!.stop().then(() => (isStopped = true)))
  await until(() => isStopped)
  return holders
}

export const PASSWORD = 'correct horse battery staple'

function holderOf(name: string, body: Record<string, unknown>): Omit<Holder, 'recovery'> {
  const { did, accessJwt, didDoc } = body as {
    did: string
    accessJwt: string
    didDoc: { verificationMethod: { publicKeyMultibase: string }[] }
  }
  const key: PublicKey | null = parseMultikey(didDoc.verificationMethod[0]!.publicKeyMultibase)
  return { name, did, token: accessJwt, key: key! }
}

/** One world, from its beginning to its end. */
export function runWorld(ground: Ground, seed: number, options: WorldOptions): Outcome {
  ground.storage.begin()
  const world = new World(ground, seed, options)
  try {
    return world.run()
  } finally {
    ground.storage.end()
    world.end()
  }
}
