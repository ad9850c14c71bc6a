/**
 * How long each step of a commit takes, from the request to the frame that a subscriber receives, and how many
 * statements, round trips and flushes it makes. docs/design/path-of-a-commit.md explains the steps. Then the same
 * commits by several writers at once, who share flushes.
 *
 * bun tests/bench/commit-path.ts [records in the repository, 1000] TEST_DATABASE=postgres TEST_POSTGRES_FSYNC=on bun
 * tests/bench/commit-path.ts
 *
 * Client, subscriber and server are one process: the first and the last step include the work of the client.
 */
import { activeSigner } from '../../src/features/identity/account-keys/account-keys.ts'
import { prepareRecord } from '../../src/features/data/repo/record-preparation.ts'
import { writeRecords } from '../../src/features/data/repo/record-writing.ts'
import { listen } from '../../src/http/listener.ts'
import type { Sql, Tx } from '../../src/platform/database/database.ts'
import { parseCid } from '../../src/protocol/cid.ts'
import { signCommit, unsignedCommit } from '../../src/protocol/commit.ts'
import type { Did, Nsid, Tid } from '../../src/protocol/identifiers.ts'
import { createAccount, type TestAccount } from '../support/clients/account.ts'
import { startPds } from '../support/servers/pds.ts'
import { onPostgres } from '../support/servers/suite.ts'
import { sessionCaller } from '../support/clients/session-token.ts'

const RECORDS = Number(process.argv[2] ?? 1000)
const BATCH = 200
const WARM_UP = 100
const SAMPLES = 300
/** Rounds of calls to a part that is measured alone, and calls of each. */
const ROUNDS = 40
const CALLS = 50
const WRITERS = [1, 8, 64] as const
const collection = 'app.bsky.feed.post' as Nsid

/** What happens to one commit, in order. Each step ends with the mark of its name. */
const steps = {
  dispatched: 'The request arrives and is parsed',
  prepared: 'Limits, guard, body, lexicon, record',
  begun: 'A turn of the event loop; BEGIN',
  read: 'Account, key and head are read',
  built: 'The tree is changed, the commit signed, the event built',
  written: 'Record, head and event are written',
  committed: 'COMMIT hands the log over',
  durable: 'The log is flushed',
  answered: 'The response is built',
  received: 'The client has it',
} as const
type Step = keyof typeof steps

interface Cost {
  statements: number
  roundTrips: number
  commits: number
}

/** The marks of the commit under way; later marks replace earlier ones. */
let marks: Partial<Record<Step | 'sent' | 'framed', number>> = {}
const mark = (what: keyof typeof marks): void => void (marks[what] = performance.now())

await using pds = await startPds(
  { rateLimit: { enabled: false } },
  {
    strictTransactions: false,
    listen: (config, dispatcher) =>
      listen(config, {
        ...dispatcher,
        async dispatch(request, peer) {
          mark('dispatched')
          const response = await dispatcher.dispatch(request, peer)
          mark('answered')
          return response
        },
      }),
  },
)
const { ctx } = pds
const quantile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length * share)]!
const micros = (millis: number): string => (millis * 1000).toFixed(0)
/** The tenth part of the commits that were disturbed least, and half of them. */
const spread = (values: readonly number[]): string =>
  `${micros(quantile(values, 0.1))} | ${micros(quantile(values, 0.5))}`
const costs = (): Cost => ({ ...ctx.db.counters })
watchTransactions()

const alice = await createAccount(pds, 'alice')
const did = alice.did as Did
const post = (text: string) => ({
  $type: collection,
  text: text.padEnd(250, ' lorem ipsum'),
  createdAt: '2026-01-01T00:00:00.000Z',
})
await fill()
const socket = new WebSocket(`${pds.url.replace('http', 'ws')}/xrpc/com.atproto.sync.subscribeRepos`)
await new Promise((resolve) => socket.addEventListener('open', resolve, { once: true }))

await printSteps()
await printParts()
await printWriters()
socket.close()

/** Marks what the transaction of a commit does. Reads come before the tree is built, writes after. */
function watchTransactions(): void {
  const { db } = ctx
  const { transactionOn } = db
  db.transactionOn = <T>(lock: Parameters<typeof transactionOn>[0], work: (tx: Tx) => Promise<T>) => {
    mark('prepared')
    return transactionOn.call(db, lock, async (tx: Tx) => {
      mark('begun')
      let hasWritten = false
      const reading = async <R>(answer: Promise<R>): Promise<R> => {
        const row = await answer
        if (!hasWritten) mark('read')
        return row
      }
      tx.afterCommit(() => mark('durable'))
      const result = await work({
        all: <Row>(query: Sql) => reading(tx.all<Row>(query)),
        get: <Row>(query: Sql) => reading(tx.get<Row>(query)),
        run(query) {
          if (!hasWritten) mark('built')
          hasWritten = true
          return tx.run(query)
        },
        afterCommit: (act) => tx.afterCommit(act),
        turn: () => tx.turn(),
        known: tx.known,
      })
      mark('written')
      setImmediate(() => mark('committed'))
      return result
    }) as Promise<T>
  }
}

