import { expect, test } from 'bun:test'
import { cidOfCbor } from '../../../protocol/cid.ts'
import type { Tid } from '../../../protocol/identifiers.ts'
import { Malformed } from '../../../protocol/malformed.ts'
import { FreshNodes } from './fresh-nodes.ts'

const block = (text: string) => {
  const bytes = Buffer.from(text.repeat(20))
  return { cid: cidOfCbor(bytes), bytes }
}
const rev = (n: number) => `222222222222${n}` as Tid
const [a, b, c, outside] = ['a', 'b', 'c', 'outside'].map(block) as [
  ReturnType<typeof block>,
  ReturnType<typeof block>,
  ReturnType<typeof block>,
  ReturnType<typeof block>,
]
const texts = (nodes: FreshNodes) => ({
  nodes: nodes.nodes.map(({ cid, rev, bytes }) => `${cid} ${rev} ${Buffer.from(bytes)}`),
  stale: nodes.stale.map(String),
})

test('nodes and what is stale are found again', () => {
  const nodes = FreshNodes.none
    .after({ rev: rev(2), created: [a, b], removed: [outside.cid] })
    .after({ rev: rev(3), created: [c], removed: [] })
  expect(texts(nodes)).toEqual({
    nodes: [a, b, c].map((one, i) => `${one.cid} ${rev(i < 2 ? 2 : 3)} ${one.bytes}`),
    stale: [String(outside.cid)],
  })
  expect(nodes.get(b.cid)).toMatchObject({ rev: rev(2) })
  expect(nodes.get(outside.cid)).toBeNull()
  expect(FreshNodes.none.nodes).toEqual([])
})

test('of many nodes any may go, and the others stay as they were', () => {
  const many = Array.from({ length: 40 }, (_, i) => block(`node ${i}`))
  const all = FreshNodes.none.after({ rev: rev(2), created: many, removed: [] })
  for (const picked of [[0], [39], [3, 4, 5], [20, 0, 39, 21]]) {
    const left = all.after({ rev: rev(3), created: [a], removed: picked.map((i) => many[i]!.cid) })
    expect(left.nodes.map(({ cid }) => cid.toString())).toEqual(
      [...many.filter((_, i) => !picked.includes(i)), a].map(({ cid }) => cid.toString()),
    )
    for (const { cid, bytes } of left.nodes) expect(cidOfCbor(bytes).equals(cid)).toBe(true)
  }
})

test('a node that goes before it was moved out leaves no trace', () => {
  const nodes = FreshNodes.none
    .after({ rev: rev(2), created: [a], removed: [] })
    .after({ rev: rev(3), created: [b], removed: [a.cid] })
  expect(texts(nodes)).toEqual({ nodes: [expect.stringContaining(String(b.cid))], stale: [] })
})

test('a node outside that goes and comes back is fresh, and its old row is deleted', () => {
  const nodes = FreshNodes.none
    .after({ rev: rev(2), created: [], removed: [outside.cid] })
    .after({ rev: rev(3), created: [outside], removed: [] })
  expect(nodes.get(outside.cid)?.rev).toBe(rev(3))
  expect(nodes.stale.map(String)).toEqual([outside.cid.toString()])
})

test('the nodes of one revision stay alone when the others have moved out', () => {
  const nodes = FreshNodes.none
    .after({ rev: rev(2), created: [a, b], removed: [outside.cid] })
    .after({ rev: rev(3), created: [c], removed: [] })
  expect(texts(nodes.only(rev(3)))).toEqual({ nodes: [expect.stringContaining(String(c.cid))], stale: [] })
})

test('packed nodes say their version, which is that of rows from before there was one, and another is refused', () => {
  const before = Buffer.concat([
    Buffer.from([0, 0, 0, 1]),
    outside.cid.bytes,
    Buffer.from(rev(2)),
    a.cid.bytes,
    Buffer.from([0, 0, 0, a.bytes.length]),
    a.bytes,
  ])
  expect(texts(new FreshNodes(before))).toEqual({
    nodes: [`${a.cid} ${rev(2)} ${a.bytes}`],
    stale: [String(outside.cid)],
  })
  expect(
    Buffer.from(FreshNodes.none.after({ rev: rev(2), created: [a], removed: [outside.cid] }).packed).equals(before),
  ).toBe(true)
  for (const version of [1, 255])
    expect(() => new FreshNodes(Buffer.concat([Buffer.from([version]), before.subarray(1)]))).toThrow(Malformed)
  expect(() => new FreshNodes(new Uint8Array())).toThrow(Malformed)
})
