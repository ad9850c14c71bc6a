/**
 * Checks one repository: whether its rows, its tree, its signature, the event log and the references to blobs agree.
 */
import type { Context } from '../../../platform/context.ts'
import type { Reader } from '../../../platform/database/database.ts'
import { MINUTE_MILLIS } from '../../../base/durations.ts'
import { unthrottled, type Throttle } from '../../../base/pace.ts'
import type { Did, Tid } from '../../../protocol/identifiers.ts'
import { tidMicros } from '../../../protocol/tid.ts'
import { accountStatus } from '../../identity/accounts/accounts.ts'
import { signingKeyFault, signingKeyOf } from '../../identity/account-keys/account-keys.ts'
import { blobHealth } from '../../data/blobs/blobs.ts'
import { loggedSince, newestCommitEvent, unnumberedEvents } from '../../data/firehose/firehose.ts'
import { spaceFaults } from '../../data/spaces/spaces.ts'
import { repoChecks, repoHead } from '../../data/repo/repo.ts'

/**
 * A check of a large repository takes minutes at its share of the processor. After this time it continues in a new
 * snapshot: as long as a snapshot is open, SQLite's log grows, and PostgreSQL keeps deleted rows.
 */
const MAX_SNAPSHOT_MILLIS = 5000
/** Most faulty blobs that are named of one account. */
const MAX_BLOBS = 20
/** How far ahead of the clock a revision may be made, as relays allow. */
const MAX_AHEAD_MILLIS = 10 * MINUTE_MILLIS

/**
 * Returns what is wrong with an account's repository, in words. Empty if nothing is, or if there is neither account nor
 * repository. Reads in pieces, which `throttled` runs; what is compared with each other comes from one state.
 * References to blobs are compared only once the records are right. Includes the account's repositories in spaces.
 */
export async function faultsOfRepo(ctx: Context, did: Did, throttled: Throttle = unthrottled): Promise<string[]> {
  const { repo, spaces } = await faultsByPart(ctx, did, throttled)
  return [...repo, ...spaces]
}

/** As `faultsOfRepo`, but separate for the public repository and for those in spaces. */
export async function faultsByPart(
  ctx: Context,
  did: Did,
  throttled: Throttle = unthrottled,
): Promise<{ repo: string[]; spaces: string[] }> {
  const faults = await faultsOfRecords(ctx, did, throttled)
  if (faults === null) return { repo: [], spaces: [] }
  if (faults.length === 0)
    await inStates<string>(ctx, '', async (reader, after, isDue) => {
      const { faults: found, next } = await blobHealth.referenceFaults(ctx, reader, did, { throttled, after, isDue })
      faults.push(...found)
      return next
    })
  const [key, log, blobs] = await throttled(() =>
    ctx.db.shortSnapshot(async (reader) => [
      await signingKeyFault(ctx, reader, did),
      await logFaults(reader, did),
      await blobHealth.faultyOf(reader, did, MAX_BLOBS),
    ]),
  )
  if (key !== null) faults.push(key)
  faults.push(...log, ...blobs.map(blobWords))
  const spaces: string[] = []
  await inStates<string>(ctx, '', async (reader, after, isDue) => {
    const { faults: found, next } = await spaceFaults(reader, did, { throttled, after, isDue })
    spaces.push(...found)
    return next
  })
  return { repo: faults, spaces }
}

/** Run `work` from place to place, in one snapshot after another. */
async function inStates<Place>(
  { db }: Context,
  start: Place,
  work: (reader: Reader, from: Place, isDue: () => boolean) => Promise<Place | null>,
): Promise<void> {
  for (let place: Place | null = start; place !== null;) {
    const from: Place = place
    const until = performance.now() + MAX_SNAPSHOT_MILLIS
    place = await db.snapshot((reader) => work(reader, from, () => performance.now() >= until))
  }
}

/** Returns null if there is neither a repository nor an account. */
async function faultsOfRecords(ctx: Context, did: Did, throttled: Throttle): Promise<string[] | null> {
  let found: string[] | null = []
  await inStates<Awaited<ReturnType<typeof repoChecks.faults>>['next'] | undefined>(
    ctx,
    undefined,
    async (reader, from, isDue) => {
      // Read the key in the same state as the commit, because a new key comes with a new commit.
      const [repo, key] = await throttled(async () => [
        await repoHead(reader, did),
        await signingKeyOf(ctx, reader, did),
      ])
      if (repo === null) found = key === null ? null : ['the account has no repository']
      else if (key === null) found = ['the repository belongs to no account']
      if (repo === null || key === null) return null
      const { faults, next } = await repoChecks.faults(reader, repo, key.publicKey, {
        throttled,
        isDue,
        ...(from && { from }),
      })
      found = faults
      return next
    },
  )
  return found
}

/** Operators are mailed these words, so they name no blob of a space. */
function blobWords({
  cid,
  fault,
  record,
  isOfSpaces,
}: Awaited<ReturnType<typeof blobHealth.faultyOf>>[number]): string {
  if (isOfSpaces) return `the bytes of a blob in a space are ${fault}`
  const place = record === null ? '' : `, to which record ${record} refers,`
  return fault === 'unowned'
    ? `blob ${cid}${place} is stored, but its row is missing`
    : `the bytes of blob ${cid}${place} are ${fault}`
}

/** Subscribers have seen the events of the log, so the repository must neither be behind them nor differ from them. */
async function logFaults(reader: Reader, did: Did): Promise<string[]> {
  const repo = await repoHead(reader, did)
  if (repo === null) return []
  const { rev, head } = repo
  const event = await newestCommitEvent(reader, did)
  if (event === null || event.rev < rev)
    return (await isEventDue(reader, did, rev)) ? [`the event log lacks the event of revision ${rev}`] : []
  if (event.rev > rev) return [`the event log has revision ${event.rev}, the repository ${rev}`]
  // An event that only announces a state names no commit.
  return event.commit === null || event.commit === head.toString()
    ? []
    : [`the event log has commit ${event.commit}, the repository ${head}`]
}

/**
 * Whether the log must have the event of a revision. It need not if the account is inactive, because the event comes
 * with its activation; on PostgreSQL, where the event gets its number a moment later; or if retention has deleted it.
 */
async function isEventDue(reader: Reader, did: Did, rev: Tid): Promise<boolean> {
  const since = await loggedSince(reader)
  if (since === null || tidMicros(rev) / 1000 < since + MAX_AHEAD_MILLIS) return false
  if ((await accountStatus(reader, did)) !== 'active') return false
  return (await unnumberedEvents(reader)).count === 0
}
