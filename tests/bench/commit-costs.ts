/**
 * What a commit costs in things that do not depend on the machine: statements, rows, flushes, bytes of the log, memory
 * that the collector has to see to.
 *
 *   bun tests/bench/commit-costs.ts [records in the repository, 10000]
 *
 * It starts itself again with the runtime's log of collections switched on, which tells how much was allocated.
 */
import { writeSync } from 'node:fs'
import { Database as Connection } from 'bun:sqlite'
import { join } from 'node:path'
import { writeRecords, type RecordWriteInput } from '../../src/features/data/repo/record-writing.ts'
import type { Did, Nsid, RecordKey } from '../../src/protocol/identifiers.ts'
import { createAccount } from '../support/clients/account.ts'
import { countedGarbage, garbageIn } from '../support/request-cost.ts'
import { startPds } from '../support/servers/pds.ts'
import { sessionCaller } from '../support/clients/session-token.ts'

const size = Number(process.argv[2] ?? 10_000)
const batch = 200
const samples = 400
/** Bytes of a page in the log, with the head of its frame. */
const frameBytes = 4096 + 24
const collection = 'app.bsky.feed.post' as Nsid
const kinds = ['createRecord', 'putRecord', 'deleteRecord', 'applyWrites of 10', 'applyWrites of 200'] as const
type Kind = (typeof kinds)[number]

/** Stands in the log of collections before the commits of a kind, and behind the last of them. */
const marker = 'MEASURED '

if (process.env.BUN_JSC_logGC === undefined) {
  const child = Bun.spawn(['bun', import.meta.path, String(size)], {
    env: { ...process.env, ...countedGarbage },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, log] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  if ((await child.exited) !== 0) throw new Error(out + log)
  const [, ...logs] = log.split(marker)
  console.log(
    `| ${size.toLocaleString('en')} records | statements | rows | flushes | kB of the log | kB allocated |\n| --- | ---: | ---: | ---: | ---: | ---: |`,
  )
  for (const [i, line] of out.trim().split('\n').entries())
    console.log(`${line} ${(garbageIn(logs[i]!) / samples).toFixed(0)} |`)
} else {
  await measure()
}

async function measure(): Promise<void> {
  await using pds = await startPds({}, { strictTransactions: false })
  const { ctx } = pds
  const did = (await createAccount(pds, 'alice')).did as Did
  const log = new Connection(join(pds.dataDir, 'holdfast.db'), { readonly: true })
  const post = (text: string) => ({
    $type: collection,
    text: text.padEnd(250, ' lorem ipsum'),
    createdAt: '2026-01-01T00:00:00.000Z',
    langs: ['en'],
  })

  const pages = () => log.query<{ log: number }, []>('PRAGMA wal_checkpoint(NOOP)').get()!.log
  const caller = await sessionCaller(pds, did)
  const commit = (writes: RecordWriteInput[]) => writeRecords(ctx, caller, did, { writes })
  const create = (text: string): RecordWriteInput => ({ action: 'create', collection, record: post(text) })

  const rkeys: RecordKey[] = []
  for (let written = 0; written < size; written += batch) {
    const { results } = await commit(
      Array.from({ length: Math.min(batch, size - written) }, (_, i) => create(`${written + i}`)),
    )
    rkeys.push(...results.map(({ uri }) => uri.split('/').at(-1) as RecordKey))
  }
  /** Any of the records, each once. */
  const anyKey = () => rkeys.splice(((rkeys.length * 7919) % 6151) % rkeys.length, 1)[0]!

  const writesOf: Record<Kind, () => RecordWriteInput[]> = {
    createRecord: () => [create(`${Math.random()}`)],
    putRecord: () => [{ action: 'put', collection, rkey: anyKey(), record: post(`${Math.random()}`) }],
    deleteRecord: () => [{ action: 'delete', collection, rkey: anyKey(), lenient: true }],
    'applyWrites of 10': () => Array.from({ length: 10 }, () => create(`${Math.random()}`)),
    'applyWrites of 200': () => Array.from({ length: batch }, () => create(`${Math.random()}`)),
  }

  const mark = () => {
    Bun.gc(true)
    writeSync(process.stderr.fd, marker)
  }
  for (const kind of kinds) {
    let written = 0
    mark()
    const before = { ...ctx.db.counters }
    for (let i = 0; i < samples; i++) {
      const from = pages()
      await commit(writesOf[kind]())
      // The log may have begun anew.
      written += pages() >= from ? pages() - from : pages()
    }
    const { statements, rows, commits } = ctx.db.counters
    const per = (count: number) => (count / samples).toFixed(1)
    console.log(
      `| ${kind} | ${per(statements - before.statements)} | ${per(rows - before.rows)} | ${per(commits - before.commits)} | ${((written * frameBytes) / samples / 1000).toFixed(0)} |`,
    )
  }
  mark()
  log.close()
}
