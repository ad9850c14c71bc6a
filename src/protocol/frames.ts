/**
 * Events of the firehose, as plain data and as frames.
 *
 * A frame is two consecutive CBOR values: a header that names the type, and a body. It is encoded once, and every
 * subscriber gets the same bytes. If its event is numbered later, it is encoded without number and time. Optional
 * fields are absent, never null, except where the lexicon says null (`since`, the `cid` of a deletion).
 *
 * Source: atproto "Event Stream"; lexicon com.atproto.sync.subscribeRepos.
 */
import {
  type DataObject,
  type Encodable,
  encode,
  encodeSequence,
  mapHead,
  sortKeys,
  type WrittenBytes,
} from './cbor.ts'
import type { Cid } from './cid.ts'
import type { RepoOp } from './commit.ts'
import { wireTime, type Did, type Handle, type Millis, type Tid } from './identifiers.ts'

/** Status of an account in events. */
export type HostingStatus = 'active' | 'takendown' | 'suspended' | 'deleted' | 'deactivated'

export type RepoEvent =
  | {
      type: 'commit'
      did: Did
      commit: Cid
      rev: Tid
      /** The previous revision; null for the first commit. */
      since: Tid | null
      /** CAR with the commit as its root. */
      blocks: Uint8Array | WrittenBytes
      ops: readonly RepoOp[]
      /** Root of the tree before this commit; null for the first commit. */
      prevData: Cid | null
    }
  /** `blocks` is a CAR that holds the commit alone. */
  | { type: 'sync'; did: Did; rev: Tid; blocks: Uint8Array }
  | { type: 'identity'; did: Did; handle?: Handle }
  | { type: 'account'; did: Did; status: HostingStatus }

export type EventType = RepoEvent['type']

/** Encodes an event. Its time is when it was sequenced, in RFC 3339 and UTC. */
export function eventFrame(event: RepoEvent, seq: number, sequencedAt: Millis): Uint8Array {
  const body = bodyFields(event)
  body['seq'] = seq
  body['time'] = wireTime(sequencedAt)
  return encodeSequence([{ op: 1, t: `#${event.type}` }, body])
}

/** Encodes an event as another server has stored it: `body` lacks number and time only. */
export const storedEventFrame = (type: EventType, body: DataObject, seq: number, sequencedAt: Millis): Uint8Array =>
  encodeSequence([
    { op: 1, t: `#${type}` },
    { ...body, seq, time: wireTime(sequencedAt) },
  ])

function bodyFields(event: RepoEvent): Record<string, Encodable> {
  switch (event.type) {
    case 'commit': {
      const { did, commit, rev, since, blocks, ops, prevData } = event
      const fields: Record<string, Encodable> = {
        ops: ops.map(opFields),
        rev,
        repo: did,
        blobs: [],
        since,
        blocks,
        commit,
        rebase: false,
        tooBig: false,
      }
      if (prevData !== null) fields['prevData'] = prevData
      return fields
    }
    case 'sync':
      return { did: event.did, rev: event.rev, blocks: event.blocks }
    case 'identity':
      return event.handle === undefined ? { did: event.did } : { did: event.did, handle: event.handle }
    case 'account':
      return event.status === 'active'
        ? { did: event.did, active: true }
        : { did: event.did, active: false, status: event.status }
  }
}

/** A frame without its number and its time: the pieces before, between and after them. */
export interface FramePieces {
  head: Uint8Array
  middle: Uint8Array
  rest: Uint8Array
}

/**
 * Encodes an event that gets its number later. `head`, the encoded number, `middle`, the encoded time and `rest` are
 * the frame.
 */
export function framePieces(event: RepoEvent): FramePieces {
  const body = bodyFields(event)
  const names = sortKeys([...Object.keys(body), 'seq', 'time'])
  // A map is its head, and then keys and values in turn.
  const fields = (start: number, end: number) => names.slice(start, end).flatMap((name) => [name, body[name]!])
  const [seqAt, timeAt] = [names.indexOf('seq'), names.indexOf('time')]
  return {
    head: Buffer.concat([
      encode({ op: 1, t: `#${event.type}` }),
      mapHead(names.length),
      encodeSequence([...fields(0, seqAt), 'seq']),
    ]),
    middle: encodeSequence([...fields(seqAt + 1, timeAt), 'time']),
    rest: encodeSequence(fields(timeAt + 1, names.length)),
  }
}

/** The time of a frame, encoded. It has the same length in all frames. */
export const frameTime = (sequencedAt: Millis): Uint8Array => encode(wireTime(sequencedAt))

/** The frame that the pieces are part of. */
export const completedFrame = ({ head, middle, rest }: FramePieces, seq: number, sequencedAt: Millis): Uint8Array =>
  Buffer.concat([head, encode(seq), middle, frameTime(sequencedAt), rest])

const opFields = ({ action, path, cid, prev }: RepoOp): DataObject =>
  prev === null ? { action, path, cid } : { action, path, cid, prev }

/** A `#info` message to one subscriber, without a number and not in the log. */
export const infoFrame = (name: string, message: string): Uint8Array =>
  encodeSequence([
    { op: 1, t: '#info' },
    { name, message },
  ])

/** The error frame, the last one before the server closes a stream. */
export const errorFrame = (error: string, message: string): Uint8Array =>
  encodeSequence([{ op: -1 }, { error, message }])
