/**
 * A lock for each key, for work that waits for something outside the server and must run one at a time, such as two
 * operations on one identity. Such work must not hold a transaction, so on a cluster a row of `lane` says who has the
 * lock; if its node dies, the row is free.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { MINUTE_MILLIS } from '../../base/durations.ts'
import { KeyedQueue } from '../../base/keyed-queue.ts'
import type { Context } from '../context.ts'
import { sql } from '../database/database.ts'
import { holderOf, isHolderGone } from '../database/row-holders.ts'
import { outsideRequests } from './request-scope.ts'

/** Longer than any turn takes, because everything that a turn waits for has a timeout. */
const MAX_TURN_MILLIS = 10 * MINUTE_MILLIS
/** Between checks whether the turn of another node has ended. */
const LOOK_MILLIS = 100
/** Between attempts to store that a turn has ended. */
const RETRY_MILLIS = 1000

export class KeyedLock {
  readonly #queue = new KeyedQueue()

  /** `name` distinguishes the locks of the server. */
  constructor(
    readonly ctx: Pick<Context, 'db' | 'clock' | 'log' | 'signals'>,
    readonly name: string,
  ) {}

  /** Runs `work` when no other work with the same key runs, at any node. Each node keeps the order of its calls. */
  run<T>(key: string, work: () => Promise<T>): Promise<T> {
    return this.#queue.run(key, () =>
      this.ctx.db.cluster === null ? work() : this.#inTurn(`${this.name} ${key}`, work),
    )
  }

  async #inTurn<T>(name: string, work: () => Promise<T>): Promise<T> {
    const turn = randomUUID()
    try {
      while (!(await this.#begin(name, turn))) await pause(LOOK_MILLIS)
      return await work()
    } finally {
      await this.#end(turn)
    }
  }

  async #begin(name: string, turn: string): Promise<boolean> {
    const { db, clock } = this.ctx
    const now = clock.now()
    const begun = await db.run(sql`
      INSERT INTO lane (name, holder, turn, until) VALUES (${name}, ${holderOf(db)}, ${turn}, ${now + MAX_TURN_MILLIS})
      ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, turn = excluded.turn, until = excluded.until
      WHERE lane.until <= ${now} OR ${isHolderGone(db, sql`lane.holder`)}`)
    return begun > 0
  }

  /** The outcome of the work stands even if the row cannot be deleted. A turn that never began may have a row too. */
  async #end(turn: string): Promise<void> {
    try {
      await this.#delete(turn)
    } catch (error) {
      this.ctx.log.warn('could not release the lock; will retry', { action: this.name, error })
      void outsideRequests(() => this.#endLater(turn))
    }
  }

  /** Until this succeeds, all who want the lock wait, because the node that holds it is alive. */
  async #endLater(turn: string): Promise<void> {
    const { clock, signals } = this.ctx
    const endsAt = clock.monotonic() + MAX_TURN_MILLIS
    let isOver = false
    const end = () => void (isOver = true)
    const forget = signals.stopping.subscribe(end)
    while (!isOver && clock.monotonic() < endsAt) {
      await pause(RETRY_MILLIS, undefined, { ref: false })
      if (!isOver) await this.#delete(turn).then(end, () => undefined)
    }
    forget()
  }

  async #delete(turn: string): Promise<void> {
    await this.ctx.db.run(sql`DELETE FROM lane WHERE turn = ${turn}`)
  }
}
