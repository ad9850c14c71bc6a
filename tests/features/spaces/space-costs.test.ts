/** What requests to spaces cost, in statements, flushes, pages and rows, which are the same on every machine. */
import { Database as Connection } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { createAccount } from '../../support/clients/account.ts'
import { spaceApp } from '../../support/clients/space-app.ts'
import { startPdsOnFile } from '../../support/servers/file-pds.ts'
import type { TestPds } from '../../support/servers/server.ts'

const NOTE = 'test.forum.note'
const config = (enabled: boolean) => ({ spaces: { enabled }, rateLimit: { enabled: false } })
const SAMPLES = 10

interface Cost {
  statements: number
  commits: number
  /** Pages of the log. */
  pages: number
}

const none: Cost = { statements: 0, commits: 0, pages: 0 }

/** What requests cost, by what they do; of public writes alone, if there are no spaces. */
async function costs(pds: TestPds, hasSpaces: boolean): Promise<Record<string, Cost>> {
  const log = new Connection(join(pds.dataDir, 'holdfast.db'), { readonly: true })
  const pagesOfLog = () => log.query<{ log: number }, []>('PRAGMA wal_checkpoint(NOOP)').get()!.log
  const alice = await createAccount(pds, 'alice')
  const app = await spaceApp(pds, alice, 'repo:*', ...(hasSpaces ? ['space:*?authority=*&collection=*'] : []))
  const place = { space: `at://${alice.did}/space/test.forum.space/a`, repo: alice.did }
  const found: Record<string, Cost> = {}
  for (const [where, prefix, common] of [
    ['public', 'com.atproto.repo', { repo: alice.did }],
    ...(hasSpaces ? ([['space', 'com.atproto.space', place]] as const) : []),
  ] as const) {
    const create = (rkey: string) => ({
      $type: `${prefix}.applyWrites#create`,
      collection: NOTE,
      rkey,
      value: { text: rkey },
    })
    const record = (rkey: string, text: string) => ({ ...common, collection: NOTE, rkey, record: { text } })
    const requests: Record<string, (i: number) => [string, object]> = {
      'the first': () => ['createRecord', record('first', 'x')],
      createRecord: (i) => ['createRecord', record(`a${i}`, 'x')],
      putRecord: (i) => ['putRecord', record(`a${i}`, 'y')],
      deleteRecord: (i) => ['deleteRecord', { ...common, collection: NOTE, rkey: `a${i}` }],
      'applyWrites of 10': (i) => [
        'applyWrites',
        { ...common, writes: Array.from({ length: 10 }, (_, n) => create(`b${i}x${n}`)) },
      ],
      'applyWrites of 200': (i) => [
        'applyWrites',
        { ...common, writes: Array.from({ length: 200 }, (_, n) => create(`c${i}x${n}`)) },
      ],
    }
    for (const [name, made] of Object.entries(requests)) {
      const count = name === 'the first' ? 1 : SAMPLES
      const before = { ...pds.ctx.db.counters }
      let pages = 0
      for (let i = 0; i < count; i++) {
        const [method, json] = made(i)
        const from = pagesOfLog()
        expect([name, (await app.post(`${prefix}.${method}`, json)).status]).toEqual([name, 200])
        // The log may have begun anew.
        const to = pagesOfLog()
        pages += to >= from ? to - from : to
      }
      const { statements, commits } = pds.ctx.db.counters
      found[`${where}: ${name}`] = {
        statements: (statements - before.statements) / count,
        commits: (commits - before.commits) / count,
        pages: pages / count,
      }
    }
  }
  log.close()
  return found
}

test('a write in a space costs no more statements, flushes and pages than a public one, which costs what it did', async () => {
  const options = { strictTransactions: false }
  await using without = await startPdsOnFile(config(false), options)
  await using withSpaces = await startPdsOnFile(config(true), options)
  const [before, after] = [await costs(without, false), await costs(withSpaces, true)]
  const names = Object.keys(before)
  const inCounts = (all: Record<string, Cost>) =>
    Object.fromEntries(names.map((name) => [name, [all[name]!.statements, all[name]!.commits]]))
  expect(inCounts(after)).toEqual(inCounts(before))
  for (const name of names) {
    const [open, inSpace] = [after[name]!, after[name.replace('public', 'space')]!]
    // The first write in a space makes the repository, which a sign-up does for the public one.
    const allowed = name === 'public: the first' ? { statements: 1, commits: 0, pages: 3 } : { ...none }
    const more = (Object.keys(none) as (keyof Cost)[]).filter((what) => inSpace[what] > open[what] + allowed[what])
    expect({ name, open, inSpace, more }).toEqual({ name, open, inSpace, more: [] })
  }
})
