/** The contents of a wallet: the keys of one identity, and the unfinished step. */
import type { Operation } from '../protocol/plc.ts'

export const WALLET_FORMAT = 1

export interface WalletContents {
  format: typeof WALLET_FORMAT
  /** Origin of the server that hosts the account. */
  server: string
  /** Origin of the PLC directory. */
  directory: string
  /** Null until the ceremony determines it. */
  did: string | null
  handle: string | null
  /** The private scalar of the device key (P-256), 32 bytes in hex. It outranks all other keys of the identity. */
  deviceKey: string
  /** The did:key derived from the recovery seed. The seed itself is never stored. Null while there are no shares. */
  recoveryKey: string | null
  /** Share 1, in base32. */
  keychainShare: string | null
  /** Share 3, in base32. Kept until its owner has seen it. */
  paperShare: string | null
  /** The opaque session that the ceremony ends with; some endpoints accept no other session. */
  walletSession: string | null
  session: StoredSession | null
  /** Sessions at servers that the account has left, by origin, with which it can come back. */
  elsewhere: Record<string, Pick<WalletContents, 'session' | 'walletSession'>>
  unfinished: Unfinished | null
}

export interface StoredSession {
  accessJwt: string
  refreshJwt: string
}

/**
 * A step that is stored before it begins, so that a lost answer or a killed process loses no key. Repeating the command
 * continues the step.
 */
export type Unfinished = Creation | Rekeying | Deposit | Rotation | Recovery | HandOver | Arrival | Move

export interface Creation {
  what: 'creation'
  email: string
  handle: string
  /** Null at a server that requires no code, where an ordinary sign-up creates the account. */
  claimCode: string | null
  /** A did:web whose document its owner publishes; null for a did:plc. */
  webDid: string | null
  /** Null until the server has issued the repository key. */
  identity: NewIdentity | null
}

export interface PlcIdentity {
  method: 'plc'
  repoKey: string
  operation: Operation
  recoveryKey: string
  escrowShare: string
}

/** What the wallet sends to create the account. A repeated request must send the same. */
export type NewIdentity = PlcIdentity | { method: 'web'; repoKey: string; did: string; document: string }

/**
 * An operation that gives the identity another recovery key, and perhaps another device key. The shares are those of
 * the new key.
 */
export interface Rekeying {
  what: 'rekeying'
  operation: Operation
  recoveryKey: string
  keychainShare: string
  escrowShare: string
  paperShare: string
  /** The step to return to if the directory refuses the operation. */
  otherwise: Recovery | null
}

/** The shares of a new key are in force, but the server does not have its share yet. */
export interface Deposit {
  what: 'deposit'
  escrowShare: string
}

/** The operation that makes a staged repository key the current one. */
export interface Rotation {
  what: 'rotation'
  operation: Operation
}

/**
 * An open release of the escrowed share. The server hands out the share for a limited time, and the wallet stores it as
 * soon as it arrives.
 */
export interface Recovery {
  what: 'recovery'
  did: string
  /** As the server wrote it. */
  availableAt: string | null
  /** The code that opened the release, required to collect the share. Absent in wallets of an earlier version. */
  code?: string
  escrowShare: string | null
}

/** On the old device: the operation that replaces its own key by the key of another device. */
export interface HandOver {
  what: 'hand-over'
  /** Null if the server takes no part in it. */
  transferId: string | null
  /** Null until the key of the other device is known. */
  operation: Operation | null
}

/** On the new device: waiting for the old device to hand over. */
export interface Arrival {
  what: 'arrival'
  /** Null if the server takes no part in it. */
  transfer: { id: string; deviceToken: string } | null
}

/** A move to another server. */
export interface Move {
  what: 'move'
  /** Origin of the new server. */
  to: string
  handle: string
  /** At the new server, where the account exists but is not active yet. */
  session: StoredSession
  /** The operation that names the new server; null until the new server has everything. */
  operation: Operation | null
}
