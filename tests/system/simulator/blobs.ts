/**
 * Blobs: where their bytes are (a bucket that all nodes share, the folder of a server on SQLite, or the folders of two
 * machines, with a mirror), and what has to hold for them. There are few different ones, so that uploads and removals
 * of the same bytes meet.
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
import type { Node, World } from './world.ts'

const PREFIX = 'blobs/'
/** Of the copies in the mirror. */
const MIRROR_PREFIX = 'copies/'
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

const access = { endpoint: 'http://bucket.test', accessKeyId: 'key', secretAccessKey: new Secret('secret') }

export const configOfBlobs = ({ isMirrored, bucket }: Blobs): ConfigOverrides => ({
  ...(isMirrored && {
    blobMirror: { ...access, bucket: 'bucket', keyPrefix: MIRROR_PREFIX, syncIntervalSecs: 1 },
  }),
  blobs: {
    gcIntervalSecs: 1,
    tempTtlSecs: KEPT_SECS,
    ...(bucket !== null && {
      store: 's3',
      s3Bucket: 'bucket',
      s3Endpoint: access.endpoint,
      s3AccessKeyId: access.accessKeyId,
      s3SecretAccessKey: access.secretAccessKey,
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
  /** Null if they are in folders. */
  readonly bucket: SimulatedBucket | null
  /** In the order of nodes. */
  readonly folders: readonly Folder[]
  /** When uploads were acknowledged, by account and CID, after which the mirror keeps copies. */
  readonly #promised = new Map<string, number>()

  constructor(
    readonly world: World,
    dataDirs: readonly string[],
  ) {
    const { timeline, options } = world
    this.bucket = options.onFile ? null : new SimulatedBucket(timeline, timeline.happens(0.5))
    this.folders = dataDirs.map((dataDir) => new Folder(join(dataDir, 'blobs'), timeline))
    const removed = (path: string) => this.#removed(path.slice(path.lastIndexOf('/') + 1))
    for (const place of [this.bucket ?? world.bucket, ...this.folders]) if (place !== null) place.onRemoved = removed
  }

  /** Whether there are copies in a mirror, which is the bucket of two machines. */
  get isMirrored(): boolean {
    return this.world.pair !== null
  }

  folderOf(node: Node): Folder | undefined {
    return this.folders[this.world.nodes.indexOf(node)]
  }

  /** One of the blobs that there are: one that is about to be removed, or any. */
  get any(): Content {
    const { timeline } = this.world
    const noted = timeline.happens(0.5) ? this.#noted : []
    return noted.length > 0 ? timeline.random.of(noted) : timeline.random.of(contents)
  }

  get #noted(): Content[] {
    if (this.isMirrored) return this.#unowned
    const rows = this.world.rows<{ cid: string }>(
      'SELECT cid FROM blob_removal WHERE unowned_at < ?1 ORDER BY cid',
      EPOCH_MILLIS + this.world.timeline.now - NOTED_MILLIS,
    )
    return rows.map((row) => contents.find(({ cid }) => cid === row.cid)!)
  }

  /** The mirror has copies, which a pass may be about to delete. */
  get #unowned(): Content[] {
    const owned = new Set(this.world.rows<{ cid: string }>('SELECT cid FROM blob').map(({ cid }) => cid))
    return contents.filter(({ cid }) => !owned.has(cid) && this.#copyOf(cid) !== null)
  }

  /** Whether a blob that was uploaded then may be gone by now, if no record refers to it. */
  mayBeGone(uploadedAt: number): boolean {
    return this.world.timeline.now > uploadedAt + KEPT_SECS * 1000
  }

  #bytesOf(cid: string): Uint8Array | null {
    return this.bucket === null ? this.#fileOf(cid) : this.bucket.contentOf(keyOf(cid))
  }

  /** At the machine that serves. */
  #fileOf(cid: string): Uint8Array | null {
    const folder = this.folders[this.world.pair?.serving ?? 0]!
    return folder.contentOf(`${folder.dir}/${cid.slice(-2)}/${cid}`)
  }

  #copyOf(cid: string): Uint8Array | null {
    return this.isMirrored ? this.world.bucket!.contentOf(MIRROR_PREFIX + cid) : null
  }

  #requireBytes(cid: string, why: string, bytes = this.#bytesOf(cid)): void {
    if (bytes === null) this.world.fail(`${why}, and its bytes are not there`)
    else if (cidOf(bytes) !== cid) this.world.fail(`${why}, and its bytes are other ones`)
  }

  /** Rows that were committed: whoever owns a blob has its bytes. */
  committed(changed: readonly Changed[]): void {
    for (const { table, row } of changed)
      if (table === 'blob' && row !== null) this.#requireBytes(String(row['cid']), `${row['did']} owns ${row['cid']}`)
  }

  #removed(cid: string): void {
    const rows = this.world.rows<{ did: string; at: number }>(
      'SELECT did, uploaded_at AS at FROM blob WHERE cid = ?1',
      cid,
    )
    const owners = this.isMirrored
      ? rows.filter(({ did, at }) => at <= (this.#promised.get(`${did} ${cid}`) ?? 0))
      : rows
    const isThere = this.isMirrored && this.#copyOf(cid) !== null
    if (owners.length > 0 && !isThere) this.world.fail(`the bytes of ${cid} are removed, and ${owners[0]!.did} owns it`)
  }

  /** An upload was acknowledged, which had begun then. Of two machines, the one that serves may be lost from now on. */
  acknowledged(did: string, cid: string, begunAt: number): void {
    if (!this.isMirrored || this.mayBeGone(begunAt)) return
    this.#requireBytes(cid, `the upload of ${cid} was acknowledged`, this.#copyOf(cid))
    this.#promised.set(`${did} ${cid}`, EPOCH_MILLIS + this.world.timeline.now)
  }

  /** Whether the machine that serves has fetched from the mirror what it lacks. */
  get areFetched(): boolean {
    const owned = this.isMirrored ? this.world.rows<{ cid: string }>('SELECT cid FROM blob') : []
    return owned.every(({ cid }) => this.#fileOf(cid) !== null)
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
    for (const folder of this.folders) folder.end()
  }
}

const keyOf = (cid: string) => `${PREFIX}${cid.slice(7, 9)}/${cid}`
