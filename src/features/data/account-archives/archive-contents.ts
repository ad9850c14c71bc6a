/**
 * What an archive says about its account: all of it from one state of the database, in a temporary file, so that a
 * client may take as long as it needs to download it.
 */
import { crc32 } from 'node:zlib'
import { BatchFile } from '../../../platform/files/batch-file.ts'
import { RoomForCommits } from '../../../platform/files/free-space.ts'
import { Spool } from '../../../platform/files/spool.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader } from '../../../platform/database/database.ts'
import { writeCar } from '../../../protocol/car.ts'
import { wireTime, wireTimeOrNull, type Did } from '../../../protocol/identifiers.ts'
import { accountNotFound, accountOf, furtherHandlesOf, type Account } from '../../identity/accounts/accounts.ts'
import { listAppPasswords } from '../../access/sessions/sessions.ts'
import { accountBlobs } from '../blobs/blobs.ts'
import { findPreferences } from '../preferences/preferences.ts'
import { repoBlocks, repoHead, type RepoHead } from '../repo/repo.ts'
import { spaceExports } from '../spaces/spaces.ts'
import { archiveNames } from './archive-names.ts'
import { recordTables, tableText } from './record-tables.ts'

/** Blobs read at once. */
const PAGE_BLOBS = 500

/** A file of the archive. `start` is its place in the temporary file; `size` is in bytes, `sha256` in hex. */
export interface CollectedFile {
  name: string
  start: number
  size: number
  crc32: number
  sha256: string
}

export class NoRoomForArchive extends Error {
  constructor(folder: string) {
    super(`${folder} has no room for the archive: free some space`)
  }
}

/** Files that wait for their turn in the archive. */
export class CollectedFiles {
  readonly list: CollectedFile[] = []
  readonly #spool: Spool
  readonly #disk: RoomForCommits

  /** A temporary file is created in `dir`. */
  constructor(dir: string) {
    this.#spool = new Spool(dir)
    this.#disk = new RoomForCommits(dir)
  }

  /**
   * `pause` is called after each piece. It throws if the client has left. Throws `NoRoomForArchive` rather than use the
   * reserve of the disk.
   */
  async add(
    name: string,
    content: AsyncIterable<Uint8Array | string> | Iterable<Uint8Array | string>,
    pause: () => Promise<unknown>,
  ): Promise<void> {
    const start = this.#spool.size
    const hasher = new Bun.CryptoHasher('sha256')
    let checksum = 0
    for await (const piece of content) {
      const bytes = typeof piece === 'string' ? Buffer.from(piece) : piece
      hasher.update(bytes)
      checksum = crc32(bytes, checksum)
      if (!this.#disk.isLeft(bytes.byteLength)) throw new NoRoomForArchive(this.#disk.folder)
      this.#spool.append(bytes)
      await pause()
    }
    this.list.push({ name, start, size: this.#spool.size - start, crc32: checksum, sha256: hasher.digest('hex') })
  }

  read({ start, size }: CollectedFile): Generator<Uint8Array> {
    return this.#spool.read(start, start + size)
  }

  close(): void {
    this.#spool.close()
  }
}

/** What an archive says about an account, and the list of its blobs. */
export interface Contents {
  account: Account
  repo: RepoHead | null
  files: CollectedFiles
  blobs: BatchFile<Awaited<ReturnType<typeof accountBlobs>>[number]>
}

/** Collect everything but the bytes of the blobs. Throws `AccountNotFound` if the account does not exist. */
export async function collect(
  ctx: Context,
  reader: Reader,
  did: Did,
  pause: () => Promise<unknown>,
): Promise<Contents> {
  const account = await accountOf(reader, did)
  if (account === null) throw accountNotFound()
  const repo = await repoHead(reader, did)
  const { dataDir } = ctx.config
  const contents: Contents = { account, repo, files: new CollectedFiles(dataDir), blobs: new BatchFile(dataDir) }
  try {
    await collectFiles(ctx, reader, contents, pause)
    await collectBlobs(reader, contents, pause)
    return contents
  } catch (error) {
    closeContents(contents)
    throw error
  }
}

export function closeContents({ files, blobs }: Contents): void {
  files.close()
  blobs.close()
}

async function collectFiles(
  ctx: Context,
  reader: Reader,
  { account, repo, files }: Contents,
  pause: () => Promise<unknown>,
): Promise<void> {
  const { did } = account
  const preferences = await findPreferences(reader, did)
  await files.add(archiveNames.readMe, [README], pause)
  await files.add(archiveNames.account, [jsonText(await accountView(ctx, reader, account))], pause)
  await files.add(archiveNames.preferences, [jsonText({ preferences })], pause)
  if (repo !== null) await files.add(archiveNames.repo, writeCar(repo.head, repoBlocks(reader, repo, null)), pause)
  for (const table of recordTables)
    await files.add(archiveNames.table(table.name), tableText(reader, did, table), pause)
  await collectSpaces(ctx, reader, { did, files }, pause)
}

/** Adds nothing for an account that has written in no space. */
async function collectSpaces(
  ctx: Context,
  reader: Reader,
  { did, files }: { did: Did; files: CollectedFiles },
  pause: () => Promise<unknown>,
): Promise<void> {
  const spaces: object[] = []
  for await (const { car, ...named } of spaceExports(ctx, reader, did)) {
    const file = archiveNames.space(spaces.length + 1)
    await files.add(file, car, pause)
    spaces.push({ file, ...named })
  }
  if (spaces.length > 0) await files.add(archiveNames.spaceList, [jsonText({ spaces })], pause)
}

async function collectBlobs(
  reader: Reader,
  { account, blobs }: Contents,
  pause: () => Promise<unknown>,
): Promise<void> {
  for (let after = ''; ;) {
    const page = await accountBlobs(reader, account.did, after, PAGE_BLOBS)
    blobs.add(page)
    if (page.length < PAGE_BLOBS) return
    after = page.at(-1)!.cid
    await pause()
  }
}

export const jsonText = (value: object): string => `${JSON.stringify(value, null, 2)}\n`

async function accountView({ config }: Context, reader: Reader, account: Account): Promise<object> {
  const { did, handle, email, emailConfirmedAt, createdAt, deactivatedAt } = account
  const appPasswords = await listAppPasswords(reader, did)
  return {
    did,
    handle,
    furtherHandles: await furtherHandlesOf(reader, did),
    email,
    emailConfirmedAt: wireTimeOrNull(emailConfirmedAt),
    createdAt: wireTime(createdAt),
    deactivatedAt: wireTimeOrNull(deactivatedAt),
    service: config.publicUrl,
    appPasswords: appPasswords.map(({ name, privileged, createdAt: since }) => ({
      name,
      privileged,
      createdAt: wireTime(since),
    })),
  }
}

const README = `Everything that this server stores of your account.

manifest.json     what this archive contains, with the SHA-256 of each file
account.json      your account: its identity, handles, address, and the names of its app passwords
preferences.json  the settings of your apps
repo.car          your repository: all your posts, follows, likes and other records, as signed by your account
tables/           the same records as tables, which spreadsheets open
blobs/            your images and videos; their names are their content identifiers (CIDs)
blobs.csv         the list of these files
spaces.json       if you have written in spaces: which ones, and the file of each
spaces/           what you have written there, as signed by your account; other people may not see it

The archive contains no password and no key. A server that accepts such archives can restore the account from it.
`
