/**
 * Two machines and a bucket: what `holdfast follow` does at each of them, and what is to hold whoever of them serves.
 *
 * One machine at a time acknowledges writes. What it acknowledges, and what a relay has, is there at the next one. The
 * chain of segments has one content, its epochs never go back, and neither does the lease.
 */
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { continuousState, Following, mayServe } from '../../../src/features/operations/backup/backup.ts'
import type { Config } from '../../../src/platform/configuration/config.ts'
import { Secret } from '../../../src/base/secret.ts'
import type { ConfigOverrides } from '../../support/servers/config.ts'
import { SimulatedBucket } from './bucket.ts'
import { EPOCH_MILLIS, type Actor } from './timeline.ts'
import type { Node, World } from './world.ts'

/** Time for which the lease is valid. */
const TAKEOVER_SECS = 3
/** The lease is renewed this many times while it is valid, until the server runs. */
const RENEWALS = 3
/** How far the copy may be behind at the end. */
const UP_TO_DATE_MILLIS = 2000

export const configOfPair = (name: string, isAsync: boolean): ConfigOverrides => ({
  node: { name },
  blobMirror: { endpoint: 'http://bucket.test', accessKeyId: 'key', secretAccessKey: new Secret('secret') },
  backup: {
    continuous: 's3://bucket/server',
    continuousPromise: isAsync ? 'async' : 'sync',
    continuousLagMs: 100,
    takeoverSecs: TAKEOVER_SECS,
  },
})

/** That a machine serves. */
interface Term {
  node: Node
  /** When the first acknowledgement reached a client. */
  acknowledgedAt: number
}

interface Lease {
  holder: string
  epoch: number
  beat: number
}

interface Segment {
  number: number
  /** The content has all commits up to this instant of the machine's clock. */
  at: number
  epoch: number
  /** Number of the one that follows, if it is not the next number. */
  next?: number
}

interface StoredSegment extends Segment {
  by: string
}

export class Pair {
  readonly bucket: SimulatedBucket
  /** Of the machine that serves, or was the last to. */
  serving = 0
  readonly #terms: Term[] = []
  readonly #following = new Map<Node, Following>()
  readonly #segments = new Map<string, StoredSegment[]>()
  /** The machine is gone for good. */
  lost: Node | null = null
  /** What was acknowledged by then is at the bucket, as the machine that serves has said, or as a segment does. */
  #keptThrough = -Infinity
  /** The machine that took over last, or does. */
  #fencedFor: string | null = null

  constructor(
    readonly world: World,
    readonly isAsync: boolean,
  ) {
    this.bucket = new SimulatedBucket(world.timeline, world.timeline.happens(0.5))
    this.bucket.onStored = (key, bytes, before, by) => this.#stored(key, bytes, before, by)
    for (const name of ['node 1', 'node 2']) {
      rmSync(this.folderOf(name), { recursive: true, force: true })
      mkdirSync(this.folderOf(name))
    }
  }

  nameOf(name: string): string {
    return `machine of ${name}${this.isAsync ? ', which is behind' : ''}`
  }

  folderOf(name: string): string {
    return join(this.world.ground.dir, `machine of ${name}`)
  }

  /** Resolves once the machine may start the server: at once, or after a takeover. */
  async untilServing(node: Node, config: Config): Promise<void> {
    const { world } = this
    if (await mayServe(config)) return
    world.note(node.name, 'follows')
    const following = new Following({ config, ...world.overridesOf(node, () => {}) })
    this.#following.set(node, following)
    const taken = await following.run(new AbortController().signal)
    this.#following.delete(node)
    const { lease } = taken!
    world.note(node.name, `has taken over, with epoch ${lease.record.epoch}`)
    const renewals = setInterval(() => void lease.renew().catch(() => false), lease.record.ttlMillis / RENEWALS)
    node.onceUp = () => clearInterval(renewals)
  }

