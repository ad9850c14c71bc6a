/**
 * What requests of an agent cost the server beside those of an app with a DPoP-bound token and those of a person:
 * processor time of all threads of the server, which runs in a process of its own, and statements, rows and flushes.
 * The kinds take turns, so that all meet the same machine. The AppView that is read from is in the process that
 * measures.
 *
 * bun tests/bench/agent-costs.ts
 */
import type { DatabaseCounters } from '../../src/platform/database/database.ts'
import { createLog } from '../../src/platform/running/log.ts'
import { createPost, DEFAULT_SCOPES, registerAgent, withAgents } from '../support/clients/registered-agent.ts'
import { createAccount, PASSWORD, xrpc } from '../support/clients/account.ts'
import { bearer } from '../support/clients/http.ts'
import { loopbackClientId, OAuthClient } from '../support/clients/oauth-client.ts'
import { startPds } from '../support/servers/pds.ts'
import { startUpstream } from '../support/servers/upstream.ts'

const ROUNDS = 9
const PER_ROUND = 300
/** Before the first round, so that what is measured is compiled. */
const WARMING = 1000

const APPVIEW = 'did:web:appview.test#bsky_appview'
const READ = 'app.bsky.feed.getTimeline'
/** A small picture. Each upload is another one. */
const BLOB_BYTES = 50_000

/** What the server tells when it is asked. */
interface Reading {
  url: string
  did: string
  person: string
  agent: string
  cpuMicros: number
  counters: DatabaseCounters
}

if (process.send === undefined) await measure()
else await serve()

async function serve(): Promise<void> {
  // Those of the program: what tests have in their place costs more than what is measured.
  const log = createLog({ format: 'json', level: 'info', now: Date.now, write: () => {} })
  const appview = { url: process.argv[2]!, did: APPVIEW }
  const pds = await startPds(
    { agentAuth: withAgents, appview, rateLimit: { enabled: false } },
    { strictTransactions: false, log },
  )
  const ann = await createAccount(pds, 'ann')
  const { token: agent } = await registerAgent(pds, ann, { scopes: DEFAULT_SCOPES })
  const read = async () => {
    await pds.ctx.background.settled()
    const { user, system } = process.cpuUsage()
    const reading: Reading = {
      url: pds.url,
      did: ann.did,
      person: ann.accessJwt,
      agent,
      cpuMicros: user + system,
      counters: { ...pds.ctx.db.counters },
    }
    process.send!(reading)
  }
  process.on(
    'message',
    (word) => void (word === 'stop' ? pds[Symbol.asyncDispose]().then(() => process.exit()) : read()),
  )
  await read()
}

async function measure(): Promise<void> {
  let told = Promise.withResolvers<Reading>()
  await using appview = startUpstream()
  appview.answer(READ, () => Response.json({ feed: [] }))
  const server = Bun.spawn([process.execPath, import.meta.path, appview.url], {
    stdio: ['ignore', 'inherit', 'inherit'],
    ipc: (reading: Reading) => told.resolve(reading),
  })
  const { url, did, person, agent } = await told.promise
  const reading = (): Promise<Reading> => {
    told = Promise.withResolvers()
    server.send('read')
    return told.promise
  }
  // An agent may read from the AppView without a scope for it.
  const scope = [...DEFAULT_SCOPES, `rpc:${READ}?aud=${APPVIEW}`].join(' ')
  let uploads = 0
  const blob = () => {
    const body = Buffer.alloc(BLOB_BYTES)
    body.writeUInt32BE(++uploads)
    return { method: 'POST', body, headers: { 'content-type': 'application/octet-stream' } }
  }
  const app = new OAuthClient({ url, clock: Date }, loopbackClientId(scope))
  const { access_token: granted } = await app.signIn({ identifier: 'ann.test', password: PASSWORD }, { scope })
  type Headings = Record<string, string> | undefined
  type Call = (nsid: string, init?: Parameters<typeof xrpc>[2]) => Promise<{ status: number }>
  const callers: Record<string, Call> = {
    person: (nsid, init) =>
      xrpc({ url }, nsid, { ...init, headers: { ...(init?.headers as Headings), ...bearer(person) } }),
    'app with DPoP': (nsid, init) => app.call(granted, nsid, {}, init),
    agent: (nsid, init) =>
      xrpc({ url }, nsid, { ...init, headers: { ...(init?.headers as Headings), ...bearer(agent) } }),
  }
  const requests: Record<string, (call: Call) => Promise<{ status: number }>> = {
    getSession: (call) => call('com.atproto.server.getSession'),
    createRecord: (call) => call('com.atproto.repo.createRecord', createPost(did)),
    'read through the proxy': (call) => call(READ),
    'upload of 50 kB': (call) => call('com.atproto.repo.uploadBlob', blob()),
  }
  const costs: Record<string, number[]> = {}
  const counted: Record<string, string> = {}
  for (let round = 0; round <= ROUNDS; round++) {
    const count = round === 0 ? WARMING : PER_ROUND
    for (const [request, send] of Object.entries(requests)) {
      for (const [caller, call] of Object.entries(callers)) {
        const name = `${request} | ${caller}`
        const before = await reading()
        for (let i = 0; i < count; i++) {
          const { status } = await send(call)
          if (status !== 200) throw new Error(`${name}: ${status}`)
        }
        const after = await reading()
        if (round === 0) continue
        ;(costs[name] ??= []).push((after.cpuMicros - before.cpuMicros) / count)
        const [of, by] = [before.counters, after.counters]
        counted[name] = [by.statements - of.statements, by.rows - of.rows, by.commits - of.commits]
          .map((total) => (total / count).toFixed(1))
          .join(' | ')
      }
    }
  }
  server.send('stop')
  await server.exited
  const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!
  console.log('| | | µs of processor time | statements | rows | flushes |\n| --- | --- | ---: | ---: | ---: | ---: |')
  for (const [name, measured] of Object.entries(costs))
    console.log(`| ${name} | ${median(measured).toFixed(0)} | ${counted[name]} |`)
}
