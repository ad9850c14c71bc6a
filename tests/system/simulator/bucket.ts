/**
 * The bucket that two machines share, and the lines to it. Stands in for `Store`, the transport of a bucket: what the
 * server does about retries, timeouts and conditions stays as it is.
 */
import { readFileSync } from 'node:fs'
import { createHash } from 'node:crypto'
import type { Answer } from '../../../src/platform/network/bucket-answers.ts'
import { BucketRefusal } from '../../../src/platform/network/bucket-faults.ts'
import type { StoreRequest } from '../../../src/platform/network/bucket-wire.ts'
import { held } from './seams.ts'
import { actorNamed, type Actor, type Timeline } from './timeline.ts'

interface Stored {
  bytes: Uint8Array
  tag: string
  at: number
}

/** What the bucket answers to a request that it has not refused. */
interface Reply {
  headers: Headers
  bytes: Uint8Array
  names?: readonly Named[]
}

interface Named {
  key: string
  size: number
}

/** The way from a machine to the bucket. */
export interface BucketLine {
  /** Nothing arrives until then; some of what was sent arrives later, and the rest never does. */
  silentUntil: number
  /** Every request fails at once until then. */
  cutUntil: number
}

const LONGEST_MILLIS = 15
/** How late a message may be that was sent while a line was silent. */
const LATE_MILLIS = 5000

export class SimulatedBucket {
  readonly actor = actorNamed('bucket')
  readonly #objects = new Map<string, Stored>()
  readonly #lines = new Map<string, BucketLine>()
  /** Longest time that a request or an answer takes. */
  latencyMillis = LONGEST_MILLIS
  /** How probable it is that it reports an error, whatever it has done, or a success that is none. */
  errorShare = 0
  /** Lists lack what is younger. */
  listsLateMillis = 0
  isDown = false
  #versions = 0
  onRemoved: (key: string) => void = () => {}
  onStored: (key: string, bytes: Uint8Array, before: Uint8Array | null, by: Actor) => void = () => {}

  constructor(
    readonly timeline: Timeline,
    /** Whether tags are digests of the content; otherwise nothing can be told from them. */
    readonly hasDigests: boolean,
  ) {}

  lineOf({ name }: Actor): BucketLine {
    const known = this.#lines.get(name)
    if (known !== undefined) return known
    const made = { silentUntil: 0, cutUntil: 0 }
    this.#lines.set(name, made)
    return made
  }

  get lines(): Iterable<BucketLine> {
    return this.#lines.values()
  }

  contentOf(key: string): Uint8Array | null {
    return this.#objects.get(key)?.bytes ?? null
  }

  heal(): void {
    for (const line of this.lines) line.silentUntil = line.cutUntil = 0
    this.latencyMillis = LONGEST_MILLIS
    this.errorShare = this.listsLateMillis = 0
    this.isDown = false
  }

