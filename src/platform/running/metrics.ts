/**
 * Counters, gauges and histograms for `/metrics`.
 *
 * Every counter is declared here with all values its labels can take, so that dashboards see it before the first event,
 * and so that no DID, handle, host or raw path can ever become a label.
 *
 * The library is imported in parts: as a whole it also loads clients for HTTP and clusters, 6 MB of memory.
 */
import { pushOutcomes } from '../../protocol/push/relay-frames.ts'
import Counter from 'prom-client/lib/counter'
import Gauge from 'prom-client/lib/gauge'
import Histogram from 'prom-client/lib/histogram'
import Registry from 'prom-client/lib/registry'

const statusClasses = ['2xx', '3xx', '4xx', '5xx'] as const

interface CounterDeclaration {
  help: string
  labels: Record<string, readonly string[]>
}

const counters = {
  firehose_events_total: {
    help: 'Events appended to the event log',
    labels: { frame: ['commit', 'account', 'identity', 'sync'] },
  },
  relay_crawl_requests_total: {
    help: 'Crawl requests sent to relays',
    labels: { outcome: ['ok', 'rejected', 'exhausted'] },
  },
  proxy_requests_total: {
    help: 'Requests forwarded to other services',
    labels: { upstream: ['appview', 'chat', 'moderation', 'header_target'], status_class: statusClasses },
  },
  rate_limit_rejections_total: {
    help: 'Requests refused by a rate limit',
    labels: { limiter: ['global_ip', 'endpoint_ip', 'account_writes'] },
  },
  event_loop_stalls_total: {
    help: 'Stalls of the event loop of 100 ms or more',
    labels: { cause: ['computing', 'waiting'] },
  },
  iroh_connections_total: {
    help: 'Connections that peers opened over QUIC',
    labels: { outcome: ['served', 'refused', 'failed'] },
  },
  iroh_echoes_total: {
    help: 'Streams on which peers asked for an echo',
    labels: { outcome: ['served', 'refused', 'failed'] },
  },
  notify_pushes_total: {
    help: 'Push notifications sent or dropped, by outcome',
    labels: {
      outcome: [...pushOutcomes, 'expired', 'unreachable', 'unsealed', 'unanswered', 'malformed'],
    },
  },
  migration_imports_total: { help: 'Repositories imported', labels: { outcome: ['ok', 'refused', 'failed'] } },
} as const satisfies Record<string, CounterDeclaration>

const histograms = {
  proxy_upstream_lag_seconds: {
    help: 'Indexing delay that upstream services report, in seconds',
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300],
  },
} as const

type Counters = typeof counters
export type CounterName = keyof Counters
export type HistogramName = keyof typeof histograms
export type CounterLabels<Name extends CounterName> = {
  [Label in keyof Counters[Name]['labels']]: Counters[Name]['labels'][Label] extends readonly (infer Value)[]
    ? Value
    : never
}

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Counts by label values, joined by commas. Looking labels up in the library costs more than counting here. */
interface Tally {
  labels: string[]
  counts: Map<string, number>
}

/** Responses of one endpoint. */
export interface Answered {
  /** As `route` of `request`. */
  name: string
  statusClass: number
  count: number
}

export class Metrics {
  readonly #registry = new Registry()
  readonly #tallies = new Map<string, Tally>()
  readonly #histograms = new Map<HistogramName, Histogram>()
  /** Responses by route; the index is the status class. */
  readonly #answers = new Map<string, number[]>()
  /** Returns the responses of other threads. */
  #elsewhere: () => Iterable<Answered> = () => []

