/** Watched labelers flag hosted accounts. */
import { beforeAll, beforeEach, expect, test } from 'bun:test'
import { deleteAccount } from '../../../src/features/identity/account-changes/account-changes.ts'
import { countFlaggedAccounts, findFlags } from '../../../src/features/data/labels/labels.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { startUpstream, type Upstream } from '../../support/servers/upstream.ts'
import { seedAccount } from '../../support/clients/seed-account.ts'
import { setUp } from '../../support/set-up.ts'
import { thrownBy } from '../../support/thrown.ts'
import { useWorld } from '../../support/world.ts'

let dids: Did[]
/** What the labelers say, by labeler. */
const said = new Map<string, object[]>()

const first = setUp(startUpstream)
const second = setUp(startUpstream)
const { pds } = useWorld({
  config() {
    // Before the server starts: it keeps the documents that it reads.
    for (const labeler of [first, second]) labeler.services['atproto_labeler'] = labeler.url
    return {
      labeler: {
        watched: [
          { did: first.did, labels: [] },
          { did: second.did, labels: ['rude'] },
        ],
      },
    }
  },
})
beforeAll(async () => {
  dids = []
  for (let i = 0; i < 21; i++) dids.push((await seedAccount(pds, `user${i}`)).did)
  // The pass of the start may be under way: the next one is another.
  await sweep()
})
beforeEach(() => {
  said.clear()
  for (const labeler of [first, second]) {
    labeler.received.length = 0
    labeler.answer('com.atproto.label.queryLabels', (request) => {
      const asked = new URL(request.url).searchParams.getAll('uriPatterns')
      return Response.json({
        labels: (said.get(labeler.did) ?? []).filter((label) => asked.includes((label as { uri: string }).uri)),
      })
    })
  }
})

const label = (labeler: Upstream, did: Did, val: string, more: object = {}) => ({
  src: labeler.did,
  uri: did,
  val,
  cts: '2026-01-01T00:00:00.000Z',
  ...more,
})
const sweep = () => pds.runSweep('labeler-watch')
const flags = async () =>
  (await findFlags(pds.ctx.db, dids, pds.clock.now()))
    .map(({ did, val, labeler }) => [dids.indexOf(did), val, labeler])
    .sort()

test('every account is asked about, twenty at a time and without a token', async () => {
  expect(await sweep()).toEqual({ swept: 0, errors: 0 })
  const questions = first.received.map(({ path }) => new URL(path, first.url).searchParams)
  expect(questions.map((params) => params.getAll('uriPatterns').length)).toEqual([20, 1])
  expect(questions.flatMap((params) => params.getAll('uriPatterns')).sort()).toEqual([...dids].sort())
  expect(questions[0]!.getAll('sources')).toEqual([first.did])
  expect(questions[0]!.get('limit')).toBe('250')
  expect(first.received.some(({ headers }) => headers.has('authorization'))).toBe(false)
})

test('flags come and go with the labels', async () => {
  said.set(first.did, [label(first, dids[0]!, 'spam'), label(first, dids[20]!, 'rude')])
  said.set(second.did, [label(second, dids[0]!, 'spam'), label(second, dids[1]!, 'rude')])
  expect(await sweep()).toEqual({ swept: 3, errors: 0 })
  expect(await flags()).toEqual([
    [0, 'spam', first.did],
    [1, 'rude', second.did],
    [20, 'rude', first.did],
  ])
  expect(await countFlaggedAccounts(pds.ctx.db, pds.clock.now())).toBe(3)
  expect(await sweep()).toEqual({ swept: 0, errors: 0 })

  said.set(first.did, [label(first, dids[0]!, 'spam', { exp: new Date(pds.clock.now() + 60_000).toISOString() })])
  said.delete(second.did)
  expect(await sweep()).toEqual({ swept: 3, errors: 0 })
  expect(await flags()).toEqual([[0, 'spam', first.did]])
})

test('a flag that runs out is not shown, whether or not a pass came by', async () => {
  said.set(first.did, [label(first, dids[0]!, 'spam', { exp: new Date(pds.clock.now() + 60_000).toISOString() })])
  await sweep()
  expect(await flags()).toHaveLength(1)
  pds.clock.advance({ secs: 61 })
  expect(await flags()).toEqual([])
  expect(await countFlaggedAccounts(pds.ctx.db, pds.clock.now())).toBe(0)
  expect(await sweep()).toEqual({ swept: 1, errors: 0 })
})

test('flags go with the account', async () => {
  const { did } = await seedAccount(pds, 'leaver')
  said.set(first.did, [label(first, did, 'spam')])
  await sweep()
  await deleteAccount(pds, did)
  expect(await pds.rows('account_flag', { did })).toEqual([])
})

