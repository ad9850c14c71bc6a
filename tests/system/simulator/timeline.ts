/**
 * Virtual time. Everything that happens in a simulated world is an event here: a message that arrives, a timer, a
 * fault. Events happen one at a time; whatever an event sets free (the continuations of promises) runs before the next
 * one. So the seed alone decides the order, and a run can be repeated.
 */
import { drainMicrotasks } from 'bun:jsc'
import { Random } from '../../support/random.ts'

/** Somebody to whom events happen. */
export interface Actor {
  readonly name: string
  /** Nothing happens to the dead any more. */
  isDead: boolean
  /** Nothing happens to the frozen until then. */
  frozenUntil: number
  /** How far the wall clock is from the right time, in milliseconds. */
  skewMillis: number
}

export const actorNamed = (name: string): Actor => ({ name, isDead: false, frozenUntil: 0, skewMillis: 0 })

export interface Pending {
  at: number
  order: number
  actor: Actor
  act: (() => void) | null
}

/** The wall clock when worlds begin. */
export const EPOCH_MILLIS = Date.UTC(2026, 0, 1)

export class Timeline {
  now: number
  /** To whom the present event happens. */
  current: Actor
  readonly #heap: Pending[] = []
  #order = 0
  events = 0
  /** Decides orders, delays and faults. */
  readonly random: Random
  /** What the servers draw. */
  readonly chance: Random
  /** How many different numbers they draw between 0 and 1. */
  lots = 1 << 24

  constructor(seed: number, now: number, first: Actor) {
    this.now = now
    this.current = first
    this.random = new Random(seed)
    this.chance = new Random(seed ^ 0x5bd1e995)
  }

  /** A number from `low` to below `high`, with parts of a millisecond. */
  between(low: number, high: number): number {
    return low + ((high - low) * this.random.below(1 << 20)) / (1 << 20)
  }

  /** Whether something with this probability happens. */
  happens(probability: number): boolean {
    return this.random.below(1 << 20) < probability * (1 << 20)
  }

  schedule(delayMillis: number, actor: Actor, act: () => void): Pending {
    return this.scheduleAt(this.now + Math.max(0, delayMillis), actor, act)
  }

  scheduleAt(at: number, actor: Actor, act: () => void): Pending {
    const pending = { at, order: this.#order++, actor, act }
    this.#push(pending)
    return pending
  }

  /** Let one event happen. Returns false if there is none before `until`. */
  step(until: number): boolean {
    for (;;) {
      const next = this.#heap[0]
      if (next === undefined || next.at > until) {
        this.now = Math.max(this.now, Math.min(until, next?.at ?? until))
        return false
      }
      this.#pop()
      const { actor, act } = next
      if (act === null || actor.isDead) continue
      if (actor.frozenUntil > next.at) {
        // In the order in which they would have happened.
        next.at = actor.frozenUntil
        this.#push(next)
        continue
      }
      this.now = Math.max(this.now, next.at)
      next.act = null
      this.current = actor
      this.events++
      act()
      drainMicrotasks()
      return true
    }
  }

  #push(pending: Pending): void {
    const heap = this.#heap
    let at = heap.push(pending) - 1
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (!isBefore(pending, heap[parent]!)) break
      heap[at] = heap[parent]!
      at = parent
    }
    heap[at] = pending
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop()!
    if (heap.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++
      if (!isBefore(heap[child]!, last)) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = last
  }
}

/** What is sent on one line: it arrives in the order of sending, however long each takes. */
export class Queue {
  /** When the last one arrives, and the same as it was rounded: a sum with another present time may be less. */
  #last = 0
  #roundedLast = 0

  constructor(readonly timeline: Timeline) {}

  schedule(at: number, actor: Actor, act: () => void): void {
    const { now } = this.timeline
    this.#last = Math.max(this.#last, at)
    this.#roundedLast = Math.max(this.#roundedLast, now + Math.max(0, this.#last - now))
    this.timeline.scheduleAt(this.#roundedLast, actor, act)
  }
}

const isBefore = (one: Pending, other: Pending): boolean =>
  one.at < other.at || (one.at === other.at && one.order < other.order)
