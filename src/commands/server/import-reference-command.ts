import { withContext } from '../../app.ts'
import { OperatorError } from '../../base/operator-error.ts'
import {
  importReference,
  obstacleTo,
  openReferenceFolder,
  requireBlobFolder,
  survey,
  termsOf,
  type Moved,
  type ReferenceFolder,
  type Survey,
  type Terms,
} from '../../features/operations/reference-import/reference-import.ts'
import type { Config } from '../../platform/configuration/config.ts'
import type { Context } from '../../platform/context.ts'
import { isUnused } from '../../platform/files/data-directory.ts'
import { storageFaultOf } from '../../platform/files/storage-faults.ts'
import type { Log } from '../../platform/running/log.ts'
import { exitCodes, type ExitCode, type Terminal } from '../command.ts'
import { commandLog, configured, isToml } from '../configuration.ts'
import { linesToSet, nameToSet } from '../lines-to-set.ts'
import { bytes, facts } from '../report.ts'
import { remainingSettings, type RemainingSettings } from './reference-settings.ts'

/** In place of the value of a secret. */
const AS_BEFORE = '(as in the old environment)'
/** Accounts between two progress messages. */
const PROGRESS_ACCOUNTS = 500

export const importReferenceCommand = configured({
  summary: 'Move a whole server of the reference implementation into this one.',
  parameters: ['<its data folder>'],
  details: `Takes the data folder of the reference PDS: accounts with passwords, app passwords, sessions and preferences,
repositories with their keys, blobs, invites, takedowns, and the event log, which continues above the old one. Handles,
followers and apps keep working, and people stay signed in.

Stop the old server, or name a copy of its folder. Nothing in the folder is changed, so the old server can be started
again. Stop this server too. Verifies every repository by its signature and tree, and every blob by its hash. Reports
what the folder holds, and what cannot be moved, before it writes anything; --check reads everything and writes
nothing.

Can be interrupted and repeated: accounts that are complete stay, and the others follow. Exits with 1 if an account or
a blob is missing. See docs/moving-in.md.`,
  options: {
    env: { value: 'file', doc: 'The environment of the old server. Without it, pds.env in the data folder.' },
    check: { doc: 'Verify everything, and write nothing.' },
    json: { doc: 'Print the report as JSON.' },
  },
  async run(invocation) {
    const { terminal, config, options, flags } = invocation
    const [path] = invocation.positionals
    const [env, isCheck, isJson] = [options['env'], flags.has('check'), flags.has('json')]
    const folder = openReferenceFolder(path!, env ?? null)
    try {
      const terms = termsOf(folder, config, terminal.now())
      const settings = remainingSettings(config, folder.env)
      const log = commandLog(invocation, config)
      const run: Run = { terminal, config, folder, terms, settings, isJson, isToml: isToml(invocation), log }
      return await (isCheck ? check(run) : move(run))
    } finally {
      folder.close()
    }
  },
})

interface Run {
  terminal: Terminal
  config: Config
  folder: ReferenceFolder
  terms: Terms
  settings: RemainingSettings
  isJson: boolean
  isToml: boolean
  log: Log
}

async function check(run: Run): Promise<ExitCode> {
  const { config, folder } = run
  const found = (await isUnused(config))
    ? await surveyed(run, { ctx: null, isThorough: true })
    : await withContext(config, (ctx) => surveyed(run, { ctx, isThorough: true }), {
        sharesDatabase: false,
        log: run.log,
      })
  folder.requireUnchanged()
  requireBlobFolder(folder, found)
  tell(run, found, null)
  return found.faults.length === 0 ? exitCodes.ok : exitCodes.failed
}

async function move(run: Run): Promise<ExitCode> {
  try {
    return await withContext(
      run.config,
      async (ctx) => {
        const { folder, terms, terminal } = run
        const found = await surveyed(run, { ctx: null, isThorough: false })
        requireBlobFolder(folder, found)
        if (!run.isJson) tell(run, found, null)
        const faults: string[] = []
        const moved = await importReference(ctx, {
          folder,
          terms,
          onFault: (fault) => void faults.push(fault),
          onProgress: progressOf(terminal, 'moved'),
        })
        tell(run, { ...found, faults }, moved)
        return faults.length === 0 ? exitCodes.ok : exitCodes.failed
      },
      { sharesDatabase: false, mayBeNew: true, log: run.log },
    )
  } catch (error) {
    // A full disk may also be noticed when the database is opened or closed.
    const fault = storageFaultOf(error)
    if (fault === null || error instanceof OperatorError) throw error
    throw new OperatorError(`${fault}: make room, and run the same command again. It continues with the next account`, {
      cause: error,
    })
  }
}

