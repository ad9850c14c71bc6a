/**
 * What a commit costs in things that do not depend on the machine: statements, rows, flushes, pages of the log.
 *
 *   bun tests/bench/commit-costs.ts [records in the repository, 10000]
 */
import { Database as Connection } from 'bun:sqlite'
import { join } from 'node:path'
import { writeRecords } from '../../src/features/repo/repo.ts'
import type { RecordWriteInput } from '../../src/features/repo/record-writing.ts'
import type { Did, Nsid, RecordKey } from '../../src/protocol/identifiers.ts'
import { createAccount } from '../harness/account.ts'
import { startPds } from '../harness/pds.ts'

const size = Number(process.argv[2] ?? 10_000)
const batch = 200
const samples = 100

await using pds = await startPds({}, { strictTransactions: false })
const { ctx } = pds
const did = (await createAccount(pds, 'alice')).did as Did
const log = new Connection(join(pds.dataDir, 'holdfast.db'), { readonly: true })
const collection = 'app.bsky.feed.post' as Nsid
const post = (text: string) => ({ $type: collection, text: text.padEnd(250, ' lorem ipsum'), createdAt: '2026-01-01T00:00:00.000Z', langs: ['en'] })

const pages = () => log.query<{ log: number }, []>('PRAGMA wal_checkpoint(NOOP)').get()!.log
const commit = (writes: RecordWriteInput[]) => writeRecords(ctx, { permissions: null }, did, { writes })
const create = (text: string): RecordWriteInput => ({ action: 'create', collection, record: post(text) })

const rkeys: RecordKey[] = []
for (let written = 0; written < size; written += batch) {
  const { results } = await commit(Array.from({ length: Math.min(batch, size - written) }, (_, i) => create(`${written + i}`)))
  rkeys.push(...results.map(({ uri }) => uri.split('/').at(-1) as RecordKey))
}
/** Any of the records, each once. */
const anyKey = () => rkeys.splice((rkeys.length * 7919) % 6151 % rkeys.length, 1)[0]!

const kinds: Record<string, () => RecordWriteInput[]> = {
  createRecord: () => [create(`${Math.random()}`)],
  putRecord: () => [{ action: 'put', collection, rkey: anyKey(), record: post(`${Math.random()}`) }],
  deleteRecord: () => [{ action: 'delete', collection, rkey: anyKey(), lenient: true }],
  'applyWrites of 10': () => Array.from({ length: 10 }, () => create(`${Math.random()}`)),
  'applyWrites of 200': () => Array.from({ length: batch }, () => create(`${Math.random()}`)),
}

console.log(`| ${size.toLocaleString('en')} records | statements | flushes | pages of the log |\n| --- | ---: | ---: | ---: |`)
for (const [name, writes] of Object.entries(kinds)) {
  const before = { ...ctx.db.counters }
  let written = 0
  for (let i = 0; i < samples; i++) {
    const from = pages()
    await commit(writes())
    // The log may have begun anew.
    written += pages() >= from ? pages() - from : pages()
  }
  const per = (count: number) => (count / samples).toFixed(1)
  const { statements, commits } = ctx.db.counters
  console.log(`| ${name} | ${per(statements - before.statements)} | ${per(commits - before.commits)} | ${per(written)} |`)
}
log.close()
