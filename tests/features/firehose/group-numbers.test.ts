/** In a file, transactions of a group know the number of the newest event from each other. */
import { expect, test } from 'bun:test'
import { headSeq, keepEvents, raiseSeq } from '../../../src/features/data/firehose/event-log.ts'
import { sequenceEvents, type RepoEvent } from '../../../src/features/data/firehose/firehose.ts'
import type { Tx } from '../../../src/platform/database/database.ts'
import type { Did, Handle } from '../../../src/protocol/identifiers.ts'
import { leastCost } from '../../support/least-cost.ts'
import { startPdsOnFile } from '../../support/servers/file-pds.ts'

const alice = 'did:plc:aliceaaaaaaaaaaaaaaaaaaa' as Did
const bob = 'did:plc:bobbbbbbbbbbbbbbbbbbbbbb' as Did
const identity = (did: Did): RepoEvent => ({ type: 'identity', did, handle: 'alice.test' as Handle })

test.each([true, false])(
  'in a file, one transaction of a group reads the log, and whatever undoes or raises numbers is noticed (strict: %p)',
  async (strictTransactions) => {
    await using pds = await startPdsOnFile({}, { strictTransactions })
    const { db } = pds.ctx
    const add = (did: Did, after: (tx: Tx) => unknown = () => undefined) =>
      db.transaction(async (tx) => {
        await sequenceEvents(pds.ctx, tx, [identity(did)])
        await after(tx)
      })
    const fail = () => {
      throw new Error('changed its mind')
    }
    const numbers = async () => (await pds.rows('repo_seq', {}, ['seq'])).map(({ seq }) => seq)
    const group = (count: number) => leastCost(db, () => Promise.all(Array.from({ length: count }, () => add(alice))))
    // Each of the others has one statement, which adds its event. Strict transactions run twice, and read again.
    expect((await group(10)) - (await group(1))).toBe(strictTransactions ? 18 : 9)
    const head = await headSeq(db)

    // The first group runs without savepoints until the failure; those after it have them.
    for (let round = 0; round < 3; round++)
      await Promise.allSettled([add(alice), add(alice, fail), add(bob), db.transaction(fail), add(bob)])
    expect((await numbers()).filter((seq) => seq > head)).toEqual(Array.from({ length: 9 }, (_, i) => head + 1 + i))

    await Promise.all([add(alice), add(alice, (tx) => raiseSeq(tx, head + 100)), add(bob)])
    expect((await numbers()).slice(-3)).toEqual([head + 10, head + 11, head + 101])
    const foreign = { seq: head + 200, type: 'identity', did: bob, sequencedAt: 0, frame: new Uint8Array([1]) } as const
    await Promise.all([add(alice), db.transaction((tx) => keepEvents(tx, [foreign])), add(alice)])
    expect((await numbers()).slice(-3)).toEqual([head + 102, head + 200, head + 201])
  },
)
