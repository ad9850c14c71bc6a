import { withContext } from '../../app.ts'
import { OperatorError } from '../../base/operator-error.ts'
import type { Context } from '../../platform/context.ts'
import { faultsByPart } from '../../features/operations/integrity/integrity.ts'
import {
  applyRepair,
  applySpaceRepair,
  backupSources,
  clearInterrupted,
  planRepair,
  planSpaceRepair,
  refuseUndecided,
  undoRepair,
  type RepairPlan,
  type Repaired,
  type RepairedSpaces,
  type SpaceRepairPlan,
} from '../../features/operations/repair/repair.ts'
import { parseDid, type Did } from '../../protocol/identifiers.ts'
import { exitCodes, Misuse, type ExitCode, type Invocation } from '../command.ts'
import { commandLog, configured } from '../configuration.ts'
import { jsonOption, tellResult } from '../report.ts'

export const repairCommand = configured({
  summary: 'Show what can be rebuilt of a damaged repository, and rebuild it.',
  parameters: ['[did]'],
  details: `Shows what is wrong with the repository of an account, what can be rebuilt and from which source, and what no source
has. With --apply, rebuilds it: saves the previous rows to a file in the folder "repairs" of the data directory, and
gives the repository a new commit, of which relays learn from a #sync event. Stop the server first, if the database is a
file.

The newest commit with a valid signature says what is right. The tree is rebuilt from the records, records from blocks
in the event log, and both from an archive (--car) or a backup (--backup); blobs come from the mirror or the backup.
Stored records that are not in the tree are kept, unless the event log says that they were deleted.

Repositories in spaces have no tree and no events: the set hash says which records are right, and they are rebuilt from
the latest changes, a backup, or an archive of the space. Their rows are saved to a file of their own.

A repair that would lose what no source has is refused without --accept-loss. Records that a backup or an archive
has, and that may have been deleted since, come back with --keep-uncertain, and stay away with --drop-uncertain.

--undo restores the previous rows from the file, if the repository has not been written to since. Exits with 1 if
something is wrong, or is still wrong after the repair.`,
  options: {
    apply: { doc: 'Rebuild it. Without this, nothing is changed.' },
    car: { value: 'FILE', doc: 'An archive of the repository (CAR), from a relay, another server or an export.' },
    backup: { value: 'NAME', doc: 'Use a backup at backup.destination: "newest", or its name.' },
    'accept-loss': { doc: 'Repair it even if that loses what no source has.' },
    'keep-uncertain': { doc: 'Bring back what may have been deleted since.' },
    'drop-uncertain': { doc: 'Leave out what may have been deleted since.' },
    undo: { value: 'FILE', doc: 'Undo the repair that made this file.' },
    ...jsonOption,
  },
  async run(invocation) {
    const { config, options, flags, positionals } = invocation
    const log = commandLog(invocation, config)
    const { undo } = options
    if (undo !== undefined) {
      if (positionals.length > 0) throw new Misuse('--undo takes the file only')
      return withContext(config, async (ctx) => tellUndone(invocation, await undoRepair(ctx, undo)), { log })
    }
    const did = parseDid(positionals[0] ?? '')
    if (did === null) throw new Misuse('name the account by its DID')
    if (flags.has('keep-uncertain') && flags.has('drop-uncertain'))
      throw new Misuse('--keep-uncertain and --drop-uncertain cannot be used together')
    return withContext(config, (ctx) => repair(ctx, invocation, did), { log })
  },
})

async function repair(ctx: Context, invocation: Invocation, did: Did): Promise<ExitCode> {
  const { options, flags } = invocation
  clearInterrupted(ctx.config.dataDir)
  const wanted = options['backup']
  await using backup = wanted !== undefined ? await backupSources(ctx, wanted === 'newest' ? null : wanted) : null
  const faults = await faultsByPart(ctx, did).catch((error: Error) => ({
    repo: [`it cannot be read (${error.message})`],
    spaces: [],
  }))
  const plan = await planRepair(ctx, did, { ...carOf(options['car']), backup: backup?.reader ?? null })
  try {
    const { pool, archiveRoots } = plan
    const sources = { pool, archiveRoots, backup: backup?.reader ?? null }
    const spaces = await planSpaceRepair(ctx, did, sources, flags.has('keep-uncertain'))
    const damaged: Damaged = { plan, spaces, faults }
    if (!flags.has('apply') || faults.repo.length + faults.spaces.length === 0) return tellPlan(invocation, damaged)
    const choices = {
      acceptLoss: flags.has('accept-loss'),
      keepUncertain: flags.has('keep-uncertain') ? true : flags.has('drop-uncertain') ? false : null,
      blobSource: backup?.blobs ?? null,
    }
    // Before either part is changed.
    refuseUndecided(together(damaged), choices)
    const repaired = faults.repo.length === 0 ? null : await applyRepair(ctx, plan, choices)
    const inSpaces = faults.spaces.length === 0 ? null : await applySpaceRepair(ctx, spaces, choices)
    return tellRepaired(invocation, damaged, repaired, inSpaces)
  } finally {
    plan.pool.close()
  }
}

