/**
 * Bringing a backup back, in two steps with a check of everything between them.
 *
 * The network may have seen more than the backup knows. So the event log continues above any number that can have been
 * given out since, every repository is signed once more with a new revision, and every account's state is told again:
 * a relay that is ahead of the backup follows on, and learns what the server holds now.
 */
import { existsSync, readFileSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import type { Config } from '../../platform/configuration/config.ts'
import type { Context } from '../../platform/context.ts'
import { makeDataDirectory, restoringPath } from '../../platform/files/data-directory.ts'
import { inPages, type Tx } from '../../platform/database/database.ts'
import { OperatorError } from '../../base/operator-error.ts'
import { isPostgresUrl } from '../../platform/database/postgres.ts'
import { isDatabaseThere, sqlitePath } from '../../platform/database/sqlite.ts'
import { masterKeyFile } from '../../platform/secrets/vault.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { accountOf, signingKeyOf, statusOf } from '../accounts/accounts.ts'
import { blobFilesIn, type BlobFiles } from '../blobs/blobs.ts'
import { headSeq, raiseSeq, sequenceEvents, type RepoEvent } from '../firehose/firehose.ts'
import { deleteAllClaims } from '../identity/identity.ts'
import { repoHeads, resignHead } from '../repo/repo.ts'
import { bytesOf, spool, spoolWhole, type Archive } from './archive.ts'
import type { Unseal } from './sealing.ts'
import { blobName, inSnapshot, linesOf, readManifest } from './snapshot.ts'

/** Accounts of one transaction. */
const BATCH = 50
/** Numbers left out at the least, for a log whose numbers are beyond the clock already. */
const MIN_SEQ_GAP = 1_000_000

export interface Fetched {
  /** The database, not under its name yet. */
  databasePath: string
  /** CIDs of blobs that the backup does not hold, or not whole. */
  missingBlobs: string[]
}

/** Fetch a snapshot into the data directory of `config`, which must hold none. */
export async function fetchSnapshot(config: Config, archive: Archive, unseal: Unseal, snapshot: string): Promise<Fetched> {
  if (isPostgresUrl(config.databaseUrl))
    throw new OperatorError('a backup is brought back into a database in a file, and database_url names a PostgreSQL server')
  const target = sqlitePath(config.databaseUrl)
  // A log without its database would be read as a part of the next database of that name.
  for (const path of [target, `${target}-wal`])
    if (isDatabaseThere(path)) throw new OperatorError(`${path} exists; a restore needs an empty data directory`)
  const manifest = await readManifest(archive, snapshot)
  if (manifest === null) throw new OperatorError(`there is no complete backup named ${snapshot}`)
  const part = async (name: string) => {
    const content = await archive.read(name + unseal.suffix)
    return content && unseal.open(content)
  }
  makeDataDirectory(config)

  const databasePath = restoringPath(config)
  for (const left of [databasePath, `${databasePath}-wal`, `${databasePath}-shm`]) await rm(left, { force: true })
  const database = await part(inSnapshot(snapshot, 'database'))
  if (database === null) throw new OperatorError('the backup has lost its database')
  const { sha256 } = await spool(databasePath, database)
  if (sha256 !== manifest.database.sha256)
    throw new OperatorError('the database of the backup is not what the manifest says; the backup is damaged')

  const masterKey = await part(inSnapshot(snapshot, 'master-key'))
  if (masterKey !== null && config.signingKeyMasterKey === null) await placeMasterKey(masterKeyFile(config.dataDir), masterKey)

  const files = blobFilesIn(config.dataDir)
  await files.prepare()
  const missingBlobs: string[] = []
  const list = await part(inSnapshot(snapshot, 'blobs'))
  if (list !== null) {
    for await (const cid of linesOf(list)) {
      const content = await part(blobName(cid))
      if (content === null || !(await placeBlob(files, cid, content))) missingBlobs.push(cid)
    }
  }
  return { databasePath, missingBlobs }
}

/** Never in place of another key, which may be all that opens a database somewhere else. */
async function placeMasterKey(path: string, content: AsyncIterable<Uint8Array>): Promise<void> {
  const key = Buffer.concat(await Array.fromAsync(content))
  if (existsSync(path) && !readFileSync(path).equals(key))
    throw new OperatorError(`${path} holds another key than the backup; a restore needs an empty data directory`)
  await spoolWhole(path, bytesOf(key))
}

/** Keep a blob's content as its file. False when it is not the blob's. */
async function placeBlob(files: BlobFiles, cid: string, content: AsyncIterable<Uint8Array>): Promise<boolean> {
  await using file = await files.receive(content)
  if (file.cid !== cid) return false
  await files.place(file)
  return true
}

/** The checked database takes its name. Its context is closed by then. */
export const installDatabase = (config: Config, { databasePath }: Fetched): Promise<void> =>
  rename(databasePath, sqlitePath(config.databaseUrl))

/** Continue where the network may be already. Returns the first number that will be given and how many accounts were told again. */
export async function continueSequence(ctx: Context): Promise<{ seq: number; accounts: number }> {
  // Numbers on the scale of the clock cannot have been reached by counting events, whatever the backup missed.
  const seq = Math.max(ctx.clock.now(), (await headSeq(ctx.db)) + MIN_SEQ_GAP)
  await ctx.db.transaction(async (tx) => {
    await raiseSeq(tx, seq)
    // What was under way when the backup was made has ended since: an identity that was left may be somebody's.
    await deleteAllClaims(tx)
  })
  const start: { did: Did | null } = { did: null }
  let accounts = 0
  for await (const page of inPages(BATCH, start, ({ did }, limit) => repoHeads(ctx.db, did, limit))) {
    await ctx.db.transaction(async (tx) => {
      for (const { did } of page) if (await announceAgain(ctx, tx, did)) accounts++
    })
  }
  return { seq: seq + 1, accounts }
}

/** Sign the repository once more and tell what the account is. False for a repository without an account. */
async function announceAgain(ctx: Context, tx: Tx, did: Did): Promise<boolean> {
  const account = await accountOf(tx, did)
  const key = account && (await signingKeyOf(ctx, tx, did))
  if (account === null || key === null) return false
  const status = statusOf(account)
  const identity: RepoEvent = { type: 'identity', did, ...(account.handle === null ? {} : { handle: account.handle }) }
  const sync = await resignHead(ctx, tx, did, key)
  await sequenceEvents(ctx, tx, [identity, { type: 'account', did, status }, ...(status === 'active' ? [sync] : [])])
  return true
}
