/** What happens to an account in the middle of a request about it. */
import { spyOn } from 'bun:test'
import { accountLock } from '../../src/platform/database/database.ts'
import type { TestPds } from './servers/pds.ts'

/**
 * Once, do something before a limit of this name is charged. The server must be `alone`. Until disposed of, charges of
 * other limits are passed on.
 */
export function beforeCharge({ ctx: { limits } }: Pick<TestPds, 'ctx'>, limit: string, act: () => Promise<unknown>) {
  const charge = limits.chargeShared.bind(limits)
  const charges = spyOn(limits, 'chargeShared')
  let isDone = false
  charges.mockImplementation(async (...given) => {
    if (!isDone && given.some(({ name }) => name === limit)) {
      isDone = true
      await act()
    }
    return charge(...given)
  })
  return charges
}

/** Once, do something before a transaction that runs under the lock of this account. */
export function beforeLock({ ctx: { db } }: Pick<TestPds, 'ctx'>, did: string, act: () => Promise<unknown>) {
  const transactionOn = db.transactionOn.bind(db)
  const transactions = spyOn(db, 'transactionOn')
  transactions.mockImplementation(async (lock, work) => {
    if (lock === accountLock(did)) {
      transactions.mockRestore()
      await act()
    }
    return transactionOn(lock, work)
  })
  return transactions
}

/** Once, do something before a transaction of any kind, the first unless some are passed over. */
export function beforeTransaction(
  { ctx: { db } }: Pick<TestPds, 'ctx'>,
  act: () => Promise<unknown>,
  { passedOver = 0 } = {},
): Disposable {
  let left = passedOver
  const [transaction, transactionOn] = [db.transaction.bind(db), db.transactionOn.bind(db)]
  const [alone, locking] = [spyOn(db, 'transaction'), spyOn(db, 'transactionOn')]
  const restore = () => {
    alone.mockRestore()
    locking.mockRestore()
  }
  const acted = async () => {
    if (left-- > 0) return
    restore()
    await act()
  }
  alone.mockImplementation((work) => acted().then(() => transaction(work)))
  locking.mockImplementation((lock, work) => acted().then(() => transactionOn(lock, work)))
  return { [Symbol.dispose]: restore }
}

/** Once, do something as soon as a snapshot has been read. */
export function afterSnapshot({ ctx: { db } }: Pick<TestPds, 'ctx'>, act: () => Promise<unknown>): Disposable {
  const snapshot = db.snapshot.bind(db)
  const snapshots = spyOn(db, 'snapshot')
  snapshots.mockImplementation(async (work) => {
    snapshots.mockRestore()
    const read = await snapshot(work)
    await act()
    return read
  })
  return snapshots
}

/** Once, do something before the read of this number whose text has these words. */
export function beforeRead(
  { ctx: { db } }: Pick<TestPds, 'ctx'>,
  { words, number }: { words: string; number: number },
  act: () => Promise<unknown>,
): Disposable {
  const get = db.get.bind(db)
  const reads = spyOn(db, 'get')
  let count = 0
  reads.mockImplementation(async (query) => {
    if (query.texts.join('').includes(words) && ++count === number) {
      reads.mockRestore()
      await act()
    }
    return get(query)
  })
  return reads
}
