/**
 * Blobs: where their bytes are, in a bucket that all nodes share or in the folder of a server on SQLite, and what has
 * to hold for them. There are few different ones, so that uploads and removals of the same bytes meet.
 */
import { join } from 'node:path'
import { Secret } from '../../../src/base/secret.ts'
import { recordValue } from '../../../src/features/data/repo/large-records.ts'
import { decode } from '../../../src/protocol/cbor.ts'
import { Cid, cidOfBlobDigest } from '../../../src/protocol/cid.ts'
import type { ConfigOverrides } from '../../support/servers/config.ts'
import { SimulatedBucket } from './bucket.ts'
import { Folder } from './folder.ts'
import type { Changed } from './storage.ts'
import { EPOCH_MILLIS } from './timeline.ts'
import type { World } from './world.ts'

const PREFIX = 'blobs/'
/** How many different blobs there are. */
const CONTENTS = 12
/** What is noted for so long is about to be removed from a bucket. */
const NOTED_MILLIS = 5500
/** How long a blob without references is kept. */
const KEPT_SECS = 1
const MIME_TYPE = 'application/x-simulated'

interface Content {
  bytes: Uint8Array
  mimeType: string
  cid: string
}

const cidOf = (bytes: Uint8Array) => cidOfBlobDigest(new Bun.CryptoHasher('sha256').update(bytes).digest()).toString()
const contents: readonly Content[] = Array.from({ length: CONTENTS }, (_, i) => {
  const bytes = Buffer.from(`blob ${i}`)
  return { bytes, mimeType: MIME_TYPE, cid: cidOf(bytes) }
})

export const configOfBlobs = (isShared: boolean): ConfigOverrides => ({
  blobs: {
    gcIntervalSecs: 1,
    tempTtlSecs: KEPT_SECS,
    ...(isShared && {
      store: 's3',
      s3Bucket: 'bucket',
      s3Endpoint: 'http://bucket.test',
      s3AccessKeyId: 'key',
      s3SecretAccessKey: new Secret('secret'),
      s3KeyPrefix: PREFIX,
    }),
  },
})

/** A blob as a record refers to it. */
export interface Reference {
  $type: 'blob'
  ref: { $link: string }
  mimeType: string
  size: number
}

/** Records that may refer to blobs, and the rows that say so. */
interface Referring {
  records: string
  references: string
}

const publicly: Referring = {
  records: `SELECT did, path AS place, ${recordValue.texts.join('')} AS value
    FROM record JOIN repo ON repo.id = repo_id WHERE did IS NOT NULL`,
  references: 'SELECT did, cid, record AS place FROM blob_reference',
}
const inSpaces: Referring = {
  records: `SELECT did, space || ' ' || path AS place, value
    FROM space_record JOIN space_repo ON space_repo.id = space_repo_id WHERE did IS NOT NULL`,
  references: `SELECT did, cid, space || ' ' || record AS place FROM space_blob_reference`,
}

export class Blobs {
  /** Null if they are in a folder. */
  readonly bucket: SimulatedBucket | null
  readonly folder: Folder | null

  constructor(
    readonly world: World,
    dataDir: string,
  ) {
    const { timeline, options } = world
    this.bucket = options.onFile ? null : new SimulatedBucket(timeline, timeline.happens(0.5))
    this.folder = options.onFile ? new Folder(join(dataDir, 'blobs'), timeline) : null
    if (this.bucket !== null) this.bucket.onDeleted = (key) => this.#removed(key.slice(key.lastIndexOf('/') + 1))
    if (this.folder !== null) this.folder.onRemoved = (path) => this.#removed(path.slice(path.lastIndexOf('/') + 1))
  }

  /** One of the blobs that there are: one that is about to be removed, or any. */
  get any(): Content {
    const { timeline } = this.world
    const noted = timeline.happens(0.5) ? this.#noted : []
    return noted.length > 0 ? timeline.random.of(noted) : timeline.random.of(contents)
  }

  get #noted(): Content[] {
    const rows = this.world.rows<{ cid: string }>(
      'SELECT cid FROM blob_removal WHERE unowned_at < ?1 ORDER BY cid',
      EPOCH_MILLIS + this.world.timeline.now - NOTED_MILLIS,
    )
    return rows.map((row) => contents.find(({ cid }) => cid === row.cid)!)
  }

  /** Whether a blob that was uploaded then may be gone by now, if no record refers to it. */
  mayBeGone(uploadedAt: number): boolean {
    return this.world.timeline.now > uploadedAt + KEPT_SECS * 1000
  }

  #bytesOf(cid: string): Uint8Array | null {
    if (this.bucket !== null) return this.bucket.contentOf(keyOf(cid))
    return this.folder!.contentOf(`${this.folder!.dir}/${cid.slice(-2)}/${cid}`)
  }

  #requireBytes(cid: string, why: string): void {
    const bytes = this.#bytesOf(cid)
    if (bytes === null) this.world.fail(`${why}, and its bytes are not there`)
    else if (cidOf(bytes) !== cid) this.world.fail(`${why}, and its bytes are other ones`)
  }

  /** Rows that were committed: whoever owns a blob has its bytes. */
  committed(changed: readonly Changed[]): void {
    for (const { table, row } of changed)
      if (table === 'blob' && row !== null) this.#requireBytes(String(row['cid']), `${row['did']} owns ${row['cid']}`)
  }

  #removed(cid: string): void {
    const [row] = this.world.rows<{ did: string }>('SELECT did FROM blob WHERE cid = ?1', cid)
    if (row !== undefined) this.world.fail(`the bytes of ${cid} are removed, and ${row.did} owns it`)
  }

  /** Whether those that were kept long enough are gone, as rows. What only records in spaces refer to stays. */
  get areSwept(): boolean {
    const isHeld = 'SELECT 1 FROM space_blob_reference r WHERE r.did = blob.did AND r.cid = blob.cid'
    return (
      this.world.rows(`SELECT 1 FROM blob WHERE unreferenced_at IS NOT NULL AND NOT EXISTS (${isHeld})`).length === 0
    )
  }

  /** At the end, when nothing is on its way. */
  finish(): void {
    const { world } = this
    const owned = world.rows<{ did: string; cid: string }>('SELECT did, cid FROM blob')
    for (const { did, cid } of owned) this.#requireBytes(cid, `${did} owns ${cid} at the end`)
    const ownedBy = new Set(owned.map(({ did, cid }) => `${did} ${cid}`))
    for (const { records, references } of [publicly, inSpaces]) {
      const noted = new Set(
        world
          .rows<{ did: string; cid: string; place: string }>(references)
          .map(({ did, cid, place }) => `${did} ${cid} ${place}`),
      )
      for (const { did, place, value } of world.rows<{ did: string; place: string; value: Uint8Array }>(records)) {
        const { blob } = decode(value) as unknown as { blob?: { ref: Cid } }
        if (blob === undefined) continue
        const cid = blob.ref.toString()
        if (!ownedBy.has(`${did} ${cid}`)) world.fail(`${place} refers to ${cid}, which ${did} does not have`)
        if (!noted.delete(`${did} ${cid} ${place}`)) world.fail(`${place} refers to ${cid}, which is not noted`)
      }
      const [lost] = noted
      if (lost !== undefined) world.fail(`a reference is noted that no record has: ${lost}`)
    }
  }

  end(): void {
    this.folder?.end()
  }
}

const keyOf = (cid: string) => `${PREFIX}${cid.slice(7, 9)}/${cid}`
