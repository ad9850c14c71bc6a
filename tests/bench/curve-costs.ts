/**
 * What a commit of an account with a secp256k1 key costs beside one of an account with a P-256 key: processor time, of
 * all threads of the server, which runs in this process. The two take turns, so that both meet the same machine.
 *
 *   bun tests/bench/curve-costs.ts [records in each repository, 10000]
 */
import { writeRecords, type RecordWriteInput } from '../../src/features/data/repo/record-writing.ts'
import { loadNativeK256, newSigningSecret } from '../../src/platform/secrets/signing-keys.ts'
import type { Did, Nsid } from '../../src/protocol/identifiers.ts'
import { k256InScript, signingKey, type Curve, type SigningKey } from '../../src/protocol/keys.ts'
import { createAccount } from '../support/clients/account.ts'
import { startPds } from '../support/servers/pds.ts'
import { sessionCaller } from '../support/clients/session-token.ts'
import { moveIn, stranger } from '../support/clients/stranger.ts'

const size = Number(process.argv[2] ?? 10_000)
const batch = 200
const rounds = 15
const commitsPerRound = 100
const collection = 'app.bsky.feed.post' as Nsid

const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!

/** Microseconds of processor time for each of `count` calls. */
async function cost(count: number, work: () => unknown): Promise<number> {
  const before = process.cpuUsage()
  for (let i = 0; i < count; i++) await work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / count
}

await using pds = await startPds({}, { strictTransactions: false })
const { ctx } = pds
const accounts: Record<Curve, Did> = {
  p256: (await createAccount(pds, 'alice')).did as Did,
  k256: (await moveIn(pds, await stranger(pds, 'k256'), 'bob')).did as Did,
}
const create = (): RecordWriteInput => ({
  action: 'create',
  collection,
  record: {
    $type: collection,
    text: `${Math.random()}`.padEnd(250, ' lorem ipsum'),
    createdAt: '2026-01-01T00:00:00.000Z',
    langs: ['en'],
  },
})
const callers = {
  [accounts.p256]: await sessionCaller(pds, accounts.p256),
  [accounts.k256]: await sessionCaller(pds, accounts.k256),
}
const commit = (did: Did, count: number) =>
  writeRecords(ctx, callers[did]!, did, { writes: Array.from({ length: count }, create) })
for (const did of Object.values(accounts))
  for (let written = 0; written < size; written += batch) await commit(did, batch)

console.log(
  `| ${size.toLocaleString('en')} records, µs of processor time | P-256 | secp256k1 | ratio |\n| --- | ---: | ---: | ---: |`,
)
for (const records of [1, 10]) {
  const costs: Record<Curve, number[]> = { p256: [], k256: [] }
  for (let round = 0; round <= rounds; round++) {
    for (const [curve, did] of Object.entries(accounts) as [Curve, Did][]) {
      const each = await cost(commitsPerRound, () => commit(did, records))
      // The first one warms up.
      if (round > 0) costs[curve].push(each)
    }
  }
  report(`commit of ${records} ${records === 1 ? 'record' : 'records'}`, median(costs.p256), median(costs.k256))
}

const message = new Uint8Array(200)
const signature = async (key: SigningKey) => {
  await cost(1000, () => key.sign(message))
  return cost(2000, () => key.sign(message))
}
const [p256, secret, native] = [
  signingKey('p256', newSigningSecret('p256')),
  newSigningSecret('k256'),
  loadNativeK256(),
]
const plain = await signature(p256)
if (native) report('signature, native library', plain, await signature(signingKey('k256', secret, native)))
report('signature, script', plain, await signature(signingKey('k256', secret, k256InScript)))

function report(what: string, p256: number, k256: number): void {
  console.log(`| ${what} | ${p256.toFixed(0)} | ${k256.toFixed(0)} | ${(k256 / p256).toFixed(2)} |`)
}
