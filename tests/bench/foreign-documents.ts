/**
 * What documents and requests of strangers cost that were written to be expensive: how long the server takes to
 * respond, and the longest time that a request for its health takes beside it. The server is a process of its own.
 *
 * bun tests/bench/foreign-documents.ts
 */
import { createAccount } from '../support/clients/account.ts'
import { bearer, request } from '../support/clients/http.ts'
import { startLexiconAuthor } from '../support/servers/lexicon-author.ts'
import { loopbackClientId, OAuthClient } from '../support/clients/oauth-client.ts'
import { startPds } from '../support/servers/pds.ts'
import { startUpstream } from '../support/servers/upstream.ts'

const SLASHES = `${'/'.repeat(64_000)}x`
/** As many as 8192 characters hold, each a spelling of the last that is declared. */
const SCOPES = 420
const SET_ENTRIES = 12_000
const WRITES = 200
const WRITE_SCOPES = 240
const LOOK_MILLIS = 2

interface Start {
  author: string
  labeler: string
}
interface Started {
  url: string
  did: string
  password: string
  accessJwt: string
}

/** The server's side: starts at the first message, and runs the sweep over labelers at each further one. */
function serve(): void {
  process.on('disconnect', () => process.exit())
  let pds: Awaited<ReturnType<typeof startPds>> | null = null
  process.on('message', async (message: Start) => {
    if (pds === null) {
      pds = await startPds({
        rateLimit: { enabled: false },
        labeler: { watched: [{ did: message.labeler as never, labels: [] }] },
      })
      pds.dns.setTexts('_lexicon.notes.test', `did=${message.author}`)
      const { did, password, accessJwt } = await createAccount(pds, 'alice')
      process.send!({ url: pds.url, did, password, accessJwt } satisfies Started)
    } else process.send!(await pds.runSweep('labeler-watch'))
  })
}

/** A child, and what it says next. */
function startServer(start: Start) {
  const heard: unknown[] = []
  let hears: (() => void) | null = null
  const child = Bun.spawn([process.execPath, import.meta.path, 'serve'], {
    stdio: ['ignore', 'inherit', 'inherit'],
    ipc(message) {
      heard.push(message)
      hears?.()
    },
  })
  async function ask(message: unknown): Promise<unknown> {
    child.send(message)
    if (heard.length === 0) await new Promise<void>((resolve) => (hears = resolve))
    return heard.shift()
  }
  return { started: ask(start) as Promise<Started>, sweep: () => ask({}), stop: () => child.kill() }
}

/** Returns what the work returns, how long it took, and the slowest look at the health beside it. */
async function measured<T>(
  url: string,
  work: () => Promise<T>,
): Promise<{ result: T; millis: number; healthMillis: number }> {
  let isOver = false
  let healthMillis = 0
  const look = async () => {
    while (!isOver) {
      const askedAt = performance.now()
      await fetch(`${url}/xrpc/_health`)
      healthMillis = Math.max(healthMillis, performance.now() - askedAt)
      await Bun.sleep(LOOK_MILLIS)
    }
  }
  const looking = look()
  await Bun.sleep(10 * LOOK_MILLIS)
  const startedAt = performance.now()
  const result = await work()
  const millis = performance.now() - startedAt
  isOver = true
  await looking
  return { result, millis, healthMillis }
}

const numbered = (count: number, name: (i: number) => string) => Array.from({ length: count }, (_, i) => name(i))

