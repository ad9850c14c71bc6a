/**
 * Frames of the firehose: two CBOR values in one message, a header that names the type and a body.
 *
 * Optional fields are absent, never null, except where the lexicon says null (`since`, the `cid` of a delete).
 *
 * Source: atproto "Event Stream"; lexicon `com.atproto.sync.subscribeRepos`.
 */
import { type DataObject, encodeSequence } from './cbor.ts'
import type { Cid } from './cid.ts'
import type { RepoOp } from './commit.ts'
import type { Did, Handle, Tid } from './identifiers.ts'

/** What every event of the log has. `time` is RFC 3339 in UTC with milliseconds: of sequencing, the same at each replay. */
interface Sequenced {
  seq: number
  time: string
}

export interface CommitEvent extends Sequenced {
  repo: Did
  commit: Cid
  rev: Tid
  /** The revision before; `null` for the first commit. */
  since: Tid | null
  /** The tree before; `null` for the first commit. */
  prevData: Cid | null
  ops: readonly RepoOp[]
  /** A CAR whose root is the commit. */
  blocks: Uint8Array
}

export function commitFrame({ seq, time, repo, commit, rev, since, prevData, ops, blocks }: CommitEvent): Uint8Array {
  return messageFrame('#commit', {
    seq,
    time,
    repo,
    commit,
    rev,
    since,
    blocks,
    ops: ops.map(({ action, path, cid, prev }) => ({ action, path, cid, ...(prev !== null && { prev }) })),
    ...(prevData !== null && { prevData }),
    // Fields of the past that the lexicon still requires.
    blobs: [],
    rebase: false,
    tooBig: false,
  })
}

export interface SyncEvent extends Sequenced {
  did: Did
  rev: Tid
  /** A CAR that holds the commit alone. */
  blocks: Uint8Array
}

export const syncFrame = ({ seq, time, did, rev, blocks }: SyncEvent): Uint8Array => messageFrame('#sync', { seq, time, did, rev, blocks })

export interface IdentityEvent extends Sequenced {
  did: Did
  handle?: Handle
}

export function identityFrame({ seq, time, did, handle }: IdentityEvent): Uint8Array {
  return messageFrame('#identity', { seq, time, did, ...(handle !== undefined && { handle }) })
}

export type AccountStatus = 'takendown' | 'suspended' | 'deleted' | 'deactivated'

export interface AccountEvent extends Sequenced {
  did: Did
  /** Absent while the account is active. */
  status?: AccountStatus
}

export function accountFrame({ seq, time, did, status }: AccountEvent): Uint8Array {
  return messageFrame('#account', { seq, time, did, active: status === undefined, ...(status !== undefined && { status }) })
}

/** A notice to one subscriber. It is no event and has no `seq`. */
export const infoFrame = (name: 'OutdatedCursor', message: string): Uint8Array => messageFrame('#info', { name, message })

/** The last frame before the connection is closed. */
export function errorFrame(error: 'FutureCursor' | 'ConsumerTooSlow' | 'InvalidRequest', message: string): Uint8Array {
  return encodeSequence([{ op: -1 }, { error, message }])
}

const messageFrame = (type: string, body: DataObject): Uint8Array => encodeSequence([{ op: 1, t: type }, body])
