/**
 * Commits of permissioned repositories: a set hash at a revision, signed for one reader.
 *
 * The signature covers where and when (the context), with 32 random bytes of this commit, and not the hash. A MAC,
 * whose key follows from those bytes, covers the hash. So a reader who passes on a commit proves nothing: anyone who
 * has the commit can make a MAC for any other hash. The hash counts only if it came from the author's server over TLS.
 *
 * Source: atproto proposal 0016, "Commits"; RFC 5869, 2.3 (HKDF-Expand, of which one block is enough).
 */
import { createHmac } from 'node:crypto'
import type { Data } from './cbor.ts'
import { equalBytes } from './cid.ts'
import { parseTid, type Did, type SpaceUri, type Tid } from './identifiers.ts'
import type { PublicKey, SigningKey } from './keys.ts'
import { Malformed } from './malformed.ts'

const COMMIT_VERSION = 1
const CONTEXT_NAME = 'atproto-space-v1'
const HASH_BYTES = 32
const SIGNATURE_BYTES = 64
/** Random bytes that a commit is made with. */
export const COMMIT_SEED_BYTES = 32

export interface SpaceCommit {
  ver: typeof COMMIT_VERSION
  /** The set hash. */
  hash: Uint8Array
  /** Random, fresh for each reader. */
  ikm: Uint8Array
  /** Signature of the context. */
  sig: Uint8Array
  /** MAC of the hash. */
  mac: Uint8Array
  rev: Tid
}

/** The repository, the revision and the random bytes of a commit. */
export interface CommitPlace {
  space: SpaceUri
  author: Did
  rev: Tid
  /** `COMMIT_SEED_BYTES` long. */
  ikm: Uint8Array
}

/** What is signed: a name, then each member after its length in two bytes, big-endian. */
export function commitContext({ space, author, rev, ikm }: CommitPlace): Uint8Array {
  const members = [space, author, rev, ikm].flatMap((member) => {
    const bytes = Buffer.from(member as string)
    const length = Buffer.alloc(2)
    length.writeUInt16BE(bytes.length)
    return [length, bytes]
  })
  return Buffer.concat([Buffer.from(CONTEXT_NAME), ...members])
}

const hmac = (key: Uint8Array, ...parts: readonly Uint8Array[]): Uint8Array =>
  new Uint8Array(parts.reduce((mac, part) => mac.update(part), createHmac('sha256', key)).digest())

const firstBlock = new Uint8Array([1])

/** The key of the MAC: the first block of HKDF-Expand. */
export const commitMacKey = (ikm: Uint8Array, context: Uint8Array): Uint8Array => hmac(ikm, context, firstBlock)

/** Signs a set hash for one reader, with the account's signing key. */
export function signSpaceCommit(place: CommitPlace, hash: Uint8Array, key: SigningKey): SpaceCommit {
  const context = commitContext(place)
  const { ikm, rev } = place
  return { ver: COMMIT_VERSION, hash, ikm, sig: key.sign(context), mac: hmac(commitMacKey(ikm, context), hash), rev }
}

const isBytes = (value: Data | undefined, length: number): boolean =>
  value instanceof Uint8Array && value.length === length

/** Members with the form of their values. A commit may have no others, because no signature would cover them. */
const commitMembers: Record<keyof SpaceCommit, (value: Data | undefined) => boolean> = {
  ver: (value) => value === COMMIT_VERSION,
  hash: (value) => isBytes(value, HASH_BYTES),
  ikm: (value) => isBytes(value, COMMIT_SEED_BYTES),
  sig: (value) => isBytes(value, SIGNATURE_BYTES),
  mac: (value) => isBytes(value, HASH_BYTES),
  rev: (value) => typeof value === 'string' && parseTid(value) !== null,
}
const memberChecks = Object.entries(commitMembers)

/** Reads a commit from decoded CBOR or JSON, without checking its signature. Throws `Malformed`. */
export function parseSpaceCommit(data: Data): SpaceCommit {
  if (typeof data !== 'object' || data === null || Array.isArray(data) || data instanceof Uint8Array)
    throw new Malformed('Commit is not a map')
  const members = data as { [member: string]: Data }
  for (const [name, holds] of memberChecks)
    if (!Object.hasOwn(members, name) || !holds(members[name])) throw new Malformed(`Commit has no valid ${name}`)
  if (Object.keys(members).length !== memberChecks.length) throw new Malformed('Commit has unknown members')
  return data as unknown as SpaceCommit
}

/** Whether the account with this key made the commit for this repository. A signature with a high `s` is refused. */
export function verifySpaceCommit(commit: SpaceCommit, space: SpaceUri, author: Did, key: PublicKey): boolean {
  const { rev, ikm, hash, mac, sig } = commit
  const context = commitContext({ space, author, rev, ikm })
  return equalBytes(hmac(commitMacKey(ikm, context), hash), mac) && key.verify(context, sig)
}
