/**
 * What a test file may ask for: a server with services around it. Libraries of parts that it does not ask for are not
 * loaded, which would take as long as those of the server.
 */
import { afterAll, afterEach, beforeAll, beforeEach, setDefaultTimeout } from 'bun:test'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { createOutbound } from '../../src/platform/network/outbound.ts'
import { startFaultyLine, type FaultyLine } from './faults/faulty-line.ts'
import type { BucketHost } from './servers/bucket-host.ts'
import type { ConfigOverrides } from './servers/config.ts'
import { startWebHost, type WebHost } from './servers/did-web-host.ts'
import { fakeDns, type FakeDns } from './servers/dns.ts'
import type { LexiconAuthor } from './servers/lexicon-author.ts'
import type { ServerOptions, TestPds } from './servers/server.ts'
import type { PlcHost } from './servers/plc-server.ts'
import { startUpstream, type Upstream } from './servers/upstream.ts'
import { prepare, type Prepared } from './set-up.ts'

interface Parts {
  /** A real directory, which the server uses. */
  plc: PlcHost
  /** The line from the server to the directory. */
  line: FaultyLine
  /** What names mean to a server that reaches `web`. */
  dns: FakeDns
  /** Web sites that the server reaches. */
  web: WebHost
  bucket: BucketHost
  /** Publishes lexicons. */
  author: LexiconAuthor
  /** The AppView and the chat service of the configuration. */
  appview: Upstream
  chat: Upstream
  /** Services that the server does not know before. */
  labeler: Upstream
  moderation: Upstream
  other: Upstream
  pds: TestPds
}

type Name = keyof Parts

/** Parts that need another one. */
const needs = { line: 'plc', web: 'dns' } as const satisfies { readonly [Each in Name]?: Name }
type Needed<Asked> = (typeof needs)[Extract<keyof Asked, keyof typeof needs>]

/** Starts the server itself. */
type StartServer<Options extends ServerOptions> = (config?: ConfigOverrides, options?: Options) => Promise<TestPds>

interface Part<Value> {
  start(parts: Parts, wishes: Wishes, startServer: StartServer<ServerOptions>): Value | Promise<Value>
  /** Undoes what a test has done to it, before the next one. */
  reset?(part: Value): void
}

const service: Part<Upstream> = {
  start: startUpstream,
  reset(upstream) {
    upstream.received.length = 0
  },
}

/** In the order in which they start. */
const table: { readonly [Each in Name]: Part<Parts[Each]> } = {
  plc: { start: async () => (await import('./servers/plc-server.ts')).startPlcServer() },
  line: {
    start: ({ plc }) => startFaultyLine(plc.url),
    reset(line) {
      line.fate = () => 'answered'
    },
  },
  dns: { start: (_, { web = [] }) => dnsWith(web) },
  web: { start: () => startWebHost() },
  bucket: {
    start: async () => (await import('./servers/bucket-host.ts')).startBucket(),
    reset(bucket) {
      bucket.fault = null
      bucket.intercept = null
    },
  },
  author: {
    ...service,
    start: async () => (await import('./servers/lexicon-author.ts')).startLexiconAuthor(),
  },
  appview: service,
  chat: service,
  labeler: service,
  moderation: service,
  other: service,
  pds: {
    async start(parts, wishes, startServer) {
      const pds = await startServer(configFor(parts, wishes), { ...reaching(parts), ...optionsOf(wishes) })
      return parts.dns === undefined ? pds : Object.assign(pds, { dns: parts.dns })
    },
  },
}

interface Wishes<Options extends ServerOptions = ServerOptions> extends Partial<
  Record<Exclude<Name, 'pds' | 'dns' | 'web'>, true>
> {
  /** The hosts of web sites that exist from the start. */
  web?: readonly string[]
  /** A function is called once everything but the server runs. */
  config?: ConfigOverrides | ((parts: Parts) => ConfigOverrides)
  options?: Options
  /** A headless browser. */
  browser?: true
  /** Starts everything but the browser anew for each test. */
  eachTest?: true
}