  /** A server has started. */
  began(node: Node): void {
    const { world } = this
    // With `async`, a machine that was replaced meanwhile notices it once it serves.
    if (this.isFenced(node)) return
    this.serving = world.nodes.indexOf(node)
    const former = this.#terms.at(-1)?.node
    if (former !== node) this.#terms.push({ node, acknowledgedAt: Infinity })
    if (former !== undefined && former !== node) {
      if (this.isAsync) world.watch.tookOver(this.#keptThrough)
      this.#tellOne(node, former)
    }
    world.watch.requireReceived()
  }

  ended(node: Node): void {
    this.#following.delete(node)
  }

  /** A server cannot serve any more. What it has stored itself is no reason, even if it arrived after the start. */
  gaveUp({ name }: Node, message: string): void {
    const [, number] = /segment-(\d+)\S* has another content/.exec(message) ?? []
    const isOwn = (segment: StoredSegment) => segment.number === Number(number) && segment.by === name
    if (number !== undefined && [...this.#segments.values()].flat().some(isOwn))
      this.world.fail(`${name} makes another segment ${Number(number)} than it has stored`)
  }

  isServing(node: Node): boolean {
    return this.world.nodes[this.serving] === node
  }

  /** Returns whether a client may rely on what this machine acknowledges. One that was replaced may not know it yet. */
  isReliable(node: Node): boolean {
    if (!this.isAsync) return true
    this.#noteKept()
    return this.isServing(node)
  }

  /** With `async`, what a machine shows that is replaced, and may not know it yet, is lost. */
  isFenced({ name }: Node): boolean {
    return this.isAsync && this.#fencedFor !== null && this.#fencedFor !== name
  }

  /** The machine that serves says how old the oldest commit is that is not at the bucket. */
  #noteKept(): void {
    const { nodes, timeline } = this.world
    const app = nodes[this.serving]!.app
    if (app === null || this.#terms.length === 0) return
    this.#keptThrough = Math.max(this.#keptThrough, timeline.now - continuousState(app.ctx)!.lagMillis)
  }

  /** A client was told that a write was made, which it asked for at `begunAt`. */
  acknowledged(node: Node, begunAt: number): void {
    if (this.isAsync) return
    const { world } = this
    const at = this.#terms.findLastIndex((term) => term.node === node)
    const later = this.#terms.slice(at + 1).find(({ acknowledgedAt }) => acknowledgedAt < begunAt)
    if (later !== undefined)
      world.fail(`${node.name} acknowledges a write that was asked for after ${later.node.name} had begun to`)
    const term = this.#terms[at]
    if (term !== undefined) term.acknowledgedAt = Math.min(term.acknowledgedAt, world.timeline.now)
  }

  /** A client hears of a takeover at once, and asks the former machine as well. */
  #tellOne(node: Node, former: Node): void {
    const { timeline, clients } = this.world
    const client = timeline.random.of(clients)
    timeline.schedule(timeline.between(0, 50), client.actor, () => void client.compare(node, former))
  }

  #stored(key: string, bytes: Uint8Array, before: Uint8Array | null, by: Actor): void {
    const { world } = this
    const [, chain, number] = /\/([^/]+)\/segment-(\d+)$/.exec(key) ?? []
    if (chain !== undefined) {
      const segment = headerOf(bytes)
      const { epoch } = segment
      world.note('bucket', `has segment ${Number(number)} of ${by.name}, of epoch ${epoch}`)
      if (before !== null && !Buffer.from(before).equals(bytes))
        world.fail(`${by.name} replaces segment ${Number(number)}, which others may have read`)
      const stored = this.#segments.get(chain) ?? []
      const later = stored.find((each) => each.epoch > epoch && each.number < segment.number)
      if (later !== undefined && !isLeftOut(segment, stored))
        world.fail(`${by.name} continues the chain of epoch ${later.epoch} with a segment of epoch ${epoch}`)
      // Who takes over has what the segments before say, of which others may be there already.
      if (stored.length > 0 && stored.every((each) => each.epoch < epoch)) {
        const had = stored.filter((each) => each.number < segment.number && !isLeftOut(each, stored))
        this.#keptThrough = Math.max(this.#keptThrough, ...had.map(({ at }) => at - EPOCH_MILLIS))
      }
      stored.push({ ...segment, by: by.name })
      this.#segments.set(chain, stored)
    } else if (key.endsWith('/lease')) {
      const lease = leaseOf(bytes)
      const former = before && leaseOf(before)
      if (former?.holder === lease.holder) return
      world.note('bucket', `has the lease of ${by.name}, of epoch ${lease.epoch}`)
      if (former !== null && lease.epoch <= former.epoch)
        world.fail(`${by.name} takes the lease of epoch ${former.epoch} back to epoch ${lease.epoch}`)
      this.#fencedFor = by.name
    } else if (/\/base-/.test(key)) world.note('bucket', `has a base of ${by.name}`)
  }

  /** Whether one serves and promises what it should, and the other has a copy. */
  get isAtRest(): boolean {
    return this.unrest === null
  }

  get unrest(): string | null {
    const { nodes } = this.world
    const up = nodes.filter(({ isUp, app }) => isUp && app !== null)
    if (up.length !== 1) return `${up.length} machines serve`
    const { promise, lagMillis, fault } = continuousState(up[0]!.app!.ctx)!
    if (promise !== (this.isAsync ? 'async' : 'sync') || lagMillis > 0)
      return `${up[0]!.name} does not keep its promise (${fault})`
    const [other] = nodes.filter((node) => node !== up[0])
    if (other === this.lost) return null
    const state = this.#following.get(other!)?.state
    if (state === undefined) return `${other!.name} does not follow`
    const isBehind = state.behindMillis === null || state.behindMillis > UP_TO_DATE_MILLIS
    return isBehind || state.fault !== null ? `the copy of ${other!.name} is behind (${state.fault})` : null
  }

  /** The machine that serves is gone for good. */
  burn(): void {
    const { world } = this
    const node = world.nodes[this.serving]!
    this.lost = node
    world.befallen.push('burn')
    world.note('fate', `${node.name} burns`)
    if (this.isAsync) this.#noteKept()
    node.kill()
    if (this.isAsync) world.timeline.schedule(0, world.fate, () => world.note('fate', this.promote()))
  }

  /** An operator asks the machine that follows to take over. */
  promote(): string {
    for (const [node] of this.#following) {
      void Following.ask(this.world.configOf(node))
      return `${node.name} is told to take over`
    }
    return 'no machine follows that could be told to take over'
  }
}

/** Whether a takeover has left out the number of a segment, which is then not of the chain. */
const isLeftOut = ({ epoch, number }: Segment, stored: readonly StoredSegment[]): boolean =>
  stored.some((each) => each.epoch > epoch && each.number < number && number < (each.next ?? 0))

const leaseOf = (bytes: Uint8Array): Lease => JSON.parse(Buffer.from(bytes).toString()) as Lease

const MAGIC_BYTES = 'holdfast-log-1\n'.length

function headerOf(bytes: Uint8Array): Segment {
  const buffer = Buffer.from(bytes)
  const start = MAGIC_BYTES + 4
  return JSON.parse(buffer.toString('utf8', start, start + buffer.readUInt32BE(MAGIC_BYTES))) as Segment
}
