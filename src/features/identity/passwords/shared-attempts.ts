/**
 * Counts the sign-in attempts at all nodes of a cluster together, as one node counts its own (`logins.ts`): only as
 * many run at a time as may still fail, so that an attacker gets no more guesses at several nodes than at one.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Context } from '../../../platform/context.ts'
import { lockOn } from '../../../platform/database/database.ts'
import type { Blocked } from './login-attempts.ts'
import { clearFailures, countAttempts, deleteAttempt, insertAttempt, markFailed } from './sign-in-attempt-store.ts'

/** Wait until this node checks again whether an attempt at another node has ended. */
const LOOK_MILLIS = 100

export interface SharedAttempt {
  /** As in `LoginAttempts.leave`. */
  leave(failed: boolean | null): Promise<unknown>
}

/** As `LoginAttempts.enter`. */
export async function enterShared(
  { db, clock }: Context,
  { nameHash, network }: { nameHash: string; network: string },
  maxFailures: number,
): Promise<SharedAttempt | Blocked> {
  const attempt = { id: randomUUID(), nameHash, network }
  for (;;) {
    const { running, failed, failedHere } = await db.transactionOn(lockOn('sign-in', nameHash), async (tx) => {
      const now = clock.now()
      const counted = await countAttempts(tx, attempt, now)
      if (counted.failed + counted.running < maxFailures) await insertAttempt(tx, attempt, now)
      return counted
    })
    if (failed >= maxFailures) return { byOthers: failedHere < failed }
    if (failed + running < maxFailures) break
    await pause(LOOK_MILLIS)
  }
  return {
    leave(failed) {
      if (failed === true) return markFailed(db, attempt.id, clock.now())
      return failed === false ? clearFailures(db, attempt) : deleteAttempt(db, attempt.id)
    },
  }
}
