import { expect, test } from 'bun:test'
import { cidOfCbor } from '../../protocol/cid.ts'
import type { Tid } from '../../protocol/identifiers.ts'
import { FreshNodes } from './fresh-nodes.ts'

const block = (text: string) => {
  const bytes = Buffer.from(text.repeat(20))
  return { cid: cidOfCbor(bytes), bytes }
}
const rev = (n: number) => `222222222222${n}` as Tid
const [a, b, c, outside] = ['a', 'b', 'c', 'outside'].map(block) as [ReturnType<typeof block>, ReturnType<typeof block>, ReturnType<typeof block>, ReturnType<typeof block>]
const texts = (nodes: FreshNodes) => ({ nodes: nodes.nodes.map(({ cid, rev, bytes }) => `${cid} ${rev} ${Buffer.from(bytes)}`), stale: [...nodes.stale.keys()] })

test('what is packed is unpacked', () => {
  const nodes = FreshNodes.none.after({ rev: rev(2), created: [a, b], removed: [outside.cid] }).after({ rev: rev(3), created: [c], removed: [] })
  expect(nodes.pack()).toHaveLength(nodes.packedBytes)
  expect(texts(FreshNodes.unpack(nodes.pack()))).toEqual(texts(nodes))
  expect(FreshNodes.unpack(FreshNodes.none.pack()).nodes).toEqual([])
  expect(FreshNodes.unpack(nodes.pack()).get(b.cid)).toMatchObject({ rev: rev(2) })
})

test('a node that goes before it was moved out leaves no trace', () => {
  const nodes = FreshNodes.none.after({ rev: rev(2), created: [a], removed: [] }).after({ rev: rev(3), created: [b], removed: [a.cid] })
  expect(texts(nodes)).toEqual({ nodes: [expect.stringContaining(String(b.cid))], stale: [] })
})

test('a node outside that goes and comes back is fresh, and its old row is deleted', () => {
  const nodes = FreshNodes.none.after({ rev: rev(2), created: [], removed: [outside.cid] }).after({ rev: rev(3), created: [outside], removed: [] })
  expect(nodes.get(outside.cid)?.rev).toBe(rev(3))
  expect([...nodes.stale.keys()]).toEqual([outside.cid.toString()])
})

test('settling parts what moves out from what stays', () => {
  const nodes = FreshNodes.none.after({ rev: rev(2), created: [a, b], removed: [outside.cid] }).after({ rev: rev(3), created: [c], removed: [] })
  const { kept, settled } = nodes.settle((node) => node.rev === rev(3))
  expect(settled.map(({ cid }) => cid.toString())).toEqual([a, b].map(({ cid }) => cid.toString()))
  expect(texts(kept)).toEqual({ nodes: [expect.stringContaining(String(c.cid))], stale: [] })
})
