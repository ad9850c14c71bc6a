/** `holdfast upgrade` of an executable: what it trusts, and what it leaves behind. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommand } from '../../../src/cli.ts'
import type { ExitCode } from '../../../src/commands/command.ts'
import { quietTerminal } from '../../support/clients/terminal.ts'
import { withSmallDisk } from '../../support/faults/small-disk.ts'
import { asOrdinaryUser, runProgram, SOURCE } from '../../support/servers/program.ts'
import {
  EXECUTABLE,
  freshKey,
  programOf,
  type ReleaseHost,
  startReleaseHost,
} from '../../support/servers/release-host.ts'
import { until } from '../../support/until.ts'

const scratch = mkdtempSync(join(realpathSync(tmpdir()), 'holdfast-upgrade-'))
chmodSync(scratch, 0o755)
let releases: ReleaseHost
let count = 0
/** A folder of its own for each test, with the executable of an old version. */
let folder: string
let executable: string

beforeAll(() => {
  releases = startReleaseHost()
})
afterAll(async () => {
  await releases[Symbol.asyncDispose]()
  rmSync(scratch, { recursive: true, force: true })
})
beforeEach(async () => {
  folder = join(scratch, `machine-${count++}`)
  mkdirSync(folder)
  executable = join(folder, 'holdfast')
  install('0.0.9')
  releases.answers = {}
  releases.requests.length = 0
  await releases.publish('0.2.0', programOf('0.2.0'))
})

function install(version: string, instead: Record<string, string> = {}) {
  writeFileSync(executable, programOf(version, instead))
  chmodSync(executable, 0o755)
}

const wordsOf = (...words: string[]) => [
  'upgrade',
  '--executable',
  executable,
  '--from',
  releases.url,
  '--public-key',
  releases.key.publicKey,
  ...words,
]
/** As a process of its own. */
const upgrade = (words: string[], env: Record<string, string> = {}, program = SOURCE) =>
  runProgram(wordsOf(...words), env, program)
/** Within the test, for a machine without a server. */
const upgradeAlone = (...words: string[]) => run(wordsOf('--executable-only', ...words))
async function run(words: string[]) {
  const lines: string[] = []
  return { code: await runCommand(quietTerminal({}, lines), words), said: lines.join('\n') }
}

/** What the executable says, which must always run. */
const versionThere = async () => {
  const child = Bun.spawn([executable, 'version'], { stdout: 'pipe' })
  return (await new Response(child.stdout).text()).trim()
}
const leftovers = () => readdirSync(folder).toSorted()

describe('an executable without a server', () => {
  test('is replaced by the newest one, and kept beside it', async () => {
    expect(await upgradeAlone()).toEqual({ code: 0, said: expect.stringContaining('outcome     upgraded') })
    expect(await versionThere()).toBe('holdfast v0.2.0')
    expect(readFileSync(`${executable}.previous`, 'utf8')).toBe(programOf('0.0.9'))
    expect(statSync(executable).mode & 0o777).toBe(0o755)
    expect(leftovers()).toEqual(['holdfast', 'holdfast.previous'])
    expect(await upgradeAlone()).toEqual({ code: 0, said: expect.stringContaining('outcome     current') })
  })

  test('is only looked at with --check, by any user', async () => {
    const checked = await upgrade(['--check', '--json'], {}, asOrdinaryUser)
    expect(JSON.parse(checked.out)).toMatchObject({
      installed: '0.0.9',
      newest: '0.2.0',
      isNewer: true,
      outcome: 'checked',
    })
    expect(releases.requests).toEqual(['latest.json', 'latest.json.minisig'])
    expect(leftovers()).toEqual(['holdfast'])
  })

  test('is replaced where the symbolic link leads', async () => {
    const link = join(folder, 'link')
    symlinkSync('holdfast', link)
    const { code } = await run(['upgrade', '--executable', link, ...wordsOf('--executable-only').slice(3)])
    expect(code).toBe(0)
    expect(await versionThere()).toBe('holdfast v0.2.0')
    expect(realpathSync(link)).toBe(executable)
    expect(leftovers()).toEqual(['holdfast', 'holdfast.previous', 'link'])
  })

  test('is an argument that must be there, and so are a place and a key', async () => {
    const words = ['--from', releases.url, '--public-key', releases.key.publicKey]
    const faults: [words: string[], code: ExitCode, fault: string][] = [
      [words, 2, '--executable names the file to upgrade'],
      [['--executable', executable], 2, '--public-key who signs them'],
      [['--executable', executable, ...words.slice(0, 2), '--public-key', 'RWQ'], 2, '--public-key takes a public key'],
      [['--executable', join(folder, 'none'), ...words], 1, 'there is no executable'],
      [['--executable', executable, '--from', 'http://example.com', ...words.slice(2)], 1, 'use https'],
    ]
    for (const [given, code, fault] of faults)
      expect(await run(['upgrade', ...given])).toEqual({ code, said: expect.stringContaining(fault) })
  })
})

