/**
 * A push relay: other software with which the server shares nothing but the protocol. It speaks real QUIC on loopback,
 * and keeps what it would send to Apple.
 */
import { randomBytes } from 'node:crypto'
import type { Connection } from '@number0/iroh'
import { relayedBody, type SealedPush } from '../../../src/protocol/push/push-message.ts'
import { TokenBucket } from '../../../src/base/token-bucket.ts'
import { freeUdpPort } from '../ports.ts'
import { startQuicPeer, type QuicPeer } from './quic-peer.ts'
import { until } from '../until.ts'

const ALPN = 'ezpds/notify/0'
/** Apple takes no larger bodies. */
const MAX_BODY_BYTES = 4096
/** Where it can be, one after the other. */
const ADDRESSES = 3

export type Json = Record<string, unknown>

/** What the relay sent to Apple for a device. */
export interface Sent extends SealedPush {
  token: string
  topic: string
  ping: boolean
  ttlSecs: number
  /** Of the body, in bytes. */
  length: number
}

interface Device {
  node: string
  token: string
  topic: string
  handle: string
  budget: TokenBucket
}

interface RelayOptions {
  /** Codes that admit one server each; null admits everybody. */
  codes?: string[] | null
}

export class PushRelay implements AsyncDisposable {
  /** Every request that arrived, oldest first. */
  readonly requests: Json[] = []
  readonly sent: Sent[] = []
  readonly devices: Device[] = []
  readonly enrolled = new Set<string>()
  /** What it answers instead of what it should, one after the other: an object, or any bytes. */
  readonly lies: (Json | Uint8Array)[] = []
  /** If there is one, it keeps the budgets that relays keep by default. */
  clock: { monotonic(): number } | null = null
  /** Decides on topics. */
  takesTopic: (topic: string) => boolean = () => true
  /** Requests at which the connection is lost. */
  swallows: (request: Json) => boolean = () => false
  /** While this is pending, requests arrive and are not answered. */
  held: Promise<unknown> | null = null
  readonly #secret = randomBytes(32)
  readonly #unspent: Set<string> | null
  readonly #budgets = new Map<string, { registrations: TokenBucket; pushes: TokenBucket }>()
  #peer: QuicPeer | null = null
  readonly #past: QuicPeer[] = []

  readonly #ports: readonly number[]

  private constructor({ codes }: RelayOptions, ports: readonly number[]) {
    this.#unspent = codes ? new Set(codes) : null
    this.#ports = ports
  }

  static async start(options: RelayOptions = {}): Promise<PushRelay> {
    const relay = new PushRelay(options, await Promise.all(Array.from({ length: ADDRESSES }, freeUdpPort)))
    await relay.comeBack()
    return relay
  }

