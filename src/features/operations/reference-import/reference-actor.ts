/** Reads one account's `store.sqlite`: its repository, blobs and preferences, and the key in the file beside it. */
import { join } from 'node:path'
import { OperatorError } from '../../../base/operator-error.ts'
import { isBlockOf, parseCid, type Cid } from '../../../protocol/cid.ts'
import { parseTid, type Did, type Millis, type Tid } from '../../../protocol/identifiers.ts'
import type { SigningKey } from '../../../protocol/keys.ts'
import { isPreference, type Preference } from '../../../protocol/preference-rules.ts'
import type { BlockSource } from '../../data/sync/sync.ts'
import { openReferenceDatabase, type ReferenceDatabase } from './reference-database.ts'
import { actorFolder, type ReferenceFolder } from './reference-folder.ts'
import { formerKeyAt } from './reference-key.ts'

export interface FormerBlob {
  cid: string
  mimeType: string
  size: number
  /** Name of its file among the temporary ones; null once a record refers to the blob. */
  tempKey: string | null
  takedownRef: string | null
}

/** One account's database and key. */
export class ReferenceActor implements BlockSource {
  private constructor(
    readonly database: ReferenceDatabase,
    readonly key: SigningKey,
    /** The key as it is stored there. */
    readonly secret: Uint8Array,
  ) {}

  /** Open an account for as long as `work` runs. Throws `OperatorError` if key or database is missing or damaged. */
  static async whileOpen<T>(
    folder: Pick<ReferenceFolder, 'actors'>,
    did: Did,
    work: (actor: ReferenceActor) => Promise<T>,
  ): Promise<T> {
    const path = actorFolder(folder, did)
    const { key, secret } = formerKeyAt(join(path, 'key'))
    const actor = new ReferenceActor(openReferenceDatabase(join(path, 'store.sqlite'), 'actor'), key, secret)
    try {
      return await work(actor)
    } finally {
      actor.close()
    }
  }

  /** CID and revision of the head. Throws `OperatorError` if the account has no repository. */
  head(): { cid: Cid; rev: Tid } {
    const row = this.database.get<{ cid: string; rev: string }>('SELECT cid, rev FROM repo_root LIMIT 1')
    const [cid, rev] = row === null ? [null, null] : [parseCid(row.cid), parseTid(row.rev)]
    if (cid === null || rev === null) throw new OperatorError(`${this.database.path} holds no repository`)
    return { cid, rev }
  }

  get(cid: Cid): Uint8Array | null {
    const row = this.database.get<{ content: Uint8Array }>(
      'SELECT content FROM repo_block WHERE cid = ?',
      cid.toString(),
    )
    return row !== null && isBlockOf(cid.bytes, row.content) ? row.content : null
  }

  /** Returns when a record was written, and with which revision; null if its row is missing. */
  writtenAt(did: Did, path: string): { rev: Tid; at: Millis } | null {
    const row = this.database.get<{ repoRev: string; indexedAt: string }>(
      'SELECT repoRev, indexedAt FROM record WHERE uri = ?',
      `at://${did}/${path}`,
    )
    const rev = row && parseTid(row.repoRev)
    return rev && { rev, at: Date.parse(row.indexedAt) || 0 }
  }

  countRecords(): number {
    return this.database.get<{ count: number }>('SELECT count(*) AS count FROM record')!.count
  }

  takendownRecords(): { path: string; ref: string }[] {
    return this.database.all(
      "SELECT collection || '/' || rkey AS path, takedownRef AS ref FROM record WHERE takedownRef IS NOT NULL",
    )
  }

  blobs(): FormerBlob[] {
    return this.database.all('SELECT cid, mimeType, size, tempKey, takedownRef FROM blob ORDER BY cid')
  }

  /** Throws `OperatorError` if one is malformed. */
  preferences(): Preference[] {
    const rows = this.database.all<{ id: number; valueJson: string }>(
      'SELECT id, valueJson FROM account_pref ORDER BY id',
    )
    return rows.map(({ id, valueJson }) => {
      const value = valueOf(valueJson)
      if (!isPreference(value))
        throw new OperatorError(
          `${this.database.path} is damaged: preference ${id} is malformed. Restore a backup of it`,
        )
      return value
    })
  }

  close(): void {
    this.database.close()
  }
}

/** Returns the value of JSON text; undefined if it is malformed. */
function valueOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
