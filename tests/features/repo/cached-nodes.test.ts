/** Decoded nodes in memory: a bounded number of bytes, however large the nodes of an account are. */
import { expect, test } from 'bun:test'
import { recentNodes } from '../../../src/features/data/repo/tree-nodes.ts'
import { cidOfCbor } from '../../../src/protocol/cid.ts'
import { MstNode } from '../../../src/protocol/mst-node.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld()

const value = cidOfCbor(new Uint8Array([0xa0]))
const nodeOf = (entries: number) => {
  const keys = Array.from({ length: entries }, (_, i) => `org.example.note/${String(i).padStart(13, '0')}`)
  return new MstNode(
    0,
    keys,
    keys.map(() => value),
    Array<null>(entries + 1).fill(null),
  )
}

test('tens of thousands of usual nodes are kept, and a few of the largest', () => {
  const cached = recentNodes(pds.ctx)
  const usual = nodeOf(4)
  for (let i = 0; i < 60_000; i++) cached.set(`usual ${i}`, usual)
  expect(cached.size).toBeGreaterThan(16_000)
  // As many entries as fit into the largest block.
  const largest = nodeOf(30_000)
  for (let i = 0; i < 100; i++) cached.set(`largest ${i}`, largest)
  expect(cached.size).toBeLessThan(10)
  expect(cached.get('largest 99')).toBe(largest)
})
