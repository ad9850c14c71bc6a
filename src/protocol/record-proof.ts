/**
 * Verifies the proof of a record: a CAR with the signed commit, the nodes from its root to the key, and the record.
 *
 * Source: lexicon com.atproto.sync.getRecord; atproto "Repository", "MST Structure".
 */
import { readCar } from './car.ts'
import { decode, type Data } from './cbor.ts'
import { type Cid } from './cid.ts'
import { parseCommit, verifyCommit } from './commit.ts'
import type { Did } from './identifiers.ts'
import type { PublicKey } from './keys.ts'
import { Malformed } from './malformed.ts'
import { MissingBlock, Mst } from './mst.ts'

export interface ProofSubject {
  did: Did
  /** The signing key in the DID document. */
  key: PublicKey
  /** Collection, slash, record key. */
  path: string
}

/** Returns the record, or null if the CAR proves that there is none. Throws `Malformed` if it proves neither. */
export async function readRecordProof(
  car: Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  { did, key, path }: ProofSubject,
): Promise<Data> {
  const { roots, pages } = await readCar(car)
  const blocks = new Map<string, { cid: Cid; bytes: Uint8Array }>()
  for await (const page of pages) for (const block of page) blocks.set(String(block.cid), block)
  const read = (cid: Cid) => blocks.get(String(cid))?.bytes ?? null

  const [root] = roots
  const commitBytes = root ? read(root) : null
  if (!commitBytes) throw new Malformed('The archive holds no commit')
  const commit = parseCommit(commitBytes)
  if (commit.did !== did) throw new Malformed(`The commit belongs to ${commit.did}`)
  if (!verifyCommit(commit, key)) throw new Malformed('The commit is not signed by its account')
  const cid = new Mst(commit.data, read).get(path)
  if (cid === null) return null
  const record = read(cid)
  if (!record) throw new MissingBlock(cid)
  return decode(record)
}