describe('a release that lies', () => {
  afterEach(async () => {
    expect(await versionThere()).toBe('holdfast v0.0.9')
    expect(leftovers()).toEqual(['holdfast'])
  })
  const refused = async (fault: string) =>
    expect(await upgradeAlone()).toEqual({ code: 1, said: expect.stringContaining(fault) })
  const rewrite = (changes: object) => releases.publish('0.2.0', programOf('0.2.0'), changes)

  test('with a changed manifest is refused before anything is downloaded', async () => {
    const path = join(releases.folder, 'latest.json')
    writeFileSync(path, readFileSync(path, 'utf8').replace('0.2.0', '0.3.0'))
    await refused('its signature does not match the file')
    expect(releases.requests).not.toContain(EXECUTABLE)
  })

  test('with the signature of another key is refused', async () => {
    releases.sign('latest.json', freshKey())
    await refused('its signature was made with another key')
  })

  test('with another key that claims the same number is refused', async () => {
    releases.sign('latest.json', { ...freshKey(), id: releases.key.id })
    await refused('its signature does not match the file')
  })

  test('with the signature of another file or version is refused', async () => {
    for (const comment of ['file:SHA256SUMS\tversion:0.2.0', 'file:latest.json\tversion:0.1.0', '']) {
      releases.sign('latest.json', releases.key, comment)
      await refused('its signature belongs to another file or version')
    }
  })

  test('without a signature, or with something else in its place, is refused', async () => {
    releases.answers = { 'latest.json.minisig': () => new Response('no', { status: 404 }) }
    await refused('status 404')
    releases.answers = { 'latest.json.minisig': () => new Response('signed, honestly\n') }
    await refused('is not a minisign signature')
  })

  test.each([
    ['of other software', { name: 'shackles' }, '"name"'],
    ['of no version', { version: '0.2' }, '"version"'],
    [
      'with a file elsewhere',
      { files: { 'linux-x64': { file: '../evil', size: 1, sha256: '0'.repeat(64) } } },
      '"linux-x64" needs',
    ],
    [
      'with a size that no executable has',
      { files: { a: { file: 'a', size: 2 ** 40, sha256: '0'.repeat(64) } } },
      '"a" needs',
    ],
    ['for other platforms', { files: {} }, 'no executable for'],
    ['with migrations that are not numbers', { migrations: ['1'] }, '"migrations"'],
  ])('%s is refused although it is signed', async (_, changes, fault) => {
    await rewrite(changes)
    await refused(fault)
  })

  test('with an endless manifest is cut off', async () => {
    releases.answers = { 'latest.json': endless }
    await refused('latest.json is larger than it should be')
  })

  test('with an endless executable is cut off at its size', async () => {
    releases.answers = { [EXECUTABLE]: endless }
    await refused(`${EXECUTABLE} is larger than it should be`)
  })

  test('with a changed, a shorter or an empty executable is refused', async () => {
    const whole = programOf('0.2.0')
    releases.answers = { [EXECUTABLE]: () => new Response(whole.replace('0.2.0', '0.2.1')) }
    await refused('is not the file of the signed manifest')
    releases.answers = { [EXECUTABLE]: () => new Response(whole.slice(0, -1)) }
    await refused(`was cut off after ${whole.length - 1} of ${whole.length} bytes`)
    releases.answers = { [EXECUTABLE]: () => new Response('') }
    await refused(`was cut off after 0 of ${whole.length} bytes`)
  })

  test('with an executable of another version, or of another machine, is refused', async () => {
    await releases.publish('0.2.0', programOf('0.1.9'))
    await refused('the executable of version 0.2.0 reports version 0.1.9')
    await releases.publish('0.2.0', '\u007fELF of another machine')
    await refused('does not run on this machine')
  })

  test('that is an old one, signed at its time, is refused without --downgrade', async () => {
    await releases.publish('0.0.8', programOf('0.0.8'))
    await refused('version 0.0.8 is older than 0.0.9, which is installed. It can open the database')
    await releases.publish('0.0.8', programOf('0.0.8'), { migrations: [1] })
    await refused('It cannot open a database of this version, with migration 2, 3, 4, 5, 8 and others: docs/upgrade.md')
  })

  const endless = () =>
    new Response(
      new ReadableStream({
        pull: (controller) => controller.enqueue(new Uint8Array(65_536).fill(32)),
      }),
    )
})

