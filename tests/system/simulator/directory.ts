/**
 * The directory of identities, which no server has to itself, and the lines to it. Its rules are those of the server's
 * own directory; an answer may be lost, and an operation arrive after its sender has given up.
 */
import { PlcDirectoryError, type PlcDirectory } from '../../../src/platform/network/directory-client.ts'
import { claimedHandle, renderDidDocument } from '../../../src/protocol/did-document.ts'
import { wireTime, type Did, type Handle } from '../../../src/protocol/identifiers.ts'
import {
  checkNext,
  headOf,
  operationCid,
  SIGNING_KEY_NAME,
  stateOf,
  type AuditEntry,
  type LogOperation,
} from '../../../src/protocol/plc.ts'
import { actorNamed, EPOCH_MILLIS, type Actor, type Timeline } from './timeline.ts'

/** Longest time of a message. */
const LATENCY_MILLIS = 20
/** A server waits this long for an answer. */
const PATIENCE_MILLIS = 10_000
/** How late an operation may arrive: servers take it that none does after a minute. */
const LATE_MILLIS = 30_000

export class SimulatedDirectory {
  readonly actor = actorNamed('directory')
  readonly #logs = new Map<string, AuditEntry[]>()
  /** How probable it is that a message is lost, or comes late. */
  lossShare = 0
  /** How probable it is that it reports an error, whatever it has done. */
  errorShare = 0
  isDown = false
  onAdded: (did: string, handle: Handle | null) => void = () => {}

  constructor(
    readonly timeline: Timeline,
    known: readonly AuditEntry[],
  ) {
    for (const entry of known) this.#logOf(entry.did).push(entry)
  }

  heal(): void {
    this.lossShare = this.errorShare = 0
    this.isDown = false
  }

  /** The handle that it names for a DID now; null if it names none. */
  handleOf(did: string): Handle | null {
    const newest = this.newestOf(did)
    const state = newest && stateOf(newest)
    return state && claimedHandle(state)
  }

  /** The newest operation; null if the DID was never registered. */
  newestOf(did: string): LogOperation | null {
    return headOf(this.#logOf(did))?.operation ?? null
  }

  /** The key, as a did:key, that it names for signing; null if it names none. */
  keyOf(did: string): string | null {
    const newest = this.newestOf(did)
    return (newest && stateOf(newest)?.verificationMethods[SIGNING_KEY_NAME]) ?? null
  }

  /** The keys, as did:keys, that it has named for signing since an instant. */
  keysSince(did: string, since: number): string[] {
    const log = this.#logOf(did)
    const first = log.findLastIndex(({ createdAt }) => Date.parse(createdAt) <= EPOCH_MILLIS + since)
    return log
      .slice(Math.max(0, first))
      .flatMap(({ operation }) => stateOf(operation)?.verificationMethods[SIGNING_KEY_NAME] ?? [])
  }

  /** DIDs for which it names the handle. */
  named(handle: Handle): string[] {
    return [...this.#logs.keys()].filter((did) => this.handleOf(did) === handle)
  }

  #logOf(did: string): AuditEntry[] {
    const known = this.#logs.get(did)
    if (known !== undefined) return known
    const made: AuditEntry[] = []
    this.#logs.set(did, made)
    return made
  }

  /** How a server reaches it. */
  clientOf(from: Actor): PlcDirectory {
    const state = (did: Did) => {
      const newest = this.newestOf(did)
      return newest && stateOf(newest)
    }
    const ask = <Value>(work: () => Value) => this.#ask(from, work)
    return {
      state: (did) => ask(() => state(did)),
      lastOperation: (did) => ask(() => this.newestOf(did)),
      document: (did) =>
        ask(() => {
          const found = state(did)
          return found && renderDidDocument(did, found)
        }),
      auditLog: (did) => ask(() => (this.#logOf(did).length === 0 ? null : [...this.#logOf(did)])),
      submit: (did, operation) => ask(() => this.#add(did, operation)),
    }
  }

  #add(did: Did, operation: LogOperation): void {
    const log = this.#logOf(did)
    const now = EPOCH_MILLIS + this.timeline.now
    const valid = log
      .filter(({ nullified }) => !nullified)
      .map((entry) => ({ ...entry, createdAt: Date.parse(entry.createdAt) }))
    const outcome = checkNext(did, valid, operation, now)
    if (!outcome.ok) throw new PlcDirectoryError(400, outcome.fault)
    for (const entry of log) if (outcome.nullified.includes(entry.cid)) entry.nullified = true
    log.push({ did, cid: operationCid(operation).toString(), operation, nullified: false, createdAt: wireTime(now) })
    this.onAdded(did, this.handleOf(did))
  }

  /** When a message arrives, in milliseconds from now; null if it never does. */
  #arrival(): number | null {
    const { timeline } = this
    const millis = timeline.between(1, LATENCY_MILLIS)
    if (!timeline.happens(this.lossShare)) return millis
    return timeline.happens(0.5) ? null : timeline.between(0, LATE_MILLIS)
  }

  #ask<Value>(from: Actor, work: () => Value): Promise<Value> {
    const { timeline } = this
    const { promise, resolve, reject } = Promise.withResolvers<Value>()
    const fail = (status: number | null, message: string) => reject(new PlcDirectoryError(status, message))
    timeline.schedule(PATIENCE_MILLIS, from, () => fail(null, 'PLC directory unreachable'))
    const there = this.#arrival()
    if (there === null) return promise
    timeline.schedule(there, this.actor, () => {
      const answer = this.#answer(work, resolve, reject)
      const back = this.#arrival()
      if (back !== null) timeline.schedule(back, from, answer)
    })
    return promise
  }

  /** Does what is asked for, and returns how the one who asked is answered. */
  #answer<Value>(work: () => Value, resolve: (value: Value) => void, reject: (error: unknown) => void): () => void {
    const { timeline } = this
    const isWrong = timeline.happens(this.errorShare)
    const failed = () => reject(new PlcDirectoryError(500, 'the directory has failed'))
    if (this.isDown || (isWrong && timeline.happens(0.5))) return failed
    try {
      const value = work()
      return isWrong ? failed : () => resolve(value)
    } catch (error) {
      return () => reject(error)
    }
  }
}
