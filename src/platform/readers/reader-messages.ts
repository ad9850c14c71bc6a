/** How the main thread starts a reader thread, and what they tell each other beside requests. */
import type { Config } from '../configuration/config.ts'
import type { Fields, LogLevel } from '../running/log-line.ts'

/** What a reader thread knows of the configuration: nothing secret. */
const readerConfigKeys = [
  'publicUrl',
  'formerUrls',
  'serverDid',
  'availableUserDomains',
  'trustedProxies',
  'rateLimit',
  'dataDir',
  'development',
] as const satisfies readonly (keyof Config)[]

export type ReaderConfig = Pick<Config, (typeof readerConfigKeys)[number]> & { blobs: Partial<Config['blobs']> }

/** Blobs in a folder. A bucket needs a secret, so only the main thread reads from it. */
const inFolder = {
  store: 'folder',
  s3Bucket: null,
  s3Endpoint: null,
  s3AccessKeyId: null,
  s3SecretAccessKey: null,
  s3KeyPrefix: '',
} as const

export const readerConfigOf = (config: Config): ReaderConfig =>
  ({
    ...Object.fromEntries(readerConfigKeys.map((key) => [key, config[key]])),
    blobs: config.blobs.store === 's3' ? {} : inFolder,
  }) as ReaderConfig

export interface ReaderStart {
  index: number
  databasePath: string
  hostname: string
  port: number
  config: ReaderConfig
  board: SharedArrayBuffer
  readers: number
  slots: SharedArrayBuffer
  /** Counts of responses by endpoint and class of status: see `ReaderCounts`. */
  counts: SharedArrayBuffer
  /** The monotonic clock of the main thread, by which limits are counted. */
  monotonic: number
  /** Whether each request has a line in the log. */
  logsRequests: boolean
  /** By how much a test has moved the clocks, in milliseconds. */
  passed: SharedArrayBuffer | null
}

export type ToReader =
  | { type: 'serve'; start: ReaderStart }
  | { type: 'config'; config: ReaderConfig }
  /** Take no new connections, and end WebSockets. */
  | { type: 'stop' }

export type FromReader =
  /** Loaded. */
  | { type: 'ready' }
  /** The port is open. */
  | { type: 'serving' }
  | { type: 'failed'; error: unknown }
  /** All requests have been answered. */
  | { type: 'stopped' }
  | { type: 'log'; level: LogLevel; message: string; fields: Fields }

const CLASSES = 10

/** Responses of one reader thread, by the place of the endpoint in a list and the class of the status. */
export class ReaderCounts {
  readonly #counts: Float64Array<SharedArrayBuffer>

  constructor(
    readonly names: readonly string[],
    readonly shared: SharedArrayBuffer = new SharedArrayBuffer(names.length * CLASSES * Float64Array.BYTES_PER_ELEMENT),
  ) {
    this.#counts = new Float64Array(shared)
  }

  add(name: string, status: number): void {
    const at = this.names.indexOf(name) * CLASSES + Math.floor(status / 100)
    this.#counts[at] = this.#counts[at]! + 1
  }

  /** Counts that are not zero. */
  *all(): Generator<{ name: string; statusClass: number; count: number }> {
    for (const [at, count] of this.#counts.entries())
      if (count > 0) yield { name: this.names[Math.floor(at / CLASSES)]!, statusClass: at % CLASSES, count }
  }
}
