/**
 * Puts the simulated world in place of the real one, for the whole process: time, chance and the driver of the
 * database. Has to be called before the server is imported. The sources of the server stay as they are, except that
 * they import these from here; a patch may put back a known fault.
 */
import { createCipheriv, createDecipheriv, createPublicKey, type KeyObject } from 'node:crypto'
import { plugin } from 'bun'
import type { SimulatedBucket } from './bucket.ts'
import { verify } from './chance.ts'
import type { Disk } from './disk.ts'
import type { Folder } from './folder.ts'
import { EPOCH_MILLIS, type Pending, type Timeline } from './timeline.ts'

/** A change of a source text. */
export interface Patch {
  /** From the root of the repository. */
  path: string
  /** Text that the file has exactly once. */
  find: string
  put: string
}

interface Held {
  timeline: Timeline | null
  /** The disk of the machine that is at work. */
  diskInUse: (() => Disk) | null
  bucket: SimulatedBucket | null
  /** Where blobs are, unless they are in the bucket: one folder for each machine. */
  folders: readonly Folder[]
  /** Longest time that an operation on a file of the machine at work takes; null if none takes any. */
  fileMillis: (() => number) | null
  /** Stands in for `SQL` of the driver. */
  connect: ((options: never) => unknown) | null
}

/** What the replaced functions use; the present world sets it. */
export const held: Held = {
  timeline: null,
  diskInUse: null,
  bucket: null,
  folders: [],
  fileMillis: null,
  connect: null,
}
const SEAM = 'holdfast simulator'
Object.assign(globalThis, { [Symbol.for(SEAM)]: held })

const ROOT = new URL('../../../', import.meta.url).pathname
const SOURCES = new RegExp(`^${RegExp.escape(ROOT)}src/.*\\.ts$`)

/** Modules whose names lead to stand-ins. */
const standIns = {
  'node:timers/promises': `${import.meta.dir}/timers.ts`,
  'node:fs/promises': `${import.meta.dir}/files.ts`,
  'node:crypto': `${import.meta.dir}/chance.ts`,
}

/** Where the server calls into native threads or the driver. */
const seams: readonly Patch[] = [
  {
    path: 'src/platform/database/postgres.ts',
    find: `import { SQL, type ReservedSQL } from 'bun'`,
    put: `import { type ReservedSQL } from 'bun'\nimport { SQL } from '${import.meta.dir}/driver.ts'`,
  },
  {
    // There is no pooler, and what looks for one would take time.
    path: 'src/platform/database/postgres.ts',
    find: '    await requireSessions(connection, other)\n',
    put: '',
  },
  {
    path: 'src/platform/database/sqlite.ts',
    find: `import { Database as Connection } from 'bun:sqlite'`,
    put: `import { Connection } from '${import.meta.dir}/disk.ts'`,
  },
  {
    path: 'src/platform/database/wal.ts',
    find: `import { closeSync, fdatasync, fstatSync, openSync, writeSync } from 'node:fs'`,
    put: `import { checkpoint, closeSync, fdatasync, fstatSync, openSync, writeSync } from '${import.meta.dir}/disk.ts'`,
  },
  {
    // In a thread of its own.
    path: 'src/platform/database/wal.ts',
    find: 'const worker = (this.#worker ??= this.#start())',
    put: `if (message !== undefined) return checkpoint(message)\n    const worker = (this.#worker ??= this.#start())`,
  },
  {
    path: 'src/platform/database/log-follower.ts',
    find: `import { closeSync, openSync, readSync } from 'node:fs'`,
    put: `import { closeSync, openSync, readSync } from '${import.meta.dir}/disk.ts'`,
  },
  {
    path: 'src/platform/database/database-files.ts',
    find: `import { closeSync, fstatSync, openSync, read } from 'node:fs'`,
    put: `import { closeSync, fstatSync, openSync, read } from '${import.meta.dir}/disk.ts'`,
  },
  {
    path: 'src/platform/network/bucket.ts',
    find: `import { Store, type BucketOptions, type Content } from './bucket-wire.ts'`,
    put: `import type { BucketOptions, Content } from './bucket-wire.ts'\nimport { Store } from '${import.meta.dir}/bucket.ts'`,
  },
  {
    // Hours would be all that a world does.
    path: 'src/features/data/blobs/blob-removal.ts',
    find: 'const TOMBSTONE_MILLIS = HOUR_MILLIS',
    put: 'const TOMBSTONE_MILLIS = 6000',
  },
  {
    path: 'src/features/data/blobs/blob-removal.ts',
    find: 'const TAKER_MILLIS = 600_000',
    put: 'const TAKER_MILLIS = 10_000',
  },
  {
    path: 'src/features/data/blobs/blob-bucket.ts',
    find: 'const REMOVAL_TIMEOUT_MILLIS = MINUTE_MILLIS',
    put: 'const REMOVAL_TIMEOUT_MILLIS = 2000',
  },
  {
    // What the system has mounted.
    path: 'src/platform/files/network-share.ts',
    find: 'function mounts(): Mount[] {\n',
    put: 'function mounts(): Mount[] {\n  return []\n',
  },
  {
    path: 'src/platform/secrets/argon2.ts',
    find: 'const compute: Compute = (password, salt, cost) => loaded()(password, salt, cost)',
    put: `const compute: Compute = async (password, salt) => new Uint8Array(new Bun.SHA256().update(password).update(salt).digest())`,
  },
]

