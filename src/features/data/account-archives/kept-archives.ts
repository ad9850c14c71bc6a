/**
 * Archives that are made regularly, for holders who want that. Each account has a subfolder of `archives.folder` with
 * the newest ones. A file gets its name once all of it is durable.
 */
import { mkdir, open, readdir, rename, rm, stat, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { CHECKED_BYTES } from '../../../platform/files/free-space.ts'
import { nullWhenMissing } from '../../../platform/files/system-faults.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { announceIn } from '../../identity/account-events/account-events.ts'
import type { Context } from '../../../platform/context.ts'
import { wireTime, type Did } from '../../../protocol/identifiers.ts'
import { archivePieces, requireRoom } from './archive-pieces.ts'
import { closeContents, collect, type Contents } from './archive-contents.ts'
import { deleteSchedule, findSchedule, putSchedule, type Frequency } from './archive-schedule-store.ts'

const archiveFile = /^\d{4}-\d\d-\d\dT\d{6}Z\.zip$/
const PART = '.part'

export interface KeptArchive {
  name: string
  /** In bytes. */
  size: number
}

/** Which archives are made for an account, and which exist. Null if this server makes no archives regularly. */
export interface KeptArchives {
  every: Frequency | null
  /** The newest first. */
  archives: KeptArchive[]
}

/** No two DIDs have the same folder, not even two of did:web with a path. */
const folderOf = (folder: string, did: Did): string =>
  join(folder, did.replaceAll('%', '%25').replaceAll('_', '%5F').replaceAll(':', '_'))

/**
 * Make an archive, and delete the oldest if there are too many. Returns its size in bytes. Throws `NoRoomForArchive`
 * rather than use the reserve of the disk.
 */
export async function keepArchive(ctx: Context, folder: string, did: Did, stopping: AbortSignal): Promise<number> {
  const { archives } = ctx.config
  const own = folderOf(folder, did)
  const made = ctx.clock.now()
  const newest = `${wireTime(made).slice(0, 19).replaceAll(':', '')}Z.zip`
  const path = join(own, newest)
  const pause = async () => stopping.throwIfAborted()
  // The files of the archive are collected in the data folder first.
  await requireRoom(ctx.config.dataDir, 0)
  const contents = await ctx.db.snapshot((reader) => collect(ctx, reader, did, pause))
  let file: FileHandle | null = null
  let size = 0
  let unchecked = 0
  try {
    await mkdir(own, { recursive: true, mode: 0o700 })
    // Delete the unfinished archive of a process that was killed.
    for (const name of await readdir(own)) if (name.endsWith(PART)) await rm(join(own, name), { force: true })
    await requireRoom(own, bytesOf(contents))
    file = await open(path + PART, 'w', 0o600)
    for await (const piece of archivePieces(ctx, contents, { made, gone: stopping })) {
      await file.writeFile(piece)
      size += piece.length
      unchecked += piece.length
      if (unchecked < CHECKED_BYTES) continue
      unchecked = 0
      await requireRoom(own, 0)
    }
    await file.sync()
    await rename(path + PART, path)
  } finally {
    await file?.close()
    closeContents(contents)
    await rm(path + PART, { force: true })
  }
  // An archive with a later name was made while the clock was ahead, and counts as older than all others.
  const others = (await namesIn(own))
    .filter((name) => name !== newest)
    .toSorted((one, other) => Number(one > newest) - Number(other > newest))
  for (const name of others.slice(archives.keep - 1)) await rm(join(own, name), { force: true })
  return size
}

/** Bytes of the files and blobs of an archive, which are stored without compression. */
function bytesOf({ files, blobs }: Contents): number {
  let bytes = files.list.reduce((sum, { size }) => sum + size, 0)
  for (const batch of blobs.batches()) for (const { size, isTakenDown } of batch) bytes += isTakenDown ? 0 : size
  return bytes
}

/** The newest first. */
const namesIn = async (own: string): Promise<string[]> =>
  ((await readdir(own).catch(nullWhenMissing)) ?? [])
    .filter((name) => archiveFile.test(name))
    .toSorted()
    .toReversed()

export async function keptArchives(ctx: Context, did: Did): Promise<KeptArchives | null> {
  const { folder } = ctx.config.archives
  if (folder === null) return null
  const own = folderOf(folder, did)
  const archives: KeptArchive[] = []
  for (const name of await namesIn(own)) {
    const found = await stat(join(own, name)).catch(nullWhenMissing)
    if (found !== null) archives.push({ name, size: found.size })
  }
  return { every: (await findSchedule(ctx.db, did))?.every ?? null, archives }
}

/** Returns the download of an archive that was made; null if there is none of that name. */
export async function keptArchive(exchange: Exchange, did: Did, name: string): Promise<Response | null> {
  const { ctx } = exchange
  const { folder } = ctx.config.archives
  if (folder === null || !(await namesIn(folderOf(folder, did))).includes(name)) return null
  await ctx.db.transaction((tx) => announceIn(tx, exchange, 'exported', did))
  return new Response(Bun.file(join(folderOf(folder, did), name)), {
    headers: { 'Content-Type': 'application/zip', 'Content-Disposition': `attachment; filename="${name}"` },
  })
}

/** Have archives made from now on, or no longer if `every` is null. Existing archives stay. */
export async function scheduleArchives(exchange: Exchange, did: Did, every: Frequency | null): Promise<void> {
  const { ctx } = exchange
  await ctx.db.transaction(async (tx) => {
    await exchange.revalidate(tx)
    if (every === null) await deleteSchedule(tx, did)
    else await putSchedule(tx, { did, every, dueAt: ctx.clock.now() })
  })
}

/** Delete all archives of an account. */
export async function deleteKeptArchives(ctx: Context, did: Did): Promise<void> {
  const { folder } = ctx.config.archives
  if (folder !== null) await rm(folderOf(folder, did), { recursive: true, force: true })
}
