/**
 * Telling crawlers that there is something new here.
 *
 * A crawler is asked at once, and then at most once per window: what happens inside a window is told when it ends, so
 * the last event of a burst is not the one that is told late. Never waited for.
 */
import { perContext, type Context } from '../../platform/context.ts'
import type { Log } from '../../platform/running/log.ts'
import type { Outbound } from '../../platform/network/outbound.ts'
import { isIpAddress, isPublicAddress } from '../../protocol/ip-address.ts'

export interface CrawlTiming {
  /** Requests to one crawler are at least so far apart. */
  windowMillis: number
  /** Waits before the second attempt, the third, … */
  retryDelaysMillis: readonly number[]
  timeoutMillis: number
}

const timing: CrawlTiming = { windowMillis: 30_000, retryDelaysMillis: [500, 1000], timeoutMillis: 10_000 }

/** `rejected`: the crawler said no. `exhausted`: it could not be asked. */
export type CrawlOutcome = 'ok' | 'rejected' | 'exhausted'

export interface CrawlersOptions {
  urls: readonly string[]
  /** How crawlers reach us. */
  hostname: string
  outbound: Outbound
  log: Log
  timing: CrawlTiming
  onOutcome: (outcome: CrawlOutcome) => void
}

/** What one crawler said when it was asked. */
export interface CrawlAnswer {
  host: string
  accepted: boolean
  detail: string
}

export class Crawlers {
  readonly #crawlers: readonly Crawler[]
  #isStarted = false

  constructor(options: CrawlersOptions) {
    this.#crawlers = options.urls.map((url) => new Crawler(url, options))
  }

  /** The server is there to be crawled. Before that nothing is told: commands add events too. */
  start(): void {
    this.#isStarted = true
    this.announce()
  }

  /** There are new events. Waits for nothing. */
  announce(): void {
    if (this.#isStarted) for (const crawler of this.#crawlers) crawler.announce()
  }

  /** Ask all of them now, once, whatever was asked before. */
  ask(): Promise<CrawlAnswer[]> {
    return Promise.all(this.#crawlers.map((crawler) => crawler.ask()))
  }

  stop(): void {
    for (const crawler of this.#crawlers) crawler.stop()
  }
}

class Crawler {
  readonly #url: string
  readonly #options: CrawlersOptions
  readonly #stopped = new AbortController()
  #window: Timer | null = null
  #isDirty = false

  constructor(url: string, options: CrawlersOptions) {
    this.#url = url
    this.#options = options
  }

  announce(): void {
    if (this.#stopped.signal.aborted) return
    if (this.#window !== null) {
      this.#isDirty = true
      return
    }
    this.#isDirty = false
    this.#window = setTimeout(() => this.#windowEnds(), this.#options.timing.windowMillis)
    this.#window.unref()
    void this.#request()
  }

  stop(): void {
    this.#stopped.abort()
    if (this.#window !== null) clearTimeout(this.#window)
  }

  #windowEnds(): void {
    this.#window = null
    if (this.#isDirty) this.announce()
  }

  async ask(): Promise<CrawlAnswer> {
    const { host } = new URL(this.#url)
    const attempt = await this.#attempt()
    this.#options.onOutcome(attempt.outcome)
    return { host, accepted: attempt.outcome === 'ok', detail: attempt.detail }
  }

  async #request(): Promise<void> {
    for (const delayMillis of [0, ...this.#options.timing.retryDelaysMillis]) {
      if (delayMillis > 0) await Bun.sleep(delayMillis)
      if (this.#stopped.signal.aborted) return
      const { outcome, detail } = await this.#attempt()
      this.#options.log.debug('crawl requested', { url: this.#url, outcome, detail })
      if (outcome !== 'exhausted') return this.#options.onOutcome(outcome)
    }
    this.#options.log.warn('crawler not reached', { url: this.#url })
    this.#options.onOutcome('exhausted')
  }

  async #attempt(): Promise<{ outcome: CrawlOutcome; detail: string }> {
    const { hostname, outbound, timing } = this.#options
    try {
      const response = await outbound.fetch(`${this.#url.replace(/\/$/, '')}/xrpc/com.atproto.sync.requestCrawl`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ hostname }),
        headersTimeoutMillis: timing.timeoutMillis,
        signal: this.#stopped.signal,
      })
      await response.body?.cancel()
      const outcome = response.status < 400 ? 'ok' : response.status < 500 ? 'rejected' : 'exhausted'
      return { outcome, detail: `HTTP ${response.status}` }
    } catch (error) {
      return { outcome: 'exhausted', detail: (error as Error).message }
    }
  }
}

const localName = /^(?:localhost|.+\.(?:localhost|test|local|internal))$/

/** No crawler could come: the name means nothing outside of this machine or network. */
function isLocalHost(hostname: string): boolean {
  const address = hostname.replace(/^\[(.*)\]$/, '$1')
  return isIpAddress(address) ? !isPublicAddress(address) : localName.test(hostname)
}

export const crawlersOf = perContext(({ config, upstream, log, metrics }: Context) => {
  const { host, hostname } = new URL(config.publicUrl)
  return new Crawlers({
    urls: isLocalHost(hostname) ? [] : config.crawlers.urls,
    hostname: host,
    outbound: upstream,
    log,
    timing,
    onOutcome: (outcome) => metrics.count('relay_crawl_requests_total', { outcome }),
  })
})