async function compare(): Promise<void> {
  await using author = await startLexiconAuthor()
  await using hostileAuthor = startUpstream()
  await using service = startUpstream()
  await using labeler = startUpstream()
  hostileAuthor.services['atproto_pds'] = hostileAuthor.url + SLASHES
  const [{ publicKeyMultibase }] = author.document['verificationMethod'] as [{ publicKeyMultibase: string }]
  hostileAuthor.document['verificationMethod'] = [
    { id: '#atproto', type: 'Multikey', controller: hostileAuthor.did, publicKeyMultibase },
  ]
  service.services['test_service'] = service.url + SLASHES
  labeler.services['atproto_labeler'] = labeler.url + SLASHES
  for (const [name, entries] of [
    ['vast', SET_ENTRIES],
    ['wide', WRITE_SCOPES],
  ] as const) {
    const permissions = numbered(entries, (i) => `test.notes.r${i}`).map((collection) => ({
      type: 'permission',
      resource: 'repo',
      collection: [collection],
    }))
    await author.publish(`test.notes.${name}`, {
      lexicon: 1,
      id: `test.notes.${name}`,
      defs: { main: { type: 'permission-set', permissions } },
    })
  }

  const rows: Record<string, object> = {}
  const note = async <T>(
    name: string,
    url: string,
    work: () => Promise<T>,
    shown: (result: T) => unknown,
  ): Promise<T> => {
    const { result, millis, healthMillis } = await measured(url, work)
    rows[name] = { ms: Math.round(millis), 'health beside, ms': Math.round(healthMillis), response: shown(result) }
    return result
  }
  const status = ({ status: code, body }: Awaited<ReturnType<typeof request>>) => `${code} ${body?.error ?? ''}`.trim()

  const bad = startServer({ author: hostileAuthor.did, labeler: labeler.did })
  const { url, accessJwt } = await bad.started
  const clock = { now: () => Date.now() }
  const asking = (scope: string) => new OAuthClient({ url, clock }, loopbackClientId(scope)).push({ scope })
  await note(
    'nothing',
    url,
    () => Bun.sleep(500),
    () => '',
  )
  await note('one PAR, author at 64 KiB of slashes', url, () => asking('atproto include:test.notes.auth'), status)
  const proxied = () =>
    request(`${url}/xrpc/test.notes.list`, {
      headers: { ...bearer(accessJwt), 'atproto-proxy': `${service.did}#test_service` },
    })
  await note(
    'five atproto-proxy requests',
    url,
    () => Promise.all(Array.from({ length: 5 }, proxied)),
    ([one]) => status(one!),
  )
  await note('one pass over a labeler', url, bad.sweep, (report) => JSON.stringify(report))
  bad.stop()

  const good = startServer({ author: author.did, labeler: labeler.did })
  const started = await good.started
  const client = (scope: string) => new OAuthClient({ url: started.url, clock }, loopbackClientId(scope))
  const person = { identifier: started.did, password: started.password }
  const declared = ['atproto', ...numbered(SCOPES, (i) => `blob:a/a${i}`)].join(' ')
  const spelled = ['atproto', ...numbered(SCOPES, () => `blob?accept=a/a${SCOPES - 1}`)].join(' ')
  await note(`one PAR, ${SCOPES} scopes`, started.url, () => client(declared).push({ scope: spelled }), status)

  const vast = 'atproto include:test.notes.vast'
  const vastClient = client(vast)
  const pushed = await note(
    `one PAR, a set of ${SET_ENTRIES}`,
    started.url,
    () => vastClient.push({ scope: vast }),
    status,
  )
  if (pushed.status === 201) {
    const page = () => request(vastClient.authorizeUrl(pushed.body.request_uri))
    await note('its consent page', started.url, page, ({ body }) => `${String(body).length} characters`)
    await note(
      'its access token',
      started.url,
      () => vastClient.signIn(person, { scope: vast }),
      (tokens) => `${tokens.access_token.length} characters`,
    )
  }

  const wide = 'atproto include:test.notes.wide'
  const writer = client(wide)
  const { access_token: token } = await writer.signIn(person, { scope: wide })
  const collection = `test.notes.r${WRITE_SCOPES - 1}`
  const writes = numbered(WRITES, (i) => String(i)).map((rkey) => ({
    $type: 'com.atproto.repo.applyWrites#create',
    collection,
    rkey: `r${rkey}`,
    value: { $type: collection },
  }))
  const apply = () =>
    writer.call(token, 'com.atproto.repo.applyWrites', {}, { json: { repo: started.did, validate: false, writes } })
  await note(`${WRITES} writes under ${WRITE_SCOPES} scopes`, started.url, apply, status)
  good.stop()
  console.table(rows)
}

if (process.argv[2] === 'serve') serve()
else {
  await compare()
  process.exit()
}
