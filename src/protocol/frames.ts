/**
 * What the firehose tells, as plain data and as frames.
 *
 * A frame is two CBOR values in a row, a header that names the type and a body. A body is encoded once, when its event
 * is numbered; the header is one of a few constants, so a stored body becomes a frame by being copied behind its header.
 * Optional fields are absent, never null, except where the lexicon says null (`since`, the `cid` of a deletion).
 *
 * Source: atproto "Event Stream"; lexicon com.atproto.sync.subscribeRepos.
 */
import { type DataObject, encode, encodeSequence } from './cbor.ts'
import type { Cid } from './cid.ts'
import type { RepoOp } from './commit.ts'
import type { Did, Handle, Millis, Tid } from './identifiers.ts'

export type AccountStatus = 'active' | 'takendown' | 'suspended' | 'deleted' | 'deactivated'

export type RepoEvent =
  | {
      type: 'commit'
      did: Did
      commit: Cid
      rev: Tid
      /** Revision before this one; null for the first. */
      since: Tid | null
      /** CAR with the commit as its root. */
      blocks: Uint8Array
      ops: readonly RepoOp[]
      /** Root of the tree before this commit; null for the first. */
      prevData: Cid | null
    }
  /** `blocks` is a CAR that holds the commit alone. */
  | { type: 'sync'; did: Did; rev: Tid; blocks: Uint8Array }
  | { type: 'identity'; did: Did; handle?: Handle }
  | { type: 'account'; did: Did; status: AccountStatus }

export type EventType = RepoEvent['type']

/** Body of an event, in the bytes that every replay repeats. Its time is that of sequencing, RFC 3339 in UTC. */
export function encodeBody(event: RepoEvent, seq: number, sequencedAt: Millis): Uint8Array {
  return encode({ seq, time: new Date(sequencedAt).toISOString(), ...bodyFields(event) })
}

function bodyFields(event: RepoEvent): DataObject {
  switch (event.type) {
    case 'commit': {
      const { did, commit, rev, since, blocks, ops, prevData } = event
      const known = { repo: did, commit, rev, since, blocks, ops: ops.map(opFields), rebase: false, tooBig: false, blobs: [] }
      return prevData === null ? known : { ...known, prevData }
    }
    case 'sync':
      return { did: event.did, rev: event.rev, blocks: event.blocks }
    case 'identity':
      return event.handle === undefined ? { did: event.did } : { did: event.did, handle: event.handle }
    case 'account':
      return event.status === 'active' ? { did: event.did, active: true } : { did: event.did, active: false, status: event.status }
  }
}

const opFields = ({ action, path, cid, prev }: RepoOp): DataObject => (prev === null ? { action, path, cid } : { action, path, cid, prev })

const header = (name: string) => encode({ op: 1, t: `#${name}` })
const headers: Record<EventType, Uint8Array> = {
  commit: header('commit'),
  sync: header('sync'),
  identity: header('identity'),
  account: header('account'),
}

export function eventFrame(type: EventType, body: Uint8Array): Uint8Array {
  const header = headers[type]
  const frame = new Uint8Array(header.length + body.length)
  frame.set(header)
  frame.set(body, header.length)
  return frame
}

/** A notice to one subscriber. It has no number, and is not part of the log. */
export const infoFrame = (name: string, message: string): Uint8Array => encodeSequence([{ op: 1, t: '#info' }, { name, message }])

/** The last frame of a stream that ends for a reason. */
export const errorFrame = (error: string, message: string): Uint8Array => encodeSequence([{ op: -1 }, { error, message }])
