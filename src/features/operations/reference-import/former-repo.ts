/** The repository and the blobs of an account at the old server, verified while they are read. */
import { OperatorError } from '../../../base/operator-error.ts'
import { Refusal } from '../../../http/errors.ts'
import { TextNotStorable } from '../../../platform/database/database.ts'
import { cidOfBlobDigest } from '../../../protocol/cid.ts'
import { verifyCommit } from '../../../protocol/commit.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { ImportedRepo } from '../../data/sync/sync.ts'
import type { ReferenceActor } from './reference-actor.ts'
import type { FormerBlobs } from './reference-blobs.ts'

export interface FormerRepo {
  repo: ImportedRepo
  /**
   * Whether the key of the account has signed the head. A repository that had moved to the old server keeps the
   * previous server's signature until something is written to it.
   */
  isSigned: boolean
}

/** Throws `OperatorError` or `Refusal` if the account has no repository, or its head is missing or malformed. */
export function formerRepoOf(actor: ReferenceActor, did: Did): FormerRepo {
  const repo = ImportedRepo.of(did, actor.head().cid, actor)
  return { repo, isSigned: verifyCommit(repo.commit, actor.key.publicKey) }
}

/** Whether an error is a fault of this one account, which is then left out. Other errors end the command. */
export const isFaultOfAccount = (error: unknown): error is Error =>
  error instanceof OperatorError || error instanceof Refusal || error instanceof TextNotStorable

/** Read everything. Throws as `formerRepoOf` does, at the first block that is missing or malformed. */
export async function verifyFormerRepo(
  actor: ReferenceActor,
  did: Did,
): Promise<{ records: number; isSigned: boolean }> {
  const { repo, isSigned } = formerRepoOf(actor, did)
  let records = 0
  for await (const page of repo.pages()) records += page.records.length
  return { records, isSigned }
}

/** Returns the fault of each blob that is missing or damaged. */
export async function verifyFormerBlobs(blobs: FormerBlobs, actor: ReferenceActor, did: Did): Promise<string[]> {
  const faults: string[] = []
  for (const blob of actor.blobs()) {
    const bytes = await blobs.open(did, blob)
    if (bytes === null) faults.push(missingBlob(blob.cid))
    else if ((await cidOfBytes(bytes)) !== blob.cid) faults.push(damagedBlob(blob.cid))
  }
  return faults
}

export const missingBlob = (cid: string): string => `blob ${cid} is missing`
export const damagedBlob = (cid: string): string => `blob ${cid} has other content`

async function cidOfBytes(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const hasher = new Bun.CryptoHasher('sha256')
  for await (const chunk of bytes) hasher.update(chunk)
  return cidOfBlobDigest(hasher.digest()).toString()
}
