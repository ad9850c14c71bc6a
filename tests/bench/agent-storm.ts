/**
 * What a storm of registrations costs everybody else: percentiles of ordinary requests, idle and beside 100 anonymous
 * registrations a second for a minute, from enough addresses that no limit stops them. Then how many rows the storm
 * left, before and after the sweep.
 *
 *     bun tests/bench/agent-storm.ts
 */
import { createAccount, xrpc } from '../support/clients/account.ts'
import { confirmedAgent, openAgentClaim, registerAgent } from '../support/clients/agent.ts'
import { bearer, request } from '../support/clients/http.ts'
import { startPds } from '../support/servers/pds.ts'
import { countOf } from '../support/agent-rows.ts'

const SECONDS = 60
const PER_SECOND = 100
const ADDRESSES = 200
/** One in so many asks for a code as well. */
const CLAIMING = 10
/** Pause between ordinary requests, so that they measure waiting and not themselves. */
const PAUSE_MILLIS = 5

await using pds = await startPds(
  {
    agentAuth: { anonymousEnabled: true },
    rateLimit: { globalIpPer5min: 0, writePointsHourly: 0, writePointsDaily: 0 },
  },
  { strictTransactions: false },
)
const alice = await createAccount(pds, 'alice')
const agent = await confirmedAgent(pds, alice)
const collection = 'app.bsky.feed.post'
const record = { $type: collection, text: 'Hello!', createdAt: '2026-01-01T00:00:00.000Z' }
const json = { repo: alice.did, collection, record }
const { body: made } = await alice.call('com.atproto.repo.createRecord', { json })
const rkey = String(made.uri).split('/').at(-1)!

const kinds: Record<string, () => Promise<{ status: number }>> = {
  createRecord: () => alice.call('com.atproto.repo.createRecord', { json }),
  getRecord: () =>
    xrpc(pds, `com.atproto.repo.getRecord?${new URLSearchParams({ repo: alice.did, collection, rkey })}`),
  getSession: () => alice.call('com.atproto.server.getSession'),
  agentsOwn: () => request(`${pds.url}/xrpc/com.atproto.server.getSession`, { headers: bearer(agent.accessToken) }),
}

async function measure(seconds: number): Promise<Record<string, number[]>> {
  const millis: Record<string, number[]> = {}
  for (const end = performance.now() + seconds * 1000; performance.now() < end;) {
    for (const [kind, run] of Object.entries(kinds)) {
      const begun = performance.now()
      const { status } = await run()
      if (status !== 200) throw new Error(`${kind} answered ${status}`)
      ;(millis[kind] ??= []).push(performance.now() - begun)
      await Bun.sleep(PAUSE_MILLIS)
    }
  }
  return millis
}

const percentile = (values: number[], share: number) =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))]!

const answers = new Map<number, number>()
async function register(index: number): Promise<void> {
  const headers = { 'x-forwarded-for': `198.51.100.${index % ADDRESSES}` }
  const { status, body } = await registerAgent(pds, { type: 'anonymous' }, headers)
  answers.set(status, (answers.get(status) ?? 0) + 1)
  if (status === 200 && index % CLAIMING === 0) await openAgentClaim(pds, body.claim_token)
}

await measure(2)
const idle = await measure(SECONDS / 3)
const storm = (async () => {
  const begun = performance.now()
  for (let index = 0; index < SECONDS * PER_SECOND; index++) {
    void register(index)
    const ahead = (index * 1000) / PER_SECOND - (performance.now() - begun)
    if (ahead > 0) await Bun.sleep(ahead)
  }
})()
const beside = await measure(SECONDS)
await storm
for (const kind of Object.keys(kinds)) {
  const [before, during] = [idle[kind]!, beside[kind]!]
  const p99 = [percentile(before, 0.99), percentile(during, 0.99)] as const
  console.log(
    `${kind.padEnd(14)} p50 ${percentile(before, 0.5).toFixed(1)} → ${percentile(during, 0.5).toFixed(1)} ms, p99 ${p99[0].toFixed(1)} → ${p99[1].toFixed(1)} ms (${(p99[1] / p99[0]).toFixed(1)} times)`,
  )
}
console.log('answers', Object.fromEntries(answers), 'rows', await countOf(pds))
for (const secs of [600, 86_400]) {
  pds.clock.advance({ secs })
  const begun = performance.now()
  const report = await pds.runSweep('agent-claim-sweep')
  console.log(`sweep after ${secs} s: ${(performance.now() - begun).toFixed(0)} ms`, report, await countOf(pds))
}
process.exit(0)
