/** Who is told that there is something to crawl, and how often. */
import { expect, test } from 'bun:test'
import { Crawlers, type CrawlOutcome, type CrawlTiming } from '../../../src/features/data/firehose/crawlers.ts'
import { askCrawlers, type RepoEvent } from '../../../src/features/data/firehose/firehose.ts'
import { systemResolver } from '../../../src/platform/network/resolver.ts'
import { createLog } from '../../../src/platform/running/log.ts'
import { createOutbound } from '../../../src/platform/network/outbound.ts'
import { startCrawler, type FakeCrawler } from '../../support/servers/crawler.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { sequence } from '../../support/clients/events.ts'
import { startPds } from '../../support/servers/pds.ts'
import { until } from '../../support/until.ts'
import { atOneNode } from '../../support/turns.ts'

const fast: CrawlTiming = { windowMillis: 300, retryDelaysMillis: [5, 10], timeoutMillis: 2000 }

const outcomes: CrawlOutcome[] = []
const exhausted: string[] = []
const crawlersFor = (...fakes: FakeCrawler[]) =>
  new Crawlers({
    onOutcome: (outcome) => outcomes.push(outcome),
    onExhausted: (url) => exhausted.push(url),
    urls: fakes.map(({ url }) => url),
    hostname: 'pds.example.com',
    outbound: createOutbound({ resolver: systemResolver(), reach: 'anywhere' }),
    log: createLog({ format: 'text', level: 'error', now: Date.now, write: () => undefined }),
    now: Date.now,
    timing: fast,
  })

test('two hundred writes in a moment are two requests: the first at once, the last when the window ends', async () => {
  await using crawler = startCrawler()
  const crawlers = crawlersFor(crawler)
  crawlers.start()
  for (let i = 1; i < 200; i++) crawlers.announce()
  await crawler.until(2)
  // A quiet window passes before the next announcement is answered at once.
  await Bun.sleep(fast.windowMillis * 1.2)
  expect(crawler.requests).toEqual(['pds.example.com', 'pds.example.com'])
  crawlers.announce()
  await crawler.until(3)
  crawlers.stop()
})

test('each crawler is asked', async () => {
  await using one = startCrawler()
  await using other = startCrawler()
  const crawlers = crawlersFor(one, other)
  crawlers.start()
  await Promise.all([one.until(1), other.until(1)])
  expect([one.requests, other.requests]).toEqual([['pds.example.com'], ['pds.example.com']])
  crawlers.stop()
})

test('a failing crawler is asked three times, a refusing one once', async () => {
  await using failing = startCrawler()
  await using refusing = startCrawler()
  failing.statuses.push(503, 503, 503)
  refusing.statuses.push(400)
  const crawlers = crawlersFor(failing, refusing)
  outcomes.length = 0
  crawlers.start()
  await until(() => outcomes.length === 2)
  expect(outcomes).toEqual(['rejected', 'exhausted'])
  expect([failing.requests.length, refusing.requests.length]).toEqual([3, 1])
  crawlers.stop()
})

/** By then a crawler that was to be asked before has been asked. */
async function anotherIsAsked(): Promise<void> {
  await using other = startCrawler()
  const crawlers = crawlersFor(other)
  crawlers.start()
  await other.until(1)
  crawlers.stop()
}

test('a stopped server asks nobody', async () => {
  await using crawler = startCrawler()
  const crawlers = crawlersFor(crawler)
  crawlers.stop()
  crawlers.start()
  await anotherIsAsked()
  expect(crawler.requests).toEqual([])
})

const event: RepoEvent = { type: 'identity', did: 'did:plc:aliceaaaaaaaaaaaaaaaaaaa' as Did }

test('commands that add events ask nobody', async () => {
  await using crawler = startCrawler()
  const crawlers = crawlersFor(crawler)
  crawlers.announce()
  await anotherIsAsked()
  expect(crawler.requests).toEqual([])
})

test('a server with a public name announces itself at start and after events; a local one does not', async () => {
  await using crawler = startCrawler()
  const crawlers = { urls: [crawler.url] }
  await using open = await startPds({ crawlers, publicUrl: 'https://pds.example.com' })
  using _ = atOneNode(open, 'each node counts for itself')
  await crawler.until(1)
  expect(crawler.requests).toEqual(['pds.example.com'])
  await sequence(open, event)
  for (const publicUrl of ['http://localhost:2583', 'https://pds.test', 'https://pds.internal']) {
    await using local = await startPds({ crawlers, publicUrl })
    await sequence(local, event)
    expect(await askCrawlers(local.ctx)).toEqual([])
  }
  expect(crawler.requests).toHaveLength(1)
  expect(await open.ctx.metrics.render()).toContain('relay_crawl_requests_total{outcome="ok"} 1')
})

test('an operator may ask at once, and hears what each crawler says', async () => {
  await using willing = startCrawler()
  await using refusing = startCrawler()
  refusing.statuses.push(429)
  const crawlers = crawlersFor(willing, refusing)
  expect(await crawlers.ask()).toEqual([
    { host: new URL(willing.url).host, accepted: true, detail: 'HTTP 200' },
    { host: new URL(refusing.url).host, accepted: false, detail: 'HTTP 429' },
  ])
  crawlers.stop()
})