const isApplied = new Set<Patch>()

export function install(patches: readonly Patch[]): void {
  const all = [...seams, ...patches]
  plugin({
    name: SEAM,
    setup(build) {
      build.onLoad({ filter: SOURCES }, async ({ path }) => {
        let text = await Bun.file(path).text()
        for (const patch of all.filter((each) => ROOT + each.path === path)) {
          text = patched(text, patch)
          isApplied.add(patch)
        }
        for (const [name, at] of Object.entries(standIns)) text = text.replaceAll(`from '${name}'`, `from '${at}'`)
        return { contents: text, loader: 'ts' }
      })
    },
  })
  replaceGlobals()
}

/** Throws unless the server has loaded all that was to be patched. */
export function requirePatched(patches: readonly Patch[]): void {
  for (const patch of [...seams, ...patches])
    if (!isApplied.has(patch)) throw new Error(`${patch.path} was not loaded, so its patch has no effect`)
}

function patched(text: string, { path, find, put }: Patch): string {
  if (text.split(find).length !== 2)
    throw new Error(`${path} has changed: the text that the simulator replaces is not there exactly once:\n${find}`)
  return text.replace(find, () => put)
}

const real = { now: performance.now.bind(performance), setImmediate: globalThis.setImmediate }

/** Real time, for measuring the simulator itself. */
export const realMillis = (): number => real.now()

/** Does work in a turn of the real event loop of its own, where microtasks can be drained. */
export const inTurn = <T>(work: () => T): Promise<T> =>
  new Promise((resolve, reject) => {
    real.setImmediate(() => {
      try {
        resolve(work())
      } catch (error) {
        reject(error)
      }
    })
  })

/** Not before the world has begun, while modules load. */
const monotonic = (): number => held.timeline?.now ?? 0

export const wallMillis = (): number =>
  Math.floor(EPOCH_MILLIS + monotonic() + (held.timeline?.current.skewMillis ?? 0))

export function randomInto<Bytes extends ArrayBufferView>(bytes: Bytes): Bytes {
  const { timeline } = held
  const view = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let i = 0; i < view.length; i++) view[i] = timeline === null ? i : timeline.chance.below(256)
  return bytes
}

