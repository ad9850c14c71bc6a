/** How a feature plugs in: one value that lists everything it contributes. `features.ts` lists the features. */
import type { Throttle } from '../base/pace.ts'
import type { CredentialKind } from './credential.ts'
import type { Endpoint, Exchange, Outline } from './endpoint.ts'
import type { OAuthParameters } from './oauth-parameters.ts'
import type { CapabilityName } from '../platform/configuration/capabilities.ts'
import type { Context } from '../platform/context.ts'
import type { Reader, Tx } from '../platform/database/database.ts'
import type { Sweep } from '../platform/running/sweeps.ts'
import type { StepKind } from '../platform/running/steps.ts'
import type { Did, Tid } from '../protocol/identifiers.ts'

export interface Feature {
  name: string
  routes?: readonly Endpoint[]
  /** Capabilities that this feature implements. Each is offered if the configuration asks for it. */
  capabilities?: readonly CapabilityName[]
  sweeps?: readonly Sweep[]
  /** Kinds of durable steps: effects outside the database that a transaction starts. */
  steps?: readonly StepKind<unknown>[]
  /** Returns whether to mount the feature; mounted if omitted. Capabilities gate single routes, this gates them all. */
  enabled?(ctx: Context): boolean
  /**
   * Runs before the port opens: load keys, repair, restore. Returns a function that undoes it after the port was
   * closed, if necessary.
   */
  prepare?(ctx: Context): Promise<(() => void | Promise<void>) | void>
  /** On a cluster, runs every few seconds: takes over or deletes the work of dead nodes. */
  reclaim?(ctx: Context): Promise<void>
  /**
   * Deletes every row about an account, in the transaction that deletes it. Returns work that is to follow the commit,
   * if there is any; that work may fail, or never run. Runs whether or not the feature is enabled.
   */
  forgetAccount?(ctx: Context, tx: Tx, did: Did): Promise<(() => Promise<void>) | void>
  /**
   * Ends the access that this feature gave to an account, as far as the reason calls for it. Returns how much ended.
   */
  endAccess?(ctx: Context, tx: Tx, did: Did, why: AccessEnd): Promise<EndedAccess | void>
  /**
   * Ends what only an active account may have, in the transaction that deactivates it. What its holder needs to
   * activate it again stays.
   */
  endActivity?(tx: Tx, did: Did): Promise<void>
  /**
   * Ends what the address of an account was good for, such as codes that were mailed to it, in the transaction that
   * gives the account another one.
   */
  endAddress?(ctx: Context, tx: Tx, did: Did, address: AddressChange): Promise<void>
  /**
   * Ends the access that this feature gave to an account by a delegation, in the transaction that ends the delegation.
   */
  endDelegation?(ctx: Context, tx: Tx, delegation: { id: string; did: Did }): Promise<void>
  /** The credentials (`Credential`) that this feature issues or knows how to check. */
  credentials?: readonly CredentialKind<unknown>[]
  /** Ends what this feature does for a device of an operator, in the transaction that revokes it. */
  endOperatorDevice?(ctx: Context, tx: Tx, deviceId: string): Promise<void>
  /** The grants that this feature adds to the token endpoint, as it is configured, by `grant_type`. */
  grants?(ctx: Context): Readonly<Record<string, Grant>>
  /** Tells moderators of a blob that a check has set aside, in the transaction that sets it aside. */
  reportBlob?(ctx: Context, tx: Tx, blob: SetAsideBlob): Promise<void>
  /** Sends a public read that this server cannot answer to the service that can. At most one feature declares it. */
  passOn?(exchange: Exchange): Promise<Outline>
  /**
   * Whether records of an account may be lost, so that blobs that they may refer to must be kept. Called before blobs
   * are deleted by age.
   */
  keepsBlobs?(reader: Reader, did: Did): Promise<boolean>
  /**
   * Whether the stored references to blobs match the feature's own records, so that a blob without a reference may be
   * deleted. Asked once for an account in a pass that would delete its blobs; `throttled` runs the pieces.
   */
  agreesOnBlobs?(reader: Reader, did: Did, throttled: Throttle): Promise<boolean>
  /** Shows all records to features that repositories build on. At most one feature declares it. */
  records?: RecordSource
  /** Runs once the port is open. Returns a function that stops what it started, if anything. */
  start?(ctx: Context): (() => void | Promise<void>) | void
}

export interface SetAsideBlob {
  did: Did
  cid: string
  /** The reason that the check gave, for moderators. */
  reason: string
}

/** The records of all accounts, including those taken down. */
export interface RecordSource {
  /** A page of repositories in order of their DIDs, after `after`, each with its revision. */
  repos(reader: Reader, after: Did | null, limit: number): Promise<{ did: Did; rev: Tid }[]>
  /**
   * The next of an account's records in order of their paths, after `after`: as many of them as can be decoded in one
   * turn of the event loop. `isEnd`: they are the last ones. Otherwise there is one at least.
   */
  page(reader: Reader, did: Did, after: string, limit: number): Promise<{ records: SourceRecord[]; isEnd: boolean }>
  /** Returns null if there is no such record. */
  find(reader: Reader, did: Did, path: string): Promise<SourceRecord | null>
}

export interface SourceRecord {
  /** `collection/rkey`. */
  path: string
  /** Revision of the commit that wrote it. */
  rev: Tid
  /** The record's block, in DAG-CBOR. */
  value: Uint8Array
}

/** Answers a request to the token endpoint. Throws an `OAuthError`. */
export type Grant = (exchange: Exchange, parameters: OAuthParameters) => Promise<object>

/**
 * Why access to an account ends. `new_password`: the holder changed it, knowing the old one. `reset_password`: with a
 * mailed code, or by starting a move to this server over, so an intruder may have been signed in. `taken_down` and
 * `restored`: a takedown and its end. `revoked`: the operator ends everything. `transferred`: the account has moved to
 * another device.
 */
export type AccessEnd = 'new_password' | 'reset_password' | 'taken_down' | 'restored' | 'revoked' | 'transferred'

/** `before` is null if the account had no address, and may be the same as `after`. */
export interface AddressChange {
  before: string | null
  after: string
}

/** How many credentials ended, by kind. */
export type EndedAccess = Partial<
  Record<
    | 'sessions'
    | 'appPasswords'
    | 'oauthTokens'
    | 'oauthCodes'
    | 'agentRegistrations'
    | 'delegations'
    | 'transferDeviceTokens'
    | 'pushDevices',
    number
  >
>