  /** `node` becomes a label of every figure. Null adds none. */
  constructor(node: string | null = null) {
    if (node !== null) this.#registry.setDefaultLabels({ node })
    for (const [name, { help, labels }] of Object.entries(counters as Record<string, CounterDeclaration>)) {
      const tally: Tally = {
        labels: Object.keys(labels),
        counts: new Map(combinations(labels).map((values) => [values.join(), 0])),
      }
      this.#tallies.set(name, tally)
      this.#counter(name, help, tally.labels, () => tally.counts)
    }
    for (const [name, { help, buckets }] of Object.entries(histograms)) {
      this.#histograms.set(
        name as HistogramName,
        new Histogram({ name, help, buckets: [...buckets], registers: [this.#registry] }),
      )
    }
    this.#counter(
      'http_requests_total',
      'Requests handled, by route and class of the response status',
      ['route', 'status_class'],
      () => [
        ...Array.from(this.#answers).flatMap(([route, counts]) =>
          counts.map((count, index): [string, number] => [`${route},${index}xx`, count]),
        ),
        ...Array.from(this.#elsewhere(), ({ name, statusClass, count }): [string, number] => [
          `${name},${statusClass}xx`,
          count,
        ]),
      ],
    )
  }

  /** Declare a counter that is updated at each scrape. `read` returns counts by label values, joined by commas. */
  #counter(name: string, help: string, labelNames: string[], read: () => Iterable<[string, number]>): void {
    new Counter({
      name,
      help,
      labelNames,
      registers: [this.#registry],
      collect() {
        this.reset()
        for (const [values, count] of read()) this.labels(...values.split(',')).inc(count)
      },
    })
  }

  count<Name extends CounterName>(name: Name, labels: CounterLabels<Name>, by = 1): void {
    const { labels: order, counts } = this.#tallies.get(name)!
    let values = ''
    for (const label of order) values += (values && ',') + (labels as Record<string, string>)[label]!
    counts.set(values, counts.get(values)! + by)
  }

  /** Returns a counter since the start, with all values of its labels. */
  total(name: CounterName): number {
    return this.#tallies
      .get(name)!
      .counts.values()
      .reduce((sum, count) => sum + count, 0)
  }

  observe(name: HistogramName, value: number): void {
    this.#histograms.get(name)!.observe(value)
  }

  /** Count a response. `route` is a template of the route table, or `unmatched`. */
  request(route: string, status: number): void {
    let counts = this.#answers.get(route)
    if (!counts) this.#answers.set(route, (counts = []))
    const statusClass = Math.floor(status / 100)
    counts[statusClass] = (counts[statusClass] ?? 0) + 1
  }

  /** Count what other threads have answered: `read` returns their responses since the start. */
  answeredElsewhere(read: () => Iterable<Answered>): void {
    this.#elsewhere = read
  }

  /** Declare a gauge that is read at each scrape. If `read` returns null, the gauge is omitted. */
  gauge(name: string, help: string, read: () => number | null | Promise<number | null>): void {
    new Gauge({
      name,
      help,
      registers: [this.#registry],
      async collect() {
        const value = await read()
        if (value === null) this.remove()
        else this.set(value)
      },
    })
  }

  /** Declare a gauge with one label, whose values must come from a fixed set. */
  gauges(name: string, help: string, label: string, read: () => Promise<Iterable<[string, number]>>): void {
    new Gauge({
      name,
      help,
      labelNames: [label],
      registers: [this.#registry],
      async collect() {
        const values = await read()
        this.reset()
        for (const [value, count] of values) this.labels(value).set(count)
      },
    })
  }

  /** Declare a counter with one label that is read at each scrape. */
  counter(name: string, help: string, label: string, read: () => Iterable<[string, number]>): void {
    this.#counter(name, help, [label], read)
  }

  /** Declare a counter of a sweep. Returns the function that increases it. */
  tally(name: string, help: string): (by: number) => void {
    const counter = new Counter({ name, help, registers: [this.#registry] })
    return (by) => counter.inc(by)
  }

  /** Returns all metrics in the Prometheus text exposition format, version 0.0.4. */
  render(): Promise<string> {
    return this.#registry.metrics()
  }
}

/** Returns all combinations of label values, in the order of the labels. */
function combinations(labels: Record<string, readonly string[]>): string[][] {
  return Object.values(labels).reduce<string[][]>(
    (all, values) => all.flatMap((before) => values.map((value) => [...before, value])),
    [[]],
  )
}
