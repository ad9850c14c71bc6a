/** What writes in spaces cost beside public ones, in statements and flushes, which are the same on every machine. */
import { expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { spaceApp } from '../../support/clients/space-app.ts'
import { startPds, type TestPds } from '../../support/servers/pds.ts'

const NOTE = 'test.forum.note'
const config = (enabled: boolean) => ({ spaces: { enabled }, rateLimit: { enabled: false } })
const SAMPLES = 10

/** Statements and commits of a request, by what it does; of public writes alone, if there are no spaces. */
async function costs(
  pds: TestPds,
  hasSpaces: boolean,
): Promise<Record<string, { statements: number; commits: number }>> {
  const alice = await createAccount(pds, 'alice')
  const app = await spaceApp(pds, alice, 'repo:*', ...(hasSpaces ? ['space:*?authority=*&collection=*'] : []))
  const place = { space: `at://${alice.did}/space/test.forum.space/a`, repo: alice.did }
  const found: Record<string, { statements: number; commits: number }> = {}
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
      for (let i = 0; i < count; i++) {
        const [method, json] = made(i)
        expect([name, (await app.post(`${prefix}.${method}`, json)).status]).toEqual([name, 200])
      }
      const { statements, commits } = pds.ctx.db.counters
      found[`${where}: ${name}`] = {
        statements: (statements - before.statements) / count,
        commits: (commits - before.commits) / count,
      }
    }
  }
  return found
}

test('a write in a space costs no more statements and flushes than a public one, which costs what it did', async () => {
  await using without = await startPds(config(false), { onFile: true })
  await using withSpaces = await startPds(config(true), { onFile: true })
  const [before, after] = [await costs(without, false), await costs(withSpaces, true)]
  const names = Object.keys(before)
  expect(Object.fromEntries(names.map((name) => [name, after[name]]))).toEqual(before)
  for (const name of names) {
    const [open, inSpace] = [after[name]!, after[name.replace('public', 'space')]!]
    expect([name, inSpace.statements <= open.statements, inSpace.commits <= open.commits]).toEqual([name, true, true])
  }
})