  /** When a message arrives; null if it never does. */
  #arrival({ silentUntil }: BucketLine): number | null {
    const { timeline } = this
    const millis = timeline.between(1, this.latencyMillis)
    if (silentUntil <= timeline.now) return millis
    if (timeline.happens(0.5)) return null
    return silentUntil - timeline.now + timeline.between(0, LATE_MILLIS)
  }

  async send(request: StoreRequest, signal: AbortSignal): Promise<Reply> {
    const { timeline } = this
    const from = timeline.current
    const line = this.lineOf(from)
    const content = request.content && (await bytesOf(request.content.body))
    const { promise, resolve, reject } = Promise.withResolvers<Reply>()
    if (signal.aborted) throw signal.reason
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    if (line.cutUntil > timeline.now)
      timeline.schedule(timeline.between(0.1, 3), from, () =>
        reject(Object.assign(new Error('the connection is refused'), { code: 'ConnectionRefused' })),
      )
    else {
      const there = this.#arrival(line)
      if (there !== null)
        timeline.schedule(there, this.actor, () => {
          const reply = this.#reply(request, content, from)
          const back = this.#arrival(line)
          if (back === null) return
          timeline.schedule(back, from, () => (reply instanceof BucketRefusal ? reject(reply) : resolve(reply)))
        })
    }
    return promise
  }

  #reply(request: StoreRequest, content: Uint8Array | undefined, from: Actor): Reply | BucketRefusal {
    const { timeline } = this
    if (this.isDown) return new BucketRefusal(503, 'ServiceUnavailable')
    if (this.errorShare === 0 || !timeline.happens(this.errorShare)) return this.#done(request, content, from)
    const how = timeline.random.below(3)
    if (how === 0) return new BucketRefusal(503, 'SlowDown')
    // What a proxy says that stores nothing.
    if (how === 1 && request.method === 'PUT') return { headers: new Headers(), bytes: none }
    this.#done(request, content, from)
    return new BucketRefusal(500, 'InternalError')
  }

  #done(
    { method, key, query = {}, headers = {} }: StoreRequest,
    content: Uint8Array | undefined,
    from: Actor,
  ): Reply | BucketRefusal {
    // A request about the bucket itself asks for a list.
    if (key === undefined)
      return { headers: new Headers(), bytes: none, names: this.#list(String(query['prefix'] ?? '')) }
    const found = this.#objects.get(key)
    if (method === 'DELETE') {
      if (this.#objects.delete(key)) this.onRemoved(key)
      return { headers: new Headers(), bytes: none }
    }
    if (method === 'PUT') {
      const match = headers['if-match']
      if (headers['if-none-match'] === '*' && found !== undefined) return new BucketRefusal(412, 'PreconditionFailed')
      if (match !== undefined && found === undefined) return new BucketRefusal(404, 'NoSuchKey')
      if (match !== undefined && match !== `"${found!.tag}"`) return new BucketRefusal(412, 'PreconditionFailed')
      const bytes = content ?? none
      const tag = this.hasDigests ? createHash('md5').update(bytes).digest('hex') : `version-${++this.#versions}`
      this.#objects.set(key, { bytes, tag, at: this.timeline.now })
      this.onStored(key, bytes, found?.bytes ?? null, from)
      return { headers: new Headers({ etag: `"${tag}"` }), bytes: none }
    }
    if (found === undefined) return new BucketRefusal(404, 'NoSuchKey')
    const { bytes, tag } = found
    const described = { etag: `"${tag}"`, 'content-length': String(bytes.length) }
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(headers['range'] ?? '') ?? []
    if (last === undefined) return { headers: new Headers(described), bytes }
    const part = bytes.subarray(Number(first), Number(last) + 1)
    const range = `bytes ${first}-${Number(first) + part.length - 1}/${bytes.length}`
    return { headers: new Headers({ ...described, 'content-range': range }), bytes: part }
  }

  /** Names under a prefix, in their order, and the size of each object. */
  #list(prefix: string): Named[] {
    const newest = this.timeline.now - this.listsLateMillis
    return [...this.#objects]
      .filter(([key, { at }]) => key.startsWith(prefix) && at <= newest)
      .map(([key, { bytes }]) => ({ key, size: bytes.length }))
      .toSorted((a, b) => (a.key < b.key ? -1 : 1))
  }
}

const none = new Uint8Array()

const bytesOf = async (body: Blob & { name?: string }): Promise<Uint8Array> =>
  body.name === undefined ? await body.bytes() : readFileSync(body.name)

const present = (): SimulatedBucket => {
  if (held.bucket === null) throw new Error('there is no bucket')
  return held.bucket
}

/** The bucket of the present world, as the machine sees it that is at work. */
export class Store {
  static async open(): Promise<Store> {
    return new Store()
  }

  async send(request: StoreRequest, signal: AbortSignal): Promise<unknown> {
    const { headers, bytes } = await present().send(request, signal)
    return { headers, bytes: async () => bytes, body: chunksOf(bytes) }
  }

  async headers(request: StoreRequest, signal: AbortSignal): Promise<Headers> {
    return (await present().send(request, signal)).headers
  }

  /** Lists alone are asked for, whole. */
  async ask(request: StoreRequest, signal: AbortSignal): Promise<Answer> {
    const { names = [] } = await present().send(request, signal)
    return listOf(names)
  }
}

async function* chunksOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

function listOf(objects: readonly Named[]): Answer {
  const elements = objects.map(({ key, size }) => elementOf({ Key: key, Size: String(size) }))
  return elementOf({ IsTruncated: 'false' }, elements) as unknown as Answer
}

const elementOf = (texts: Record<string, string>, all: unknown[] = []) => ({
  name: 'element',
  text: (name: string) => texts[name],
  all: () => all,
})