interface Damaged {
  plan: RepairPlan
  spaces: SpaceRepairPlan
  faults: { repo: readonly string[]; spaces: readonly string[] }
}

function carOf(path: string | undefined): { car?: AsyncIterable<Uint8Array> } {
  return path === undefined ? {} : { car: fileOf(path) }
}

async function* fileOf(path: string): AsyncGenerator<Uint8Array> {
  const file = Bun.file(path)
  if (!(await file.exists())) throw new OperatorError(`there is no file ${path}`)
  yield* file.stream()
}

const listed = (title: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${line}`)]

/** Merge both plans. Only the plan of a damaged part counts. */
function together({ plan, spaces, faults }: Damaged) {
  const parts = [...(faults.repo.length > 0 ? [plan] : []), ...(faults.spaces.length > 0 ? [spaces] : [])]
  return {
    steps: parts.flatMap(({ steps }) => steps),
    losses: parts.flatMap(({ losses }) => losses),
    uncertain: parts.flatMap(({ uncertain }) => uncertain),
    undecided: spaces.undecided,
  }
}

function tellPlan(invocation: Invocation, damaged: Damaged): ExitCode {
  const { did, records } = damaged.plan
  const faults = [...damaged.faults.repo, ...damaged.faults.spaces]
  const { steps, losses, uncertain, undecided } = together(damaged)
  const text = [
    ...listed('Wrong:', faults),
    ...listed('To be rebuilt:', steps),
    ...listed('Nowhere (--accept-loss):', losses),
    ...listed('May have been deleted since (--keep-uncertain or --drop-uncertain):', uncertain),
    ...listed('Cannot be decided, and stays as it is:', undecided),
    faults.length === 0
      ? 'Nothing is wrong with the repository.'
      : `${damaged.faults.repo.length === 0 ? 'The public repository is whole.' : `The repaired repository has ${records.size} records.`} Add --apply to repair it; nothing was changed.`,
  ]
  tellResult(invocation, { did, faults, steps, losses, uncertain, undecided, records: records.size }, text.join('\n'))
  return faults.length === 0 ? exitCodes.ok : exitCodes.failed
}

function tellRepaired(
  invocation: Invocation,
  damaged: Damaged,
  repo: Repaired | null,
  inSpaces: RepairedSpaces | null,
): ExitCode {
  const { did, records } = damaged.plan
  const { steps, losses, undecided } = together(damaged)
  // The later of the two repairs has checked both parts.
  const { blobs, faults } = (inSpaces ?? repo)!
  const files = [repo?.evidence, inSpaces?.evidence].filter((file) => typeof file === 'string')
  const text = [
    ...listed('Rebuilt:', steps),
    ...listed('Lost:', losses),
    ...listed('Blobs whose bytes are nowhere:', blobs.lost),
    ...listed('Cannot be decided, and stays as it is:', undecided),
    ...listed('Still wrong:', faults),
    ...(repo === null ? [] : [`The repository has ${records.size} records at revision ${repo.rev}.`]),
    ...files.map(
      (file) => `What was there before is in ${file}: "holdfast repair --undo" with this file brings it back.`,
    ),
  ]
  const value = {
    did,
    ...(repo !== null && { rev: repo.rev, head: repo.head.toString(), evidence: repo.evidence, records: records.size }),
    ...(inSpaces !== null && { spaces: { evidence: inSpaces.evidence, repositories: damaged.spaces.spaces.length } }),
    blobs,
    faults,
    undecided,
  }
  tellResult(invocation, value, text.join('\n'))
  return faults.length === 0 ? exitCodes.ok : exitCodes.failed
}

function tellUndone(invocation: Invocation, undone: { did: Did; rev: string; faults: string[] }): ExitCode {
  const text = [`The rows of ${undone.did} are what they were, at revision ${undone.rev}.`]
  tellResult(invocation, undone, [...text, ...listed('Wrong:', undone.faults)].join('\n'))
  return exitCodes.ok
}