test('an older version is installed with --downgrade', async () => {
  await releases.publish('0.0.8', programOf('0.0.8'))
  expect(await upgradeAlone('--downgrade')).toMatchObject({ code: 0 })
  expect(await versionThere()).toBe('holdfast v0.0.8')
})

test('a folder that cannot be written is refused before anything is downloaded', async () => {
  expect(await upgrade(['--executable-only'], {}, asOrdinaryUser)).toMatchObject({
    code: 1,
    err: expect.stringContaining(`${folder} cannot be written (EACCES)`),
  })
  expect(releases.requests).not.toContain(EXECUTABLE)
})

test('a full disk leaves the old executable', async () => {
  await releases.publish('0.2.0', `${programOf('0.2.0')}#${'x'.repeat(1_000_000)}\n`)
  const disk = join(scratch, 'disk')
  const setUp =
    'cp "$1" "$2/holdfast" && shift 2 && "$@"; status=$?; "$DISK/holdfast" version; ls "$DISK"; exit $status'
  const { code, out, err } = await runProgram(
    ['upgrade', '--executable', join(disk, 'holdfast'), ...wordsOf('--executable-only').slice(3)],
    { DISK: disk },
    [...withSmallDisk(disk, 200_000), 'sh', '-c', setUp, 'sh', executable, disk, ...SOURCE],
  )
  expect({ code, out }).toEqual({ code: 1, out: expect.stringMatching(/holdfast v0\.0\.9\nholdfast\n$/) })
  expect(err).toMatch(/the disk of .*holdfast\.new is full: free some space/)
})

test('two upgrades at once: one is refused', async () => {
  const { promise: gate, resolve: open } = Promise.withResolvers<void>()
  const body = programOf('0.2.0')
  releases.answers = { [EXECUTABLE]: () => gate.then(() => new Response(body)) }
  const first = upgradeAlone()
  await until(() => releases.requests.includes(EXECUTABLE))
  // SQLite's locks are those of a process.
  expect(await upgrade(['--executable-only'])).toMatchObject({
    code: 1,
    err: expect.stringContaining(`another upgrade of ${executable} is running`),
  })
  open()
  expect(await first).toMatchObject({ code: 0 })
  expect(await versionThere()).toBe('holdfast v0.2.0')
  expect(leftovers()).toEqual(['holdfast', 'holdfast.previous'])
})

test('a server whose configuration cannot be read is not upgraded behind its back', async () => {
  expect(await upgrade(['--restart-with', 'true'])).toMatchObject({
    code: 1,
    err: expect.stringMatching(/the configuration of the server cannot be read .*--executable-only/s),
  })
  expect(await versionThere()).toBe('holdfast v0.0.9')
})

test('killed at any moment it leaves an executable that runs, and the next upgrade finishes', async () => {
  for (let round = 0; round < Number(process.env['UPGRADE_KILLS'] ?? 3); round++) {
    install('0.0.9')
    const child = Bun.spawn([...SOURCE, ...wordsOf('--executable-only')], { stdout: 'ignore', stderr: 'ignore' })
    const before = releases.requests.length
    await until(() => releases.requests.length > before + 2 || child.exitCode !== null)
    // From the request of the executable on, at another moment in each round.
    await Bun.sleep(Math.random() * 40)
    child.kill('SIGKILL')
    await child.exited
    expect(await versionThere()).toMatch(/^holdfast v0\.(0\.9|2\.0)$/)
    expect(await upgradeAlone()).toMatchObject({ code: 0 })
    expect(await versionThere()).toBe('holdfast v0.2.0')
    expect(leftovers().filter((name) => /\.(new|part|lock)$/.test(name))).toEqual([])
  }
}, 120_000)
