/**
 * Replaces the executable with a newer one: download, try, back up, swap, restart, and wait until the server works, or
 * return to the old one. The process can be killed at any point and run again: the executable's name always leads to a
 * whole file, and the next run finishes what this one began.
 */
import { rmSync } from 'node:fs'
import { OperatorError } from '../../base/operator-error.ts'
import { compareVersions, SOFTWARE_NAME } from '../../base/version.ts'
import { migrationsIn } from '../../platform/database/migrations.ts'
import { type ReleaseFile, type ReleaseManifest, unknownMigrations } from '../../protocol/release-manifest.ts'
import { askHealth, awaitHealth, type ServerHealth } from '../server-health.ts'
import { type ExecutablePlace, isOnTrial, settle, swapBack, swapIn, takeAfter, whileLocked } from './executable-swap.ts'
import { fetchExecutable, type ReleaseSource } from './release-source.ts'
import { restartServer, runAsServer, runToEnd, said, type ServiceManager } from './service-manager.ts'

/** Says where to read how to return to an older version. */
const DOWNGRADE_GUIDE = 'docs/upgrade.md, "Downgrade", says how to return to it with a backup'

export interface Installed {
  place: ExecutablePlace
  version: string
  platform: string
  /** The migrations that this executable knows. */
  migrations: readonly number[]
}

export interface UpgradeOptions {
  /** Null if no server runs here. */
  manager: ServiceManager | null
  /** Arguments of the commands that need the server's configuration. */
  commandArgs: readonly string[]
  /** Null: make no backup. Without a destination, the backup goes to the configured one. */
  backup: { to: string | null } | null
  isDowngradeAllowed: boolean
  healthMillis: number
  /** Called before each step with what happens next. */
  onStep: (text: string) => void
  pause: (millis: number) => Promise<void>
}

export interface UpgradeReport {
  outcome: 'current' | 'upgraded' | 'rolled-back'
  /** What the backup command reported. */
  backup: string | null
  /** `stopped`: no server was running. */
  server: 'none' | 'stopped' | 'needs-restart' | 'healthy' | 'failing'
  /** What to know or do, in sentences. */
  remarks: string[]
}

interface RunningServer {
  manager: ServiceManager
  url: string
  health: ServerHealth
}

/** Returns the file for this platform. Throws OperatorError if the release has none. */
export function fileFor({ version, files }: ReleaseManifest, platform: string): ReleaseFile {
  const file = Object.hasOwn(files, platform) ? files[platform] : undefined
  if (file === undefined) throw new OperatorError(`version ${version} has no executable for ${platform}`)
  return file
}

/** Throws OperatorError if anything prevents the upgrade; then nothing has changed. */
export function upgradeTo(
  manifest: ReleaseManifest,
  source: ReleaseSource,
  installed: Installed,
  options: UpgradeOptions,
): Promise<UpgradeReport> {
  const { place, version } = installed
  const comparison = compareVersions(manifest.version, version)
  if (comparison < 0) refuseOlder(manifest, installed, options)
  return whileLocked(place, async () => {
    const server = options.manager === null ? null : await findServer(options.manager, options.commandArgs)
    const isUnfinished = comparison === 0 && server !== null && server.manager.restart !== null && isOnTrial(place)
    if (comparison === 0 && !isUnfinished)
      return { outcome: 'current', backup: null, server: stateOf(server), remarks: [] }
    const backup = isUnfinished ? null : await replace(manifest, source, installed, server, options)
    return { backup, ...(await takeEffect(manifest, installed, server, options)) }
  })
}

const stateOf = (server: RunningServer | null): UpgradeReport['server'] => {
  if (server === null) return 'none'
  return server.health.state === 'absent' ? 'stopped' : server.health.state
}

function refuseOlder(manifest: ReleaseManifest, { version, migrations }: Installed, options: UpgradeOptions): void {
  const { version: older } = manifest
  const unknown = unknownMigrations(migrations, manifest.migrations)
  const needs =
    unknown.length === 0
      ? 'It can open the database of this version'
      : `It cannot open a database of this version, with ${migrationsIn(unknown)}: ${DOWNGRADE_GUIDE}`
  if (!options.isDowngradeAllowed)
    throw new OperatorError(
      `version ${older} is older than ${version}, which is installed. ${needs}. --downgrade installs it`,
    )
  if (unknown.length > 0 && options.manager !== null)
    throw new OperatorError(`version ${older} cannot replace ${version}. ${needs}`)
}

/** Read the server's address from its own configuration, and find out whether it runs. */
async function findServer(manager: ServiceManager, commandArgs: readonly string[]): Promise<RunningServer> {
  const { out, err } = await runAsServer(manager, ['health', '--json', ...commandArgs])
  const url = /"url": "([^"]+)"/.exec(out)?.[1]
  if (url === undefined)
    throw new OperatorError(
      `the configuration of the server cannot be read (${said(err)}). If no server runs on this machine, add --executable-only`,
    )
  return { manager, url, health: await askHealth(url) }
}

