/**
 * The check of one repository: what its rows, its tree, its signature, the event log and the references to blobs say of
 * each other.
 */
import type { Context } from '../../../platform/context.ts'
import type { Reader } from '../../../platform/database/database.ts'
import { unthrottled, type Throttle } from '../../../base/pace.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { signingKeyOf } from '../../identity/account-keys/account-keys.ts'
import { referenceFaults } from '../../data/blobs/blobs.ts'
import { newestCommitEvent } from '../../data/firehose/firehose.ts'
import { spaceFaults } from '../../data/spaces/spaces.ts'
import { repoFaults, repoHead, type RepoHead } from '../../data/repo/repo.ts'

/**
 * Returns what is wrong with the repository of an account, in words; empty if nothing is, or if there is none. Reads
 * one state in pieces, which `throttled` runs. References to blobs are compared once the records are right. What the
 * account has in spaces belongs to it.
 */
export async function faultsOfRepo(ctx: Context, did: Did, throttled: Throttle = unthrottled): Promise<string[]> {
  return ctx.db.snapshot(async (reader) => {
    // In the same state as the commit, because a new key comes with a new commit.
    const [repo, key] = await throttled(async () => [await repoHead(reader, did), await signingKeyOf(ctx, reader, did)])
    if (repo === null) return []
    if (key === null) return ['the repository belongs to no account']
    const faults = await repoFaults(reader, repo, key.publicKey, throttled)
    if (faults.length === 0) faults.push(...(await referenceFaults(ctx, reader, did, throttled)))
    return [
      ...faults,
      ...(await throttled(() => logFaults(reader, repo))),
      ...(await spaceFaults(reader, did, throttled)),
    ]
  })
}

/** Subscribers have seen the events of the log, so the repository must not be behind them, or be another. */
async function logFaults(reader: Reader, { did, rev, head }: RepoHead): Promise<string[]> {
  const event = await newestCommitEvent(reader, did)
  if (event === null || event.rev < rev) return []
  if (event.rev > rev) return [`the event log has revision ${event.rev}, the repository ${rev}`]
  // An event about a state alone names no commit.
  return event.commit === null || event.commit === head.toString()
    ? []
    : [`the event log has commit ${event.commit}, the repository ${head}`]
}
