/**
 * Messages between this server and a push relay: one JSON object each way, on a stream of its own. The end of the
 * stream ends the message; it has neither a length prefix nor a trailing newline.
 */
import { hasMembers } from '../../base/members.ts'

/** Names the protocol when a connection is made (RFC 7301). */
export const RELAY_ALPN = 'ezpds/notify/0'
/** Longest message. */
export const MAX_FRAME_BYTES = 64 * 1024

export type RelayRequest =
  | { type: 'enroll'; claimCode: string | null }
  | { type: 'registerHandle'; apnsToken: string; apnsTopic: string }
  | { type: 'dropHandle'; handle: string }
  | RelayPush

export interface RelayPush {
  type: 'push'
  handle: string
  /** Number of the sender key. In a `ping` it is 0, and `enc` and `ct` are empty. */
  kid: number
  enc: string
  ct: string
  /** The relay ignores it. */
  priority: null
  /** How long the relay may try; null means an hour. */
  ttlSecs: number | null
  ping: true | null
}

/**
 * What became of a push. `apnsError`: Apple refused it or could not be reached. `unregistered`: the token of the device
 * is dead.
 */
export const pushOutcomes = [
  'delivered',
  'unregistered',
  'throttled',
  'tooLarge',
  'notEnrolled',
  'unknownHandle',
  'apnsError',
] as const
export type PushOutcome = (typeof pushOutcomes)[number]

export type RelayAnswer =
  | { type: 'ok' }
  | { type: 'handle'; handle: string }
  | { type: 'pushed'; outcome: PushOutcome }
  | { type: 'denied' }
  | { type: 'notEnrolled' }
  | { type: 'throttled' }
  | { type: 'badRequest'; reason: string }

/** `shape` describes what came instead, without any of its content: a relay may send anything, and it is logged. */
export type ReadAnswer = { ok: true; answer: RelayAnswer } | { ok: false; shape: string }

export const formatRelayRequest = (request: RelayRequest): Uint8Array =>
  new TextEncoder().encode(JSON.stringify(request))

type Members = Readonly<Record<string, unknown>>

/** How each type of answer is read; null if a member is missing or wrong. Members that are not known are ignored. */
const readers: Readonly<Record<RelayAnswer['type'], (members: Members) => RelayAnswer | null>> = {
  ok: () => ({ type: 'ok' }),
  handle: ({ handle }) =>
    typeof handle === 'string' && handlePattern.test(handle) ? { type: 'handle', handle } : null,
  pushed: ({ outcome }) => {
    const known = pushOutcomes.find((name) => name === outcome)
    return known === undefined ? null : { type: 'pushed', outcome: known }
  },
  denied: () => ({ type: 'denied' }),
  notEnrolled: () => ({ type: 'notEnrolled' }),
  throttled: () => ({ type: 'throttled' }),
  badRequest: ({ reason }) => (typeof reason === 'string' ? { type: 'badRequest', reason } : null),
}

/** 16 bytes in base64url. */
const handlePattern = /^[A-Za-z0-9_-]{22}$/

const isAnswerType = (type: unknown): type is RelayAnswer['type'] =>
  typeof type === 'string' && Object.hasOwn(readers, type)

export function readRelayAnswer(bytes: Uint8Array): ReadAnswer {
  const value = parsed(bytes)
  if (value === undefined) return { ok: false, shape: `${bytes.byteLength} bytes that are no JSON` }
  if (!hasMembers(value)) return { ok: false, shape: 'JSON that is no object' }
  const { type } = value
  if (!isAnswerType(type))
    return { ok: false, shape: `an object whose type is ${type === undefined ? 'missing' : 'unknown'}` }
  const answer = readers[type](value)
  return answer === null
    ? { ok: false, shape: `an object of type ${type} with a member that is missing or wrong` }
    : { ok: true, answer }
}

/** Returns undefined if the bytes are not JSON in UTF-8. */
function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch {
    return undefined // the only fault of text that is not JSON
  }
}
