import { ownPlatform, releaseOrigin } from '../../base/release-origin.ts'
import { serverOrigin } from '../../base/server-request.ts'
import { OperatorError } from '../../base/operator-error.ts'
import { compareVersions, VERSION } from '../../base/version.ts'
import { migrations } from '../../platform/database/embedded-migrations.ts'
import { createOutbound } from '../../platform/network/outbound.ts'
import { systemResolver } from '../../platform/network/resolver.ts'
import { isCompiled } from '../../platform/running/self.ts'
import { parseMinisignKey } from '../../protocol/minisign.ts'
import type { ReleaseManifest } from '../../protocol/release-manifest.ts'
import { type Command, exitCodes, type ExitCode, integerOption, type Invocation, Misuse } from '../command.ts'
import { devOption } from '../configuration.ts'
import { facts, jsonOption, tellResult } from '../report.ts'
import { placeOf, requireWritable } from './executable-swap.ts'
import { fetchManifest, type ReleaseSource } from './release-source.ts'
import { findManager, runToEnd } from './service-manager.ts'
import { fileFor, type Installed, type UpgradeReport, upgradeTo, versionOf } from './upgrade.ts'

const DEFAULT_HEALTH_SECS = 120
const DEFAULT_UNIT = 'holdfast.service'

export const upgradeCommand: Command = {
  summary: 'Upgrade this executable to the newest release, and roll back if the new one does not work.',
  details: `Fetches the newest release and verifies its signature and digest, makes a backup at backup.destination, swaps the
executable, restarts its systemd service, and waits until the server works. If it does not, puts the old executable
back. The old one stays beside the new one, as holdfast.previous.

Run it as root if systemd runs the server: commands that need the server's configuration get the environment and the
user of the service. Otherwise they use the environment of this command, as "holdfast serve" does.

It can be interrupted, and run again. Refuses older versions without --downgrade. Exits with 1 if there is a newer
version and it was not installed, or was rolled back.`,
  options: {
    check: { doc: 'Only say whether there is a newer version.' },
    downgrade: { doc: 'Allow an older version.' },
    from: { value: 'URL', doc: 'The folder of the release, instead of where this executable came from.' },
    'public-key': { value: 'KEY', doc: 'Trust this minisign key (RW…) instead of the one in the executable.' },
    executable: { value: 'FILE', doc: 'Upgrade this executable instead of the running one.' },
    'executable-only': { doc: 'No server runs here: make no backup, and restart nothing.' },
    'backup-to': { value: 'PLACE', doc: 'Make the backup in this folder or s3://bucket/prefix.' },
    'no-backup': { doc: 'Make no backup first.' },
    service: { value: 'UNIT', doc: `The systemd unit (${DEFAULT_UNIT}).` },
    'restart-with': { value: 'COMMAND', doc: 'Restart the server with this shell command.' },
    'health-timeout': { value: 'SECS', doc: `How long to wait until the server works (${DEFAULT_HEALTH_SECS}).` },
    ...jsonOption,
    ...devOption,
  },
  async run(invocation): Promise<ExitCode> {
    const { terminal, options, flags } = invocation
    const source = sourceOf(invocation)
    const installed = await findInstalled(invocation)
    const manifest = await fetchManifest(source)
    if (flags.has('check')) return tell(invocation, installed, manifest, null)
    if (process.platform === 'win32')
      throw new OperatorError(
        'on Windows a program cannot replace itself: stop the server, and replace the file by hand',
      )
    await refusePackaged(installed.place.path)
    requireWritable(installed.place)
    const manager = flags.has('executable-only')
      ? null
      : await findManager(installed.place.path, {
          restartWith: options['restart-with'] ?? null,
          unit: options['service'] ?? DEFAULT_UNIT,
        })
    const report = await upgradeTo(manifest, source, installed, {
      manager,
      commandArgs: flags.has('dev') ? ['--dev'] : [],
      backup: flags.has('no-backup') ? null : { to: options['backup-to'] ?? null },
      isDowngradeAllowed: flags.has('downgrade'),
      healthMillis: (integerOption(options, 'health-timeout', 1) ?? DEFAULT_HEALTH_SECS) * 1000,
      onStep: (text) => !flags.has('json') && terminal.out(text),
      pause: terminal.pause,
    })
    return tell(invocation, installed, manifest, report)
  },
}

function sourceOf({ options }: Invocation): ReleaseSource {
  const url = options['from'] ?? releaseOrigin?.url
  const keyText = options['public-key'] ?? releaseOrigin?.publicKey
  if (url === undefined || keyText === undefined)
    throw new Misuse(
      'this executable does not belong to a release: --from says where releases are, and --public-key who signs them',
    )
  serverOrigin(url)
  const key = parseMinisignKey(keyText)
  if (key === null) throw new Misuse('--public-key takes a public key of minisign: RW and 54 more characters')
  const outbound = createOutbound({ resolver: systemResolver({ asksSystem: true }), reach: 'anywhere' })
  return { outbound, url: url.replace(/\/$/, ''), key }
}

async function findInstalled({ options }: Invocation): Promise<Installed> {
  const named = options['executable']
  if (named === undefined && !isCompiled)
    throw new Misuse('this program runs from its source: --executable names the file to upgrade')
  const place = placeOf(named ?? process.execPath)
  return {
    place,
    version: named === undefined ? VERSION : await versionOf(place.path),
    platform: releaseOrigin?.platform ?? ownPlatform(),
    migrations: migrations.map(({ number }) => number),
  }
}

/** A package manager has to replace what it has installed. */
async function refusePackaged(executable: string): Promise<void> {
  if (Bun.which('dpkg-query') === null || (await runToEnd(['dpkg-query', '--search', executable])).code !== 0) return
  throw new OperatorError(
    `${executable} belongs to a Debian package: make a backup, download the .deb of the new version, and install it with "apt install ./holdfast_….deb"`,
  )
}

function tell(
  invocation: Invocation,
  { version, platform, place }: Installed,
  manifest: ReleaseManifest,
  report: UpgradeReport | null,
): ExitCode {
  const isNewer = compareVersions(manifest.version, version) > 0
  const size = isNewer || report !== null ? fileFor(manifest, platform).size : undefined
  const value = {
    executable: place.path,
    platform,
    installed: version,
    newest: manifest.version,
    isNewer,
    ...(report ?? { outcome: 'checked' }),
  }
  const { executable, installed, newest, outcome } = value
  const text = [
    facts({ executable, installed, newest, outcome: report === null ? null : outcome, backup: report?.backup }),
    ...(report === null && isNewer ? [`"holdfast upgrade" installs it (${size} bytes).`] : []),
    ...(report?.remarks ?? []),
  ]
  tellResult(invocation, value, text.join('\n'))
  return report?.outcome === 'rolled-back' ? exitCodes.failed : exitCodes.ok
}
