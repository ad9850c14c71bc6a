/**
 * Undoes a repair with the file that it has kept: the rows become what they were, with everything that was wrong with
 * them. Only the head differs: its revision cannot go back, so the former tree is signed again. Events that no
 * subscriber could read stay in the file. Takedowns stay as moderators have left them since.
 */
import { OperatorError } from '../../../base/operator-error.ts'
import type { Context } from '../../../platform/context.ts'
import { accountLock, type SqlValue } from '../../../platform/database/database.ts'
import { cidFromBytes } from '../../../protocol/cid.ts'
import { signCommit, unsignedCommit } from '../../../protocol/commit.ts'
import type { Did, Tid } from '../../../protocol/identifiers.ts'
import { settledKeyOf, settledTransaction } from '../../identity/account-keys/account-keys.ts'
import { accountStatus } from '../../identity/accounts/accounts.ts'
import { sequenceEvents } from '../../data/firehose/firehose.ts'
import { nextRev, repoHead, stageRepo, syncEvent } from '../../data/repo/repo.ts'
import { refreshFindings } from '../integrity/integrity.ts'
import { Evidence } from './evidence.ts'
import {
  changedShapes,
  deleteReferencesOf,
  keepTakedowns,
  putHead,
  putRows,
  shapesOf,
  spaceTables,
  type RawRow,
} from './row-store.ts'
import { deleteSpaceRows, spaceRev } from './space-row-store.ts'

const tablesOfRepo = ['repo_node', 'record', 'large_record'] as const

/**
 * Throws `OperatorError` if the file is not from a repair, if the repository had no row then, or if it was written to
 * since.
 */
export async function undoRepair(ctx: Context, path: string): Promise<{ did: Did; rev: Tid; faults: string[] }> {
  using evidence = new Evidence(path)
  const rev = evidence.spaces().length > 0 ? await undoInSpaces(ctx, evidence) : await undoPublic(ctx, evidence)
  const { did } = evidence.note
  ctx.log.warn('repair undone', { did, rev, file: path })
  return { did, rev, faults: await refreshFindings(ctx, did) }
}

async function undoPublic(ctx: Context, evidence: Evidence): Promise<Tid> {
  const { did, rev: repairedAt, repoId } = evidence.note
  const [before] = Array.from(evidence.rows('repo')).flat()
  if (repoId === null || before === undefined)
    throw new OperatorError('the repository had no row before the repair, so there is nothing to bring back')
  const root = cidFromBytes(before['data'] as Uint8Array)
  if (root === null) throw new OperatorError('the row of the repository named no tree before the repair')
  const shapes = await changedShapes(ctx.db)
  const rev = nextRev(ctx, repairedAt)
  await stageRepo(ctx, rev, async (id) => {
    for (const table of tablesOfRepo)
      for (const page of evidence.rows(table))
        await ctx.db.transactionOn([], (tx) =>
          putRows(
            tx,
            shapes.get(table)!,
            page.map((row): RawRow => ({ ...row, repo_id: id })),
          ),
        )
    await settledTransaction(ctx, did, async (tx) => {
      const present = await repoHead(tx, did)
      if (present?.rev !== repairedAt)
        throw new OperatorError(
          'the repository was written to since the repair, and undoing it would lose those writes',
        )
      const key = await settledKeyOf(ctx, tx, did)
      if (key === null) throw new OperatorError(`${did} no longer has an account here`)
      const head = signCommit(unsignedCommit(did, rev, root), key)
      await keepTakedowns(tx, { from: present.id, to: id })
      await putHead(tx, did, id, { ...before, rev, head: head.cid.bytes, commit_block: head.bytes })
      await deleteReferencesOf(tx, did)
      for (const table of ['blob_reference', 'blob'] as const)
        for (const page of evidence.rows(table)) await putRows(tx, shapes.get(table)!, page, ['takedown_ref'])
      if ((await accountStatus(tx, did)) === 'active') await sequenceEvents(ctx, tx, [syncEvent(did, rev, head)])
    })
  })
  return rev
}

/** The same for repositories in spaces, whose revisions cannot go back either. */
async function undoInSpaces(ctx: Context, evidence: Evidence): Promise<Tid> {
  const { did } = evidence.note
  const spaces = evidence.spaces()
  const shapes = await shapesOf(ctx.db, spaceTables)
  const newest = spaces.map((space) => space.rev).reduce((most, one) => (one > most ? one : most))
  const rev = nextRev(ctx, newest === '' ? null : newest)
  const revs = new Map(spaces.map((space) => [space.id as SqlValue, space.rev]))
  // A revision that the repair did not change need not rise.
  const risen = (row: RawRow): RawRow => (row['rev'] === revs.get(row['id']!) ? row : { ...row, rev })
  await ctx.db.transactionOn(accountLock(did), async (tx) => {
    for (const space of spaces) {
      if (((await spaceRev(tx, did, space.space)) ?? '') !== space.rev)
        throw new OperatorError('a repository was written to since the repair, and that would be lost')
      for (const table of spaceTables) await deleteSpaceRows(tx, table, did, space)
    }
    for (const table of spaceTables)
      for (const page of evidence.rows(table))
        await putRows(tx, shapes.get(table)!, table === 'space_repo' ? page.map(risen) : page)
  })
  return rev
}