const surveyed = (
  { folder, terms, terminal }: Run,
  { ctx, isThorough }: { ctx: Context | null; isThorough: boolean },
): Promise<Survey> =>
  survey(folder, terms, {
    now: terminal.now(),
    isThorough,
    onProgress: progressOf(terminal, isThorough ? 'verified' : 'counted'),
    obstacle: async (account) => ctx && obstacleTo(ctx, account),
  })

/** Returns a function that receives the number of accounts so far, and prints it after every `PROGRESS_ACCOUNTS`. */
function progressOf(terminal: Terminal, done: string): (accounts: number) => void {
  let next = PROGRESS_ACCOUNTS
  return (accounts) => {
    if (accounts < next) return
    terminal.err(`${next} accounts ${done}`)
    next += PROGRESS_ACCOUNTS
  }
}

/** Print what was found or, if accounts have moved, what was moved. */
function tell({ terminal, terms, settings, isJson, isToml }: Run, found: Survey, moved: Moved | null): void {
  const { faults } = found
  const { sessionFault } = terms
  if (isJson) {
    const { counts, losses, signedElsewhere } = found
    const rotationKey = terms.rotationKey !== null
    const toSet = {
      ...Object.fromEntries(Object.entries(settings.toSet).map(([key, value]) => [key, JSON.stringify(value)])),
      ...Object.fromEntries(settings.secrets.map((key) => [key, AS_BEFORE])),
    }
    const { dropped } = settings
    return terminal.out(
      JSON.stringify(
        { counts, losses, signedElsewhere, sessionFault, rotationKey, toSet, dropped, faults, moved },
        null,
        2,
      ),
    )
  }
  for (const line of moved === null ? reportOf(found, terms, settings, isToml) : endOf(moved)) terminal.out(line)
  for (const fault of faults) terminal.err(fault)
}

function* reportOf(
  { counts, losses, signedElsewhere }: Survey,
  terms: Terms,
  settings: RemainingSettings,
  isToml: boolean,
): Iterable<string> {
  yield 'Comes along:'
  yield facts({
    accounts: `${counts.accounts}, of which ${counts.deactivated} are deactivated and ${counts.takenDown} taken down`,
    records: counts.records,
    blobs: `${counts.blobs}, ${bytes(counts.blobBytes)}`,
    'app passwords': counts.appPasswords,
    'invite codes': counts.invites,
    sessions: counts.sessions,
    'sessions of apps': counts.appSessions,
    'signed-in browsers': counts.browsers,
    'reserved keys': counts.reservedKeys,
    'recent events': counts.events,
    'signed again': signedElsewhere || null,
  })
  yield 'Does not come along:'
  yield facts({
    sessions: `${losses.sessions}${terms.sessionFault === null ? '' : `: ${terms.sessionFault}`}`,
    'sessions of apps': `${losses.appSessions} without a refresh token or a key`,
    'mailed codes': `${losses.mailedCodes}: people ask for new ones`,
    'requests of apps': `${losses.requests}: people start them again`,
    'remembered consents': `${losses.consents}: apps ask once more at the next sign-in`,
    'rotation key':
      terms.rotationKey === null ? 'not known: this server cannot change identities made by the old one' : null,
  })
  const { toSet, secrets, dropped } = settings
  const lines = [...linesToSet(toSet, isToml), ...secrets.map((key) => `${nameToSet(key, isToml)} ${AS_BEFORE}`)]
  if (lines.length > 0) yield 'Set before you start this server:'
  for (const line of lines) yield `  ${line}`
  if (Object.keys(dropped).length > 0) yield 'Has no counterpart:'
  for (const [name, why] of Object.entries(dropped)) yield `  ${name}: ${why}`
}

function* endOf({ accounts, before, records, blobs, missingAccounts, missingBlobs, seq }: Moved): Iterable<string> {
  yield `${accounts} accounts moved in with ${records} records and ${blobs} blobs${before > 0 ? `, ${before} had come before` : ''}`
  yield `The event log continues after ${seq}`
  if (missingBlobs > 0) yield `${missingBlobs} blobs are missing or damaged at the old server`
  if (missingAccounts > 0)
    yield `${missingAccounts} accounts did not come: correct the faults, and run the same command again`
}
