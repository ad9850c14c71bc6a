/**
 * Make a release in dist/release: an executable for each platform, and what belongs to them.
 *
 *   npm run release -- --url https://example.com/holdfast --key holdfast.key
 *   npm run release -- --url … --key … --target linux-x64 --trial
 *
 * `--url` is where the folder will be: executables look there for a newer version, and trust only what the key has
 * signed. Instead of `--key`, the variable HOLDFAST_RELEASE_KEY may hold the text of the key. Executables that this
 * machine can run pass the smoke tests first. A platform that cannot be built, or fails them, is left out and named,
 * and the exit status is 1.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { buildExecutable, type Target, targets } from '../build.ts'
import { ownPlatform } from '../src/base/release-origin.ts'
import { serverOrigin } from '../src/base/server-request.ts'
import { OperatorError } from '../src/base/operator-error.ts'
import { SOFTWARE_NAME, VERSION } from '../src/base/version.ts'
import { freePort } from '../tests/support/ports.ts'
import { startProgram } from '../tests/support/servers/program.ts'
import { type Built, packRelease } from './package-folder.ts'
import { parseReleaseKey, type ReleaseKey } from './release-key.ts'
import { changesOf, releaseNotes, type Tried } from './release-notes.ts'
import { softwareBill } from './software-bill.ts'

const root = join(import.meta.dir, '..')
const folder = join(root, 'dist/release')
const PASSED = 'passed'
const NOT_RUN = 'not run: this machine cannot run it'
/** Parts that no release has been tested with so far. */
const unsmoked = ['the container image', 'the packages for Debian under a running systemd']

const { values } = parseArgs({
  options: {
    url: { type: 'string' },
    key: { type: 'string' },
    target: { type: 'string' },
    trial: { type: 'boolean', default: false },
  },
})

function releaseUrl(): string {
  if (values.url === undefined) throw new OperatorError('--url says where the release will be')
  serverOrigin(values.url)
  return values.url.replace(/\/$/, '')
}

function releaseKey(): ReleaseKey {
  const text = values.key === undefined ? process.env['HOLDFAST_RELEASE_KEY'] : readFileSync(values.key, 'utf8')
  if (!text)
    throw new OperatorError(
      '--key or HOLDFAST_RELEASE_KEY gives the key: make one with "minisign -G", or with "bun release/release-key.ts"',
    )
  return parseReleaseKey(text, process.env['HOLDFAST_RELEASE_PASSPHRASE'] ?? null)
}

function chosenTargets(): Target[] {
  const names = values.target?.split(',') ?? Object.keys(targets)
  for (const name of names) if (!Object.hasOwn(targets, name)) throw new OperatorError(`there is no target "${name}"`)
  return names as Target[]
}

const fileOf = (target: Target): string => `${SOFTWARE_NAME}-${target}${target.startsWith('windows') ? '.exe' : ''}`

/** Build an executable, and run the smoke tests if this machine can execute it. */
async function attempt(target: Target, url: string, publicKey: string): Promise<Tried> {
  const left = (reason: string): Tried => {
    rmSync(join(folder, fileOf(target)), { force: true })
    return { platform: target, left: reason, smoke: '' }
  }
  try {
    if (!(await buildExecutable(join(folder, fileOf(target)), target, { url, publicKey, platform: target })))
      return left('it could not be built')
  } catch (error) {
    return left(`it could not be built (${(error as Error).message})`)
  }
  const smoke = isRunnable(target) ? await smokeOf(join(folder, fileOf(target))) : NOT_RUN
  return smoke === PASSED || smoke === NOT_RUN ? { platform: target, left: null, smoke } : left(smoke)
}

/** Whether this machine can run executables of a target. */
const isRunnable = (target: Target): boolean => [ownPlatform(), `${ownPlatform()}-baseline`].includes(target)

/** Run the smoke tests against a development server of the executable. */
async function smokeOf(executable: string): Promise<string> {
  const place = mkdtempSync(join(tmpdir(), 'holdfast-release-'))
  try {
    await using server = await startProgram(['dev'], { PORT: String(await freePort()) }, place, {
      program: [executable],
    })
    const tests = Bun.spawn([process.execPath, 'test', '--timeout', '30000', 'tests/smoke'], {
      cwd: root,
      env: { ...process.env, SMOKE_URL: server.url },
      stdout: 'ignore',
      stderr: 'inherit',
    })
    return (await tests.exited) === 0 ? PASSED : 'the smoke tests failed'
  } catch (error) {
    return `it does not start (${(error as Error).message.slice(0, 200)})`
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}

async function makeRelease(): Promise<boolean> {
  const [url, key, chosen] = [releaseUrl(), releaseKey(), chosenTargets()]
  const changes = changesOf(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'), VERSION, values.trial)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const tried: Tried[] = []
  for (const target of chosen) {
    const result = await attempt(target, url, key.publicKey)
    console.log(
      `${target}: ${result.left === null ? `built, smoke tests ${result.smoke}` : `left out, ${result.left}`}`,
    )
    tried.push(result)
  }
  const kept = tried.filter(({ left }) => left === null).map(({ platform }) => platform as Target)
  if (kept.length === 0) throw new OperatorError('no platform could be built')
  const at = new Date()
  const names = await packRelease({
    folder,
    version: VERSION,
    url,
    key,
    built: kept.map((platform): Built => ({ platform, file: fileOf(platform) })),
    notes: releaseNotes(VERSION, changes, tried, unsmoked),
    bill: await softwareBill(kept, at),
    at,
  })
  console.log(`${SOFTWARE_NAME} ${VERSION}: ${names.length} files in ${folder}, signed with ${key.publicKey}`)
  return kept.length === chosen.length
}

try {
  if (!(await makeRelease())) process.exitCode = 1
} catch (error) {
  if (!(error instanceof OperatorError)) throw error
  console.error(error.message)
  process.exitCode = 2
}
