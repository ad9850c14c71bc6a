/**
 * The systemd service that runs the server: its user, folders and unit, as the Debian package makes them. Every step
 * can be repeated, and none changes what a package has installed.
 */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { OperatorError } from '../../base/operator-error.ts'
import type { Config } from '../../platform/configuration/config.ts'
import { SERVICE_SETTINGS } from '../../platform/configuration/config-files.ts'
import { isPostgresUrl } from '../../platform/database/database-url.ts'
import { sqlitePath } from '../../platform/database/sqlite.ts'
import { selfCommand } from '../../platform/running/self.ts'
import wrapper from '../../../release/files/pds' with { type: 'text' }
import unit from '../../../release/files/holdfast.service' with { type: 'text' }
import { runToEnd, said } from '../upgrade/service-manager.ts'

export const UNIT = 'holdfast.service'
const USER = 'holdfast'
const packagedUnits = ['/usr/lib/systemd/system', '/lib/systemd/system'].map((folder) => join(folder, UNIT))
const OWN_UNIT = `/etc/systemd/system/${UNIT}`
const OWN_PLACES = `/etc/systemd/system/${UNIT}.d/places.conf`
const PACKAGED_WRAPPER = '/usr/sbin/pds'
const OWN_WRAPPER = '/usr/local/sbin/pds'

/** Paths in the files of a release, which are replaced. */
const packaged = { executable: '/usr/bin/holdfast', settings: SERVICE_SETTINGS }
export const serviceFolders = { data: '/var/lib/holdfast', backups: '/var/backups/holdfast' }

/** Folders that the unit hides from the server. */
const hidden = /^\/(?:home|root|run\/user|tmp|var\/tmp)\//

/** Whether this process could install a service here. */
export const canInstallService = (): boolean =>
  process.platform === 'linux' && process.getuid?.() === 0 && Bun.which('systemctl') !== null

export interface ServicePlan {
  /** The file of variables. */
  settings: string
  config: Config
  onStep: (text: string) => void
}

/** Paths that units of systemd and the wrapper's shell take as they are. */
const plainPath = /^\/[\w./@+-]*$/

/**
 * Throws `OperatorError` if the service could not read the executable or the data, if a path has characters that
 * systemd or a shell would read differently, or if a folder for the server alone has files of other users.
 */
export async function requirePlaces({ settings, config }: Pick<ServicePlan, 'settings' | 'config'>): Promise<void> {
  const folders = foldersOf(config)
  const paths = [...selfCommand(), settings, ...folders]
  const odd = paths.find((path) => !plainPath.test(path))
  if (odd !== undefined)
    throw new OperatorError(
      `${JSON.stringify(odd)} cannot be part of a systemd unit: choose an absolute path of letters, digits and . _ @ + - /`,
    )
  const unreadable = [...selfCommand(), ...folders].find((path) => hidden.test(`${path}/`))
  if (unreadable !== undefined)
    throw new OperatorError(
      `${unreadable} is in a folder that the service cannot read: choose another place, such as /usr/local/bin for the executable and /srv for data and backups`,
    )
  // The output is empty until there is such a user.
  const { out } = await runToEnd(['id', '-u', USER])
  const shared = folders.find((folder) => isShared(folder, Number(out), config))
  if (shared !== undefined)
    throw new OperatorError(
      `${shared} has files of other users, who could no longer reach them: choose a folder for the server alone, such as ${join(shared, 'holdfast')}`,
    )
}

/** The folders that will belong to the server alone: all in which the configuration lets it write. */
function foldersOf({ dataDir, databaseUrl, backup: { destination, continuous }, archives }: Config): string[] {
  const database = isPostgresUrl(databaseUrl) ? [] : [dirname(sqlitePath(databaseUrl))]
  const places = [destination, continuous].filter((place) => place !== null && !place.startsWith('s3://'))
  return [...new Set([dataDir, ...database, ...places, archives.folder])].filter((folder) => folder !== null)
}

/** Name of the SQLite database in the data folder. */
const DATABASE_FILE = 'holdfast.db'
/** A folder at the top of many file systems. */
const LOST_FOUND = 'lost+found'

/**
 * Whether other users have files in a folder. A folder that only root or the server can open is not shared, and neither
 * is a data folder with its database. A database in another folder says nothing about what else is there.
 */
function isShared(folder: string, uid: number, { dataDir }: Config): boolean {
  const found = statSync(folder, { throwIfNoEntry: false })
  if (found === undefined || !found.isDirectory()) return false
  if ((found.mode & 0o077) === 0 && (found.uid === 0 || found.uid === uid)) return false
  const names = readdirSync(folder)
  if (resolve(folder) === resolve(dataDir) && names.includes(DATABASE_FILE)) return false
  return names.some((name) => name !== LOST_FOUND && !name.startsWith(DATABASE_FILE))
}

/** Install the service. Returns whether anything changed. Throws `OperatorError` if a step fails. */
export async function installService({ settings, config, onStep }: ServicePlan): Promise<boolean> {
  if ((await runToEnd(['getent', 'passwd', USER])).code !== 0) {
    onStep(`making the user ${USER}`)
    const home = ['--home-dir', serviceFolders.data, '--no-create-home', '--shell', '/usr/sbin/nologin']
    await run(['useradd', '--system', '--user-group', ...home, USER])
  }
  const folders = foldersOf(config)
  await run(['install', '-d', '-o', USER, '-g', USER, '-m', '700', ...folders])

  const isPackaged = packagedUnits.some((path) => existsSync(path))
  const files = [
    ...(isPackaged ? [] : [{ path: OWN_UNIT, mode: 0o644, text: fitted(unit, settings) }]),
    { path: OWN_PLACES, mode: 0o644, text: placesFor(folders, isPackaged ? settings : null) },
    ...(existsSync(PACKAGED_WRAPPER) ? [] : [{ path: OWN_WRAPPER, mode: 0o755, text: fitted(wrapper, settings) }]),
  ]
  const changed = files.filter(({ path, text }) => !existsSync(path) || readFileSync(path, 'utf8') !== text)
  for (const { path, mode, text } of changed) {
    onStep(`writing ${path}`)
    mkdirSync(dirname(path), { recursive: true, mode: 0o755 })
    writeFileSync(path, text, { flush: true })
    chmodSync(path, mode)
  }
  await run(['systemctl', 'daemon-reload'])
  return changed.length > 0
}

/** Start the service, or restart it with its new configuration. Enable it at boot. */
export async function startService(onStep: (text: string) => void): Promise<void> {
  onStep(`starting ${UNIT}`)
  await run(['systemctl', 'enable', UNIT])
  await run(['systemctl', 'restart', UNIT])
}

/** Fit a file of the release to this executable and this file of variables. */
const fitted = (text: string, settings: string): string =>
  text.replaceAll(packaged.executable, selfCommand().join(' ')).replaceAll(packaged.settings, settings)

/** Additions to the unit: folders that the server writes, and the file of variables if a package's unit differs. */
function placesFor(folders: readonly string[], settings: string | null): string {
  const file =
    settings === null || settings === packaged.settings ? [] : ['EnvironmentFile=', `EnvironmentFile=${settings}`]
  return ['[Service]', ...file, ...folders.map((folder) => `ReadWritePaths=-${folder}`), ''].join('\n')
}

async function run(words: readonly string[]): Promise<void> {
  const { code, err, out } = await runToEnd(words)
  if (code !== 0) throw new OperatorError(`"${words.join(' ')}" failed: ${said(err || out)}`)
}
