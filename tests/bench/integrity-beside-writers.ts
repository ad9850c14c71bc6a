/**
 * What the running check costs writers: how long createRecord takes for 8 clients while passes of the check follow one
 * another without a pause, each with its share of a core, beside the same without it; and how many statements and
 * commits the server makes for each record.
 *
 *     bun tests/bench/integrity-beside-writers.ts [--secs 5] [--rounds 3] [--records 20000] [--percent 100]
 *     TEST_DATABASE=postgres bun tests/bench/integrity-beside-writers.ts
 *
 * `--percent`: what a pass may use of a core; 100 is the worst case, and 2 the default of the server. Rounds alternate.
 */
import { parseArgs } from 'node:util'
import { createAccount } from '../support/clients/account.ts'
import { startPds } from '../support/servers/pds.ts'

const { values: options } = parseArgs({
  options: {
    secs: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '3' },
    records: { type: 'string', default: '20000' },
    percent: { type: 'string', default: '100' },
  },
})
const WRITERS = 8
const BATCH = 200
const collection = 'com.example.note'

await using pds = await startPds({
  integrity: { roundSecs: 60, cpuPercent: Number(options.percent) },
  rateLimit: { enabled: false },
})
const large = await createAccount(pds, 'large')
for (let at = 0; at < Number(options.records); at += BATCH) {
  const writes = Array.from({ length: BATCH }, (_, i) => ({
    $type: 'com.atproto.repo.applyWrites#create',
    collection,
    rkey: `note${at + i}`,
    value: { text: `note ${at + i}` },
  }))
  await large.call('com.atproto.repo.applyWrites', { json: { repo: large.did, writes } })
}
const writers = await Promise.all(Array.from({ length: WRITERS }, (_, i) => createAccount(pds, `writer${i}`)))

interface Round {
  millis: number[]
  statements: number
  commits: number
  passes: number
  repos: number
}

async function round(isChecking: boolean): Promise<Round> {
  const { counters } = pds.ctx.db
  const [statements, commits] = [counters.statements, counters.commits]
  const end = performance.now() + Number(options.secs) * 1000
  const millis: number[] = []
  let [passes, repos] = [0, 0]
  const check = async () => {
    while (isChecking && performance.now() < end) {
      // A new round each time, so that there is always something to read.
      pds.clock.advance({ secs: 60 })
      const report = await pds.runSweep('integrity')
      passes++
      repos += Number(report['repos'])
    }
  }
  const write = async ({ did, call }: (typeof writers)[number]) => {
    while (performance.now() < end) {
      const began = performance.now()
      const { status } = await call('com.atproto.repo.createRecord', {
        json: { repo: did, collection, record: { text: 'a note' } },
      })
      if (status !== 200) throw new Error(`a write is answered with ${status}`)
      millis.push(performance.now() - began)
    }
  }
  await Promise.all([check(), ...writers.map(write)])
  return { millis, statements: counters.statements - statements, commits: counters.commits - commits, passes, repos }
}

const all = { without: [] as Round[], with: [] as Round[] }
await round(false)
for (let i = 0; i < Number(options.rounds); i++) {
  all.without.push(await round(false))
  all.with.push(await round(true))
}
const at = (sorted: readonly number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]!.toFixed(1)
for (const [name, rounds] of Object.entries(all)) {
  const millis = rounds.flatMap((one) => one.millis).toSorted((a, b) => a - b)
  const sum = (of: (one: Round) => number) => rounds.reduce((total, one) => total + of(one), 0)
  console.log(
    `${name.padEnd(8)} ${millis.length} writes: median ${at(millis, 0.5)} ms, 99 % ${at(millis, 0.99)} ms, longest ${at(millis, 1)} ms; ` +
      `${(sum((one) => one.statements) / millis.length).toFixed(2)} statements and ${(sum((one) => one.commits) / millis.length).toFixed(2)} commits for each; ` +
      `${sum((one) => one.passes)} passes, ${sum((one) => one.repos)} repositories`,
  )
}
