/** Reads one account's `store.sqlite`: its repository, blobs and preferences, and the key in the file beside it. */
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { OperatorError } from '../../../base/operator-error.ts'
import { isBlockOf, parseCid, type Cid } from '../../../protocol/cid.ts'
import { parseTid, type Did, type Millis, type Tid } from '../../../protocol/identifiers.ts'
import { openSigningKey } from '../../../platform/secrets/signing-keys.ts'
import type { SigningKey } from '../../../protocol/keys.ts'
import type { Preference } from '../../../protocol/preference-rules.ts'
import type { BlockSource } from '../../data/sync/sync.ts'
import { openReferenceDatabase, type ReferenceDatabase } from './reference-database.ts'
import { actorFolder, type ReferenceFolder } from './reference-folder.ts'

const KEY_BYTES = 32

export interface FormerBlob {
  cid: string
  mimeType: string
  size: number
  /** Name of its file among the temporary ones; null once a record refers to it. */
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

  /** Throws `OperatorError` if the key or the database is missing or damaged. */
  static open(folder: Pick<ReferenceFolder, 'actors'>, did: Did): ReferenceActor {
    const path = actorFolder(folder, did)
    const secret = secretAt(join(path, 'key'))
    const key = openSigningKey('k256', secret)
    return new ReferenceActor(openReferenceDatabase(join(path, 'store.sqlite'), 'actor'), key, secret)
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

  /** When a record was written, and with which revision; null if its row is missing. */
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

  preferences(): Preference[] {
    const rows = this.database.all<{ valueJson: string }>('SELECT valueJson FROM account_pref ORDER BY id')
    return rows.map(({ valueJson }) => JSON.parse(valueJson) as Preference)
  }

  close(): void {
    this.database.close()
  }
}

function secretAt(path: string): Uint8Array {
  if (!statSync(path, { throwIfNoEntry: false })?.isFile())
    throw new OperatorError(`${path} is missing: it is the key that signs the repository. Copy the folder again`)
  const secret = readFileSync(path)
  if (secret.length !== KEY_BYTES)
    throw new OperatorError(`${path} is damaged: a key has ${KEY_BYTES} bytes. Restore a backup of it`)
  return secret
}