type World<Asked extends Wishes> = Pick<Parts, 'pds' | Extract<keyof Asked, Name> | Needed<Asked>> &
  (Asked extends { browser: true } ? { freshPage: (options?: BrowserContextOptions) => Promise<Page> } : unknown)

/**
 * Returns a function that starts a server before the tests of the file or group, with the parts that are asked for, and
 * stops them all after them. Between tests, lines and buckets work again, and services forget what they received. The
 * function returns what stands for each part from the start; see `setUp`.
 */
export const worldOf =
  <Options extends ServerOptions>(startServer: StartServer<Options>) =>
  <const Asked extends Wishes<Options>>(wishes: Asked = {} as Asked): World<Asked> => {
    const freshPage = wishes.browser ? useBrowser() : undefined
    const parts: Partial<Parts> = {}
    const names = Object.keys(table) as Name[]
    const asked = new Set<string>(['pds', ...Object.keys(wishes)])
    for (const [part, needed] of Object.entries(needs)) if (asked.has(part)) asked.add(needed)
    const prepared: Prepared<object>[] = []
    const add = <Each extends Name>(name: Each) => {
      const { start, reset } = table[name]
      const part = prepare<Parts[Each]>(() => start(parts as Parts, wishes, startServer as StartServer<ServerOptions>))
      parts[name] = part.standIn
      prepared.push(part)
      if (reset !== undefined && !wishes.eachTest) beforeEach(() => reset(part.standIn))
    }
    for (const name of names) if (asked.has(name)) add(name)
    const [before, after] = wishes.eachTest ? [beforeEach, afterEach] : [beforeAll, afterAll]
    before(async () => {
      for (const part of prepared) await part.start()
    })
    after(async () => {
      for (const part of prepared.toReversed()) await part.end()
    })
    return { ...parts, freshPage } as World<Asked>
  }

function configFor(parts: Partial<Parts>, { config = {} }: Wishes): ConfigOverrides {
  const { line, plc, appview, chat } = parts
  const directory = line ?? plc
  return {
    ...(directory && { plcDirectoryUrl: directory.url }),
    ...(appview && { appview: { url: appview.url, did: 'did:web:appview.test#bsky_appview' } }),
    ...(chat && { chat: { url: chat.url, did: 'did:web:chat.test#bsky_chat' } }),
    ...(typeof config === 'function' ? config(parts as Parts) : config),
  }
}

/** The server of a single test waits for no connection that the test has left open. */
const optionsOf = ({ eachTest, options }: Wishes) => ({ ...(eachTest && { stopGraceMillis: 0 }), ...options })

function dnsWith(hosts: readonly string[]): FakeDns {
  const dns = fakeDns()
  for (const host of hosts) dns.setAddresses(host, '127.0.0.1')
  return dns
}

function reaching({ dns, web }: Partial<Parts>): ServerOptions {
  if (dns === undefined || web === undefined) return {}
  const outbound = createOutbound({
    resolver: dns,
    reach: 'loopback',
    httpsPort: web.port,
    certificateAuthorities: web.authority,
  })
  return { resolver: dns, outbound }
}

/** A browser on a busy machine takes its time. */
const BROWSER_TEST_MILLIS = 60_000

/** Starts a browser beside the servers. Returns a function that opens a page, which is closed after the test. */
function useBrowser(): (options?: BrowserContextOptions) => Promise<Page> {
  setDefaultTimeout(BROWSER_TEST_MILLIS)
  const clients = import('./clients/browser.ts')
  let browser: Promise<Browser> | null = null
  const opened: Page[] = []
  beforeAll(() => {
    browser = clients.then(({ openBrowser }) => openBrowser())
    // The first page reports it.
    browser.catch(() => null)
  })
  afterEach(async () => {
    const { leavePage } = await clients
    await Promise.all(opened.splice(0).map(leavePage))
  })
  afterAll(async () => (await browser)?.close())
  return async (options) => {
    const { freshPage } = await clients
    const page = await freshPage((await browser)!, options)
    opened.push(page)
    return page
  }
}