  get nodeId(): string {
    return (this.#peer ?? this.#past.at(-1))!.nodeId
  }

  /** How many connections were opened to it. */
  get connections(): number {
    return [...this.#past, ...(this.#peer ? [this.#peer] : [])].reduce((sum, { accepted }) => sum + accepted.length, 0)
  }

  /** As a server is configured to use it. */
  get config() {
    return {
      iroh: { enabled: true, discovery: false },
      notifications: { relay: this.nodeId, relayAddresses: this.#ports.map((port) => `127.0.0.1:${port}`) },
    }
  }

  /** Go away, with all connections. */
  async disappear(): Promise<void> {
    if (this.#peer === null) return
    this.#past.push(this.#peer)
    await this.#peer.close()
    this.#peer = null
  }

  /**
   * Listen again, under the same key, at the next of its addresses. The library does not free the port of an endpoint
   * that is closed as long as the process runs.
   */
  async comeBack(): Promise<void> {
    const port = this.#ports[this.#past.length]
    if (port === undefined) throw new Error('the relay has been at all of its addresses')
    this.#peer = await startQuicPeer({
      alpn: ALPN,
      secret: this.#secret,
      port,
      answer: (bytes, { nodeId, connection }) => this.#serve(nodeId, bytes, connection),
    })
  }

  async #serve(node: string, bytes: Uint8Array, connection: Connection): Promise<Uint8Array> {
    const request = JSON.parse(Buffer.from(bytes).toString()) as Json
    this.requests.push(request)
    if (this.swallows(request)) connection.close(1n, [])
    const answer = this.lies.shift() ?? this.#answer(node, request)
    await this.held
    return answer instanceof Uint8Array ? answer : new TextEncoder().encode(JSON.stringify(answer))
  }

  /** Forget everything about everybody. */
  forget(): void {
    this.enrolled.clear()
    this.devices.splice(0)
  }

  ofType(type: string): Json[] {
    return this.requests.filter((request) => request['type'] === type)
  }

  async untilSent(count: number): Promise<Sent[]> {
    await until(() => this.sent.length >= count)
    return this.sent
  }

  handleOf(token: string): string | undefined {
    return this.devices.find((device) => device.token === token)?.handle
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.disappear()
  }

  #answer(node: string, request: Json): Json {
    const { type } = request
    if (type === 'enroll') return this.#enroll(node, request['claimCode'] ?? null)
    if (type === 'push') return { type: 'pushed', outcome: this.#push(node, request) }
    if (!this.enrolled.has(node)) return { type: 'notEnrolled' }
    if (type === 'registerHandle') return this.#register(node, request)
    if (type === 'dropHandle') return this.#drop(node, request)
    return { type: 'badRequest', reason: 'unknown type' }
  }

  #enroll(node: string, code: unknown): Json {
    if (this.enrolled.has(node)) return { type: 'ok' }
    if (this.#unspent !== null && !(typeof code === 'string' && this.#unspent.delete(code))) return { type: 'denied' }
    this.enrolled.add(node)
    return { type: 'ok' }
  }

  #register(node: string, { apnsToken: token, apnsTopic: topic }: Json): Json {
    if (
      typeof token !== 'string' ||
      !/^[0-9a-f]{1,200}$/i.test(token) ||
      typeof topic !== 'string' ||
      !this.takesTopic(topic)
    )
      return { type: 'badRequest', reason: 'malformed request' }
    if (!this.#takes(this.#budgetOf(node).registrations)) return { type: 'throttled' }
    const before = this.devices.findIndex((device) => device.node === node && device.token === token)
    if (before >= 0) this.devices.splice(before, 1)
    const handle = randomBytes(16).toString('base64url')
    this.devices.push({ node, token, topic, handle, budget: new TokenBucket(10, 60) })
    return { type: 'handle', handle }
  }

  #drop(node: string, { handle }: Json): Json {
    const index = this.devices.findIndex((device) => device.node === node && device.handle === handle)
    if (index >= 0) this.devices.splice(index, 1)
    return { type: 'ok' }
  }

  #push(node: string, { handle, kid, enc, ct, ttlSecs = null, ping = null }: Json): string {
    if (!this.enrolled.has(node)) return 'notEnrolled'
    const device = this.devices.find((each) => each.node === node && each.handle === handle)
    if (device === undefined) return 'unknownHandle'
    if (!this.#takes(this.#budgetOf(node).pushes) || !this.#takes(device.budget)) return 'throttled'
    const sealed = { kid: kid as number, enc: enc as string, ct: ct as string }
    const body = ping === true ? '{"aps":{"content-available":1}}' : relayedBody(sealed)
    if (body.length > MAX_BODY_BYTES) return 'tooLarge'
    const { token, topic } = device
    this.sent.push({
      ...sealed,
      token,
      topic,
      ping: ping === true,
      ttlSecs: (ttlSecs as number | null) ?? 3600,
      length: body.length,
    })
    return 'delivered'
  }

  #budgetOf(node: string) {
    const known = this.#budgets.get(node) ?? {
      registrations: new TokenBucket(10, 100),
      pushes: new TokenBucket(50, 1000),
    }
    this.#budgets.set(node, known)
    return known
  }

  #takes(bucket: TokenBucket): boolean {
    return this.clock === null || bucket.take(this.clock.monotonic())
  }
}
