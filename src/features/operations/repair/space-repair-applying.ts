/** Carries out a planned repair of repositories in spaces: in one transaction, once the evidence is on the disk. */
import { OperatorError } from '../../../base/operator-error.ts'
import { unthrottled } from '../../../base/pace.ts'
import type { Context } from '../../../platform/context.ts'
import { accountLock, inPieces, type Tx } from '../../../platform/database/database.ts'
import type { Tid } from '../../../protocol/identifiers.ts'
import { blobHealth, spaceBlobs } from '../../data/blobs/blobs.ts'
import { nextRev } from '../../data/repo/repo.ts'
import { spaceParts } from '../../data/spaces/spaces.ts'
import { refreshFindings } from '../integrity/integrity.ts'
import { keepSpaceEvidence } from './evidence.ts'
import { refuseUndecided, type RepairChoices } from './repair-applying.ts'
import type { PlannedSpace, SpaceRepairPlan } from './space-repair-plan.ts'
import { deleteSpaceRows, spaceRev } from './space-row-store.ts'

/** A number that belongs to no repository. */
const NO_REPO = -1

export interface RepairedSpaces {
  /** The file with the rows as they were; null if no row had to be changed. */
  evidence: string | null
  blobs: Awaited<ReturnType<typeof blobHealth.mend>>
  /** What the running check finds afterwards. */
  faults: string[]
}

/** Throws `OperatorError` if the repair would lose something without `acceptLoss`, or a repository has changed. */
export async function applySpaceRepair(
  ctx: Context,
  plan: SpaceRepairPlan,
  choices: RepairChoices,
): Promise<RepairedSpaces> {
  const { did, spaces, strays } = plan
  refuseUndecided(plan, choices)
  let evidence: string | null = null
  if (spaces.length + strays.length > 0) {
    const revs = new Map(spaces.map(({ id, rev, newestRev }) => [id, rev ?? nextRev(ctx, newestRev)]))
    const repaired = spaces.map(({ id, address }) => ({ id, space: address.uri, rev: revs.get(id)! }))
    const stray = strays.map((space) => ({ id: NO_REPO, space, rev: '' as const }))
    evidence = await keepSpaceEvidence(ctx, { did, at: ctx.clock.now() }, [...repaired, ...stray])
    await ctx.db.transactionOn(accountLock(did), async (tx) => {
      for (const space of spaces) await write(tx, plan, space, revs.get(space.id)!)
      for (const space of stray) await deleteSpaceRows(tx, 'space_blob_reference', did, space)
    })
    ctx.log.warn('repositories in spaces repaired', { did, file: evidence })
  }
  const blobs = await blobHealth.mend(ctx, did, choices.blobSource, unthrottled)
  return { evidence, blobs, faults: await refreshFindings(ctx, did) }
}

async function write(tx: Tx, { did, pool }: SpaceRepairPlan, planned: PlannedSpace, rev: Tid): Promise<void> {
  const { id, address, before, records, state } = planned
  const { uri, authority, type } = address
  if ((await spaceRev(tx, did, uri)) !== before)
    throw new OperatorError('a repository was written to during the repair: repeat it')
  await spaceParts.replaceRepo(tx, { id, did, uri, authority, type, rev, records, state })
  for (const piece of inPieces(planned.deletes)) await spaceParts.deleteRecords(tx, id, piece)
  // Read blocks only when they are needed.
  for (const piece of inPieces(planned.puts)) {
    const rows = piece.map(({ path, cid, rev: own }) => ({ path, cid, rev: own ?? rev, value: pool.get(cid)! }))
    await spaceParts.putRecords(tx, id, rows)
  }
  if (planned.forgetsChanges) await deleteSpaceRows(tx, 'space_op', did, { id, space: uri })
  const references = planned.references.map(({ record, cid, rev: own }) => ({ record, cid, rev: own ?? rev }))
  await spaceBlobs.replace(tx, { did, space: uri }, planned.referrers, references)
}
