/** What a consumer of the firehose concludes about one repository, commit by commit. */
import { expect } from 'bun:test'
import { decode } from '../../src/protocol/cbor.ts'
import { Cid } from '../../src/protocol/cid.ts'
import { parseCommit, type RepoOp } from '../../src/protocol/commit.ts'
import { readCar } from '../../src/protocol/car.ts'
import { invertCommit } from './oracle.ts'
import type { Message } from './clients/subscriber.ts'

export interface Followed {
  commits: number
  ops: RepoOp[][]
  /** Records that are there at the end, path to CID. */
  records: Map<string, string>
  head: string
  rev: string
}

/**
 * Follow all commits of a repository from its first. Each must link to the one before, and undoing its operations over
 * nothing but its own blocks must arrive at the tree before it.
 */
export async function followRepo(messages: readonly Message[], did: string): Promise<Followed> {
  const followed: Followed = { commits: 0, ops: [], records: new Map(), head: '', rev: '' }
  let data: string | null = null
  for (const { type, body } of messages) {
    if (type !== '#commit' || body['repo'] !== did) continue
    const car = body['blocks'] as Uint8Array
    const blocks = await blocksOf(car)
    const commit = parseCommit(blocks.get(String(body['commit']))!)
    const ops = (body['ops'] as unknown as RepoOp[]).map((op) => ({ ...op, prev: op.prev ?? null }))
    expect(commit.did as string).toBe(did)
    expect(commit.rev as string).toBe(body['rev'] as string)
    expect(body['since']).toBe(followed.rev === '' ? null : followed.rev)
    expect(commit.rev > followed.rev).toBe(true)
    if (data !== null) {
      expect(String(body['prevData'])).toBe(data)
      expect(await invertCommit(car, ops)).toBe(data)
    }
    for (const { action, path, cid, prev } of ops) {
      expect(String(prev)).toBe(followed.records.get(path) ?? 'null')
      if (action === 'delete') followed.records.delete(path)
      else {
        expect(cid).toBeInstanceOf(Cid)
        expect(decode(blocks.get(String(cid))!)).toHaveProperty('$type')
        followed.records.set(path, String(cid))
      }
    }
    data = String(commit.data)
    followed.commits++
    followed.ops.push(ops)
    followed.head = String(body['commit'])
    followed.rev = commit.rev
  }
  return followed
}

async function blocksOf(car: Uint8Array): Promise<Map<string, Uint8Array>> {
  const blocks = new Map<string, Uint8Array>()
  for await (const page of (await readCar([car])).pages)
    for (const { cid, bytes } of page) blocks.set(cid.toString(), bytes)
  return blocks
}