async function fill(): Promise<void> {
  const caller = await sessionCaller(pds, did)
  for (let written = 0; written < RECORDS; written += BATCH) {
    const writes = Array.from({ length: Math.min(BATCH, RECORDS - written) }, (_, i) => ({
      action: 'create' as const,
      collection,
      record: post(`${written + i}`),
    }))
    await writeRecords(ctx, caller, did, { writes })
  }
}

async function create(account: TestAccount): Promise<void> {
  const { status, body } = await account.call('com.atproto.repo.createRecord', {
    json: { repo: account.did, collection, record: post(`${Math.random()}`) },
  })
  if (status !== 200) throw new Error(JSON.stringify(body))
}

async function oneCommit(): Promise<typeof marks> {
  marks = {}
  const framed = new Promise<void>((resolve) =>
    socket.addEventListener(
      'message',
      () => {
        mark('framed')
        resolve()
      },
      { once: true },
    ),
  )
  mark('sent')
  await create(alice)
  mark('received')
  await framed
  return marks
}

async function printSteps(): Promise<void> {
  for (let i = 0; i < WARM_UP; i++) await oneCommit()
  const before = costs()
  const seen: (typeof marks)[] = []
  for (let i = 0; i < SAMPLES; i++) seen.push(await oneCommit())
  const after = costs()
  const names = Object.keys(steps) as Step[]
  console.log(
    `One writer, ${RECORDS.toLocaleString('en')} records, ${onPostgres ? 'PostgreSQL' : 'SQLite'}, ${SAMPLES} commits:\n`,
  )
  console.log('| Step | µs, 10th percentile | median |\n| --- | ---: | ---: |')
  // PostgreSQL hands the log over and flushes it in the COMMIT that it answers.
  const shown = onPostgres ? names.filter((name) => name !== 'committed') : names
  for (const [i, name] of shown.entries()) {
    const previous = i === 0 ? 'sent' : shown[i - 1]!
    console.log(`| ${steps[name]} | ${spread(seen.map((at) => at[name]! - at[previous]!))} |`)
  }
  console.log(`| From request to response | ${spread(seen.map((at) => at.received! - at.sent!))} |`)
  console.log(
    `| From the durable commit to the frame at a subscriber | ${spread(seen.map((at) => at.framed! - at.durable!))} |`,
  )
  const per = (name: keyof Cost) => ((after[name] - before[name]) / SAMPLES).toFixed(2)
  console.log(
    `\nFor each: ${per('statements')} statements, ${per('roundTrips')} round trips, ${per('commits')} flushes\n`,
  )
}

/** Parts of those steps, each alone in a loop. */
async function printParts(): Promise<void> {
  const { key } = await ctx.db.transaction((tx) => activeSigner(ctx, tx, did, null))
  const data = parseCid('bafyreie5737gdxlw5i64vzichcalba3z2v5n6icifvx5xytvske7mr3hpm')!
  const written = { collection, rkey: '3jzfcijpj2z2a', record: post('a post') }
  const parts: Record<string, () => unknown> = {
    'Validate, encode and hash a record (`prepareRecord`)': () => prepareRecord(ctx, written),
    'Sign a commit (`signCommit`)': () => signCommit(unsignedCommit(did, '3jzfcijpj2z2a' as Tid, data), key),
  }
  console.log('| Part | µs, 10th percentile | median |\n| --- | ---: | ---: |')
  for (const [name, work] of Object.entries(parts)) {
    const rounds: number[] = []
    for (let round = 0; round < ROUNDS; round++) {
      const startedAt = performance.now()
      for (let i = 0; i < CALLS; i++) await work()
      rounds.push((performance.now() - startedAt) / CALLS)
    }
    console.log(`| ${name} | ${spread(rounds)} |`)
  }
}

/** Each writer has an account of its own, and sends the next request after the response to the last. */
async function printWriters(): Promise<void> {
  const accounts = await Promise.all(
    Array.from({ length: Math.max(...WRITERS) }, (_, i) => createAccount(pds, `writer${i}`)),
  )
  console.log(
    '\n| Writers at once | commits a second | flushes for each commit | statements | round trips |\n| ---: | ---: | ---: | ---: | ---: |',
  )
  for (const writers of WRITERS) {
    const each = Math.ceil((SAMPLES * 2) / writers)
    const before = costs()
    const startedAt = performance.now()
    await Promise.all(
      accounts.slice(0, writers).map(async (account) => {
        for (let i = 0; i < each; i++) await create(account)
      }),
    )
    const secs = (performance.now() - startedAt) / 1000
    const after = costs()
    const per = (name: keyof Cost) => ((after[name] - before[name]) / (each * writers)).toFixed(2)
    console.log(
      `| ${writers} | ${((each * writers) / secs).toFixed(0)} | ${per('commits')} | ${per('statements')} | ${per('roundTrips')} |`,
    )
  }
}
