/**
 * What requests of an agent cost the server beside those of an app with a DPoP-bound token and those of a person:
 * processor time of all threads of the server, which runs in a process of its own, and statements, rows and flushes.
 * The kinds take turns, so that all meet the same machine.
 *
 *   bun tests/bench/agent-costs.ts
 */
import type { DatabaseCounters } from '../../src/platform/database/database.ts'
import { createLog } from '../../src/platform/running/log.ts'
import { createPost, DEFAULT_SCOPES, registerAgent, withAgents } from '../agents/registered-agent.ts'
import { createAccount, PASSWORD, xrpc } from '../harness/account.ts'
import { bearer } from '../harness/http.ts'
import { loopbackClientId, OAuthClient } from '../harness/oauth-client.ts'
import { startPds } from '../harness/pds.ts'

const ROUNDS = 9
const PER_ROUND = 300
/** Before the first round, so that what is measured is compiled. */
const WARMING = 1000

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
  const pds = await startPds({ agentAuth: withAgents, rateLimit: { enabled: false } }, { strictTransactions: false, log })
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
  process.on('message', (word) => void (word === 'stop' ? pds[Symbol.asyncDispose]().then(() => process.exit()) : read()))
  await read()
}

async function measure(): Promise<void> {
  let told = Promise.withResolvers<Reading>()
  const server = Bun.spawn([process.execPath, import.meta.path], {
    stdio: ['ignore', 'inherit', 'inherit'],
    ipc: (reading: Reading) => told.resolve(reading),
  })
  const { url, did, person, agent } = await told.promise
  const reading = (): Promise<Reading> => {
    told = Promise.withResolvers()
    server.send('read')
    return told.promise
  }
  const scope = DEFAULT_SCOPES.join(' ')
  const app = new OAuthClient({ url, clock: Date }, loopbackClientId(scope))
  const { access_token: granted } = await app.signIn({ identifier: 'ann.test', password: PASSWORD }, { scope })
  type Call = (nsid: string, init?: Parameters<typeof xrpc>[2]) => Promise<{ status: number }>
  const callers: Record<string, Call> = {
    person: (nsid, init) => xrpc({ url }, nsid, { ...init, headers: bearer(person) }),
    'app with DPoP': (nsid, init) => app.call(granted, nsid, {}, init),
    agent: (nsid, init) => xrpc({ url }, nsid, { ...init, headers: bearer(agent) }),
  }
  const requests: Record<string, (call: Call) => Promise<{ status: number }>> = {
    getSession: (call) => call('com.atproto.server.getSession'),
    createRecord: (call) => call('com.atproto.repo.createRecord', createPost(did)),
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
  for (const [name, measured] of Object.entries(costs)) console.log(`| ${name} | ${median(measured).toFixed(0)} | ${counted[name]} |`)
}