export function uuid(): string {
  const hex = Buffer.from(randomInto(new Uint8Array(16))).toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`
}

/** A timer, as the runtime has them. */
class VirtualTimer {
  pending: Pending | null = null
  readonly #millis: number
  readonly #repeats: boolean
  readonly #act: () => void

  constructor(act: () => void, millis: number, repeats: boolean) {
    this.#act = act
    this.#millis = Math.max(millis || 0, repeats ? 1 : 0)
    this.#repeats = repeats
    this.#start()
  }

  #start(): void {
    const { timeline } = held
    // A timer that a module sets while it loads belongs to no world.
    if (timeline === null) return
    this.pending = timeline.schedule(this.#millis, timeline.current, () => {
      if (this.#repeats) this.#start()
      this.#act()
    })
  }

  clear(): void {
    if (this.pending !== null) this.pending.act = null
    this.pending = null
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }

  hasRef(): boolean {
    return true
  }

  refresh(): this {
    this.clear()
    this.#start()
    return this
  }

  [Symbol.dispose](): void {
    this.clear()
  }
}

/** Resolves once an operation on a file is done, before which its process may be killed. */
export function takesAWhile(): Promise<void> | void {
  const { timeline, fileMillis } = held
  if (timeline !== null && fileMillis !== null)
    return new Promise((resolve) => after(timeline.between(0.01, fileMillis()), resolve))
}

export const after = (millis: number, act: () => void): { clear(): void } => new VirtualTimer(act, millis, false)

function replaceGlobals(): void {
  const later =
    (repeats: boolean) =>
    (act: (...given: unknown[]) => void, millis: number, ...given: unknown[]) =>
      new VirtualTimer(() => act(...given), millis, repeats)
  const clear = (timer: unknown) => {
    if (timer instanceof VirtualTimer) timer.clear()
  }
  Object.assign(globalThis, {
    setTimeout: later(false),
    setInterval: later(true),
    setImmediate: (act: (...given: unknown[]) => void, ...given: unknown[]) => later(false)(act, 0, ...given),
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: clear,
  })
  performance.now = monotonic
  // A node is infinitely fast.
  process.threadCpuUsage = () => ({ user: 0, system: 0 })
  Date.now = wallMillis
  globalThis.Date = new Proxy(Date, {
    construct: (target, given) => (given.length === 0 ? new target(wallMillis()) : Reflect.construct(target, given)),
  })
  Math.random = () => {
    if (held.timeline === null) return 0.5
    const { chance, lots } = held.timeline
    return chance.below(lots) / lots
  }
  Object.assign(crypto, { getRandomValues: randomInto, randomUUID: uuid })
  replaceThreads()
  Object.assign(Bun, {
    sleep: (millis: number) => new Promise<void>((resolve) => after(millis, resolve)),
    nanoseconds: () => Math.floor(monotonic() * 1e6),
    randomUUIDv7: () => {
      const at = wallMillis().toString(16).padStart(12, '0')
      return `${at.slice(0, 8)}-${at.slice(8)}-7${uuid().slice(15)}`
    },
  })
  // The runtime keeps a signal of others forever if somebody listens to it, and so whole worlds that are over.
  AbortSignal.any = (signals) => {
    const ending = new AbortController()
    for (const signal of signals) {
      if (signal.aborted) ending.abort(signal.reason)
      else signal.addEventListener('abort', () => ending.abort(signal.reason), { once: true })
    }
    return ending.signal
  }
  AbortSignal.timeout = (millis) => {
    const ending = new AbortController()
    after(millis, () => ending.abort(new DOMException('The operation timed out.', 'TimeoutError')))
    return ending.signal
  }
}

/** Longest time that a thread takes for a segment. */
const THREAD_MILLIS = 2
const TAG_BYTES = 16

interface Sealing {
  iv: Uint8Array
  additionalData: Uint8Array
}

/** What the runtime does on threads of its own, of which nobody knows when they are done. */
function replaceThreads(): void {
  const done = <T>(work: () => T): Promise<T> => {
    const { timeline } = held
    if (timeline === null) return Promise.resolve(work())
    return new Promise((resolve) => after(timeline.between(0.05, THREAD_MILLIS), () => resolve(work())))
  }
  Object.assign(Bun, {
    zstdCompress: (content: Uint8Array, options: object) => done(() => Bun.zstdCompressSync(content, options)),
    zstdDecompress: (content: Uint8Array) => done(() => Bun.zstdDecompressSync(content)),
  })
  const { subtle } = crypto
  const importKey = subtle.importKey.bind(subtle)
  const isSealing = (algorithm: unknown) => algorithm === 'AES-GCM'
  const isJwk = (format: string) => format === 'jwk'
  const sealing = (name: string, work: (given: Sealing, key: Uint8Array, content: Uint8Array) => Uint8Array) => ({
    [name]: (given: Sealing, key: Uint8Array, content: Uint8Array) =>
      // A failure is one of the promise.
      done(() => () => work(given, key, content)).then((run) => run()),
  })
  Object.assign(subtle, {
    digest: (_: string, content: Uint8Array) =>
      done(() => new Bun.CryptoHasher('sha256').update(content).digest().buffer),
    importKey: (...given: Parameters<typeof importKey>) =>
      isSealing(given[2])
        ? Promise.resolve(given[1])
        : isJwk(given[0])
          ? Promise.resolve(createPublicKey({ key: given[1] as never, format: 'jwk' }))
          : importKey(...given),
    // Of proofs.
    verify: (_: unknown, key: KeyObject, signature: Uint8Array, message: Uint8Array) =>
      done(() => verify('sha256', message, { key, dsaEncoding: 'ieee-p1363' }, signature)),
    ...sealing('encrypt', ({ iv, additionalData }, key, content) => {
      const cipher = createCipheriv('aes-256-gcm', key, iv)
      cipher.setAAD(additionalData)
      return new Uint8Array(Buffer.concat([cipher.update(content), cipher.final(), cipher.getAuthTag()]))
    }),
    ...sealing('decrypt', ({ iv, additionalData }, key, content) => {
      const decipher = createDecipheriv('aes-256-gcm', key, iv)
      decipher.setAAD(additionalData)
      decipher.setAuthTag(content.subarray(-TAG_BYTES))
      return new Uint8Array(Buffer.concat([decipher.update(content.subarray(0, -TAG_BYTES)), decipher.final()]))
    }),
  })
}

/** A digest of whatever identifies something, for traces. */
export const shortDigest = (bytes: Uint8Array | string): string => Bun.SHA256.hash(bytes, 'hex').slice(0, 8)
