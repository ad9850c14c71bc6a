/**
 * A table of the DPoP proofs that were used at any node of a cluster. Proofs that arrive while a statement is running
 * share the next statement, so that a busy node sends a few hundred statements a second, however many requests it has.
 */
import { nowMillis, sql, type Cluster } from '../../../platform/database/database.ts'
import { BatchLoop } from '../../../platform/running/batch-loop.ts'
import { PROOF_MEMORY_SECS } from '../../../protocol/dpop.ts'

/** Most proofs in one statement. */
const MAX_BATCH = 1000
const DIGEST_BYTES = 16

interface Waiting {
  /** In hexadecimal. */
  digest: string
  resolve(isFresh: boolean): void
  reject(error: unknown): void
}

export class SharedProofs {
  readonly #waiting: Waiting[] = []
  readonly #batches = new BatchLoop(() => this.#send())

  constructor(readonly cluster: Cluster) {}

  /**
   * Record the use of `jti` with the key `jkt`. Returns false if any node has recorded it. A node must call it only
   * once for a proof.
   */
  use(jkt: string, jti: string): Promise<boolean> {
    const { promise, resolve, reject } = Promise.withResolvers<boolean>()
    const digest = new Bun.SHA256()
      .update(`${jkt}.${jti}`)
      .digest('hex')
      .slice(0, 2 * DIGEST_BYTES)
    this.#waiting.push({ digest, resolve, reject })
    this.#batches.wake()
    return promise
  }

  async #send(): Promise<boolean> {
    const batch = this.#waiting.splice(0, MAX_BATCH)
    try {
      const fresh = await this.#insert(batch.map(({ digest }) => digest))
      for (const { digest, resolve } of batch) resolve(fresh.has(digest))
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
    return this.#waiting.length > 0
  }

  /** Returns the digests that were not recorded yet. Sorts them, so that two nodes never wait for each other. */
  async #insert(digests: readonly string[]): Promise<Set<string>> {
    const rows = await this.cluster.autocommit<{ digest: string }>(sql`
      INSERT INTO used_proof (digest, used_at)
      SELECT decode(one, 'hex'), ${nowMillis} FROM unnest(string_to_array(${digests.toSorted().join(' ')}, ' ')) AS one
      ON CONFLICT (digest) DO NOTHING RETURNING encode(digest, 'hex') AS digest`)
    return new Set(rows.map(({ digest }) => digest))
  }
}

/** Delete the proofs that are too old to be accepted again. */
export async function forgetOldProofs(cluster: Cluster): Promise<void> {
  await cluster.autocommit(sql`DELETE FROM used_proof WHERE used_at < ${nowMillis} - ${PROOF_MEMORY_SECS * 1000}`)
}