test('an account that is deleted while a labeler answers gets no flag and no case', async () => {
  const { did } = await seedAccount(pds, 'just-left')
  first.answer('com.atproto.label.queryLabels', async () => {
    await deleteAccount(pds, did)
    return Response.json({ labels: [label(first, did, 'spam')] })
  })
  await sweep()
  for (const table of ['account_flag', 'moderation_case'] as const)
    expect([table, await pds.count(table, { did })]).toEqual([table, 0])
})

test('many new labels become as many flags and cases', async () => {
  const vals = Array.from({ length: 250 }, (_, i) => `val-${i}`)
  said.set(
    first.did,
    vals.map((val) => label(first, dids[0]!, val)),
  )
  expect(await sweep()).toMatchObject({ swept: 250 })
  expect(await flags()).toHaveLength(250)
  expect(await pds.count('moderation_case', { did: dids[0]! })).toBe(1)
  said.clear()
  await sweep()
  expect(await flags()).toEqual([])
})

test('pages are read to their end', async () => {
  first.answer('com.atproto.label.queryLabels', (request) => {
    const params = new URL(request.url).searchParams
    if (!params.getAll('uriPatterns').includes(dids[0]!)) return Response.json({ labels: [] })
    if (params.get('cursor') === null) return Response.json({ labels: [label(first, dids[0]!, 'a')], cursor: 'more' })
    return Response.json({ labels: [label(first, dids[0]!, 'b')] })
  })
  await sweep()
  expect(await flags()).toEqual([
    [0, 'a', first.did],
    [0, 'b', first.did],
  ])
})

test('a value with a NUL is no label, and hinders neither other labels nor other labelers', async () => {
  await sweep()
  said.set(first.did, [label(first, dids[0]!, 'a\u0000b'), label(first, dids[0]!, 'spam')])
  said.set(second.did, [label(second, dids[1]!, 'rude')])
  expect(await sweep()).toEqual({ swept: 2, errors: 0 })
  expect(await flags()).toEqual([
    [0, 'spam', first.did],
    [1, 'rude', second.did],
  ])
  said.clear()
  await sweep()
})

/** Many labels on the account that is asked about alone. */
const manyLabels = (count: number) =>
  Array.from({ length: count }, (_, i) => label(first, dids.toSorted().at(-1)!, `val-${i}`))
const failures: [string, () => Response][] = [
  ['an error', () => Response.json({ error: 'No' }, { status: 500 })],
  ['a page', () => new Response('<h1>hello</h1>')],
  ['null', () => Response.json(null)],
  ['no labels', () => Response.json({ labels: 'none' })],
  ['more than it may', () => Response.json({ labels: ['x'.repeat(1024 ** 2)] })],
  ['more about an account than anyone has to say', () => Response.json({ labels: manyLabels(501) })],
  ['pages without end', () => Response.json({ labels: [{}], cursor: 'again' })],
  ['a redirect', () => Response.redirect('https://elsewhere.test/')],
]
test.each(failures)('a labeler that answers %s once keeps its flags, and the others are asked', async (_, answer) => {
  said.set(first.did, [label(first, dids[0]!, 'spam'), label(first, dids[20]!, 'spam')])
  await sweep()
  first.answer('com.atproto.label.queryLabels', (request) =>
    new URL(request.url).searchParams.getAll('uriPatterns').length === 20 ? Response.json({ labels: [] }) : answer(),
  )
  said.set(second.did, [label(second, dids[1]!, 'rude')])
  expect(await sweep()).toEqual({ swept: 1, errors: 1 })
  expect(await flags()).toEqual([
    [0, 'spam', first.did],
    [1, 'rude', second.did],
    [20, 'spam', first.did],
  ])
  said.delete(second.did)
  await sweep()
})

test('a pass ends with the server, however many accounts are left to ask about', async () => {
  let stopped: Promise<void> | null = null
  first.answer('com.atproto.label.queryLabels', () => {
    stopped ??= pds.stop()
    return Response.json({ labels: [] })
  })
  expect(await thrownBy(sweep())).toThrow('the server is shutting down')
  await stopped
  expect([first.received.length, second.received.length]).toEqual([1, 0])
  await pds.restart()
  await sweep()
})

test('a labeler that cannot be found keeps its flags; one that is watched no more loses them at the start', async () => {
  said.set(first.did, [label(first, dids[0]!, 'spam')])
  said.set(second.did, [label(second, dids[1]!, 'rude')])
  await sweep()
  await pds.restart({
    labeler: {
      watched: [
        { did: 'did:web:nowhere.test' as Did, labels: [] },
        { did: second.did, labels: [] },
      ],
    },
  })
  expect(await sweep()).toMatchObject({ errors: 1 })
  expect(await flags()).toEqual([[1, 'rude', second.did]])

  second.received.length = 0
  await pds.restart({ labeler: { watched: [] } })
  await sweep()
  expect(await flags()).toEqual([])
  expect(second.received).toEqual([])
})