/** Download the new executable, try it, make a backup, and swap. Returns what the backup command said. */
async function replace(
  manifest: ReleaseManifest,
  source: ReleaseSource,
  { place, platform }: Installed,
  server: RunningServer | null,
  { backup, commandArgs, onStep }: UpgradeOptions,
): Promise<string | null> {
  const file = fileFor(manifest, platform)
  onStep(`downloading ${source.url}/${file.file}`)
  await fetchExecutable(source, file, place.next)
  try {
    takeAfter(place)
    await requireVersion(place.next, manifest.version)
    const made = server === null || backup === null ? null : await makeBackup(server, backup.to, commandArgs, onStep)
    swapIn(place, server !== null && server.health.state !== 'absent' && server.manager.restart !== null)
    onStep(`${place.path} is version ${manifest.version}; the old one is ${place.previous}`)
    return made
  } finally {
    rmSync(place.next, { force: true })
  }
}

/** Returns the version that an executable reports. Throws OperatorError if it does not run. */
export async function versionOf(executable: string): Promise<string> {
  const { code, out, err } = await runToEnd([executable, 'version']).catch((error: Error) => ({
    code: 1,
    out: '',
    err: error.message,
  }))
  const version = /^holdfast v(\S{1,40})$/.exec(out.trim())?.[1]
  if (code !== 0 || version === undefined)
    throw new OperatorError(`${executable} does not run on this machine: ${said(err || out)}`)
  return version
}

async function requireVersion(executable: string, version: string): Promise<void> {
  const found = await versionOf(executable)
  if (found !== version)
    throw new OperatorError(`the executable of version ${version} reports version ${found}. Nothing was changed`)
}

async function makeBackup(
  { manager }: RunningServer,
  to: string | null,
  commandArgs: readonly string[],
  onStep: (text: string) => void,
): Promise<string> {
  onStep('making a backup')
  const { code, out, err } = await runAsServer(manager, ['backup', ...(to === null ? [] : [to]), ...commandArgs])
  if (code !== 0)
    throw new OperatorError(
      `there is no backup: ${said(err || out)}. Nothing was changed. --backup-to PLACE names another destination, --no-backup upgrades without`,
    )
  return said(out)
}

type Effect = Omit<UpgradeReport, 'backup'>

/** Restart the server, and return to the old executable if it does not work. */
async function takeEffect(
  manifest: ReleaseManifest,
  { place, version: old, migrations }: Installed,
  server: RunningServer | null,
  { healthMillis, onStep, pause }: UpgradeOptions,
): Promise<Effect> {
  const { version } = manifest
  const wasOnTrial = isOnTrial(place)
  if (server === null) return { outcome: 'upgraded', server: 'none', remarks: [] }
  const { manager, url, health } = server
  if (health.state === 'absent' && !wasOnTrial)
    return {
      outcome: 'upgraded',
      server: 'stopped',
      remarks: ['No server is running here. The next start is one of the new version.'],
    }
  if (manager.restart === null)
    return {
      outcome: 'upgraded',
      server: 'needs-restart',
      remarks: [
        `Restart the server at ${url}: until then it is the old version. If the new one does not work, move ${place.previous} to ${place.path} and restart.`,
      ],
    }

  onStep(`restarting ${manager.name}, and waiting until it works`)
  const restartAs = (wanted: string | null) =>
    restarted(manager, () => awaitHealth(url, { withinMillis: healthMillis, software: wanted }, pause))
  const after = await restartAs(`${SOFTWARE_NAME} v${version}`)
  if (after.state === 'healthy') {
    settle(place)
    return { outcome: 'upgraded', server: 'healthy', remarks: [] }
  }
  onStep(`version ${version} does not work (${after.reason}): returning to the old one`)
  swapBack(place)
  const again = await restartAs(null)
  // Only now: if this process is killed before the restart, the server is down, and the next upgrade has to restart it.
  settle(place)
  return {
    outcome: 'rolled-back',
    server: again.state === 'healthy' ? 'healthy' : 'failing',
    remarks: [
      `Version ${version} did not work: ${after.reason}.`,
      ...(again.state === 'healthy'
        ? [`The old version is in place again and works; its data needs nothing.`]
        : afterFailedReturn(again, unknownMigrations(manifest.migrations, migrations))),
      ...(old === version ? [] : [`Its log says why; version ${old} remains.`]),
    ],
  }
}

/** Restart the server, and return its health afterwards. The restart may fail too. */
async function restarted(manager: ServiceManager, health: () => Promise<ServerHealth>): Promise<ServerHealth> {
  try {
    await restartServer(manager)
  } catch (error) {
    if (!(error instanceof OperatorError)) throw error
    return { state: 'failing', software: null, reason: error.message }
  }
  return health()
}

const afterFailedReturn = ({ reason }: ServerHealth, unknown: readonly number[]): string[] => [
  `The old version is in place again, but does not work either: ${reason}.`,
  unknown.length === 0
    ? 'The new version has no other migrations, so the data is not the reason: read the log.'
    : `If its log names ${migrationsIn(unknown)}, the new version has migrated the database. Nothing is lost if you run ` +
      `"holdfast upgrade" again, with a longer --health-timeout if the migration was still running; ${DOWNGRADE_GUIDE}.`,
]
