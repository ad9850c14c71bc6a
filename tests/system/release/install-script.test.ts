/** The install script of a release, run as people run it. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  EXECUTABLE,
  freshKey,
  programOf,
  type ReleaseHost,
  startReleaseHost,
} from '../../support/servers/release-host.ts'

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-install-'))
const temporary = join(scratch, 'temporary')
let releases: ReleaseHost
let folder: string
let count = 0

beforeAll(() => {
  releases = startReleaseHost()
  mkdirSync(temporary)
})
afterAll(async () => {
  await releases[Symbol.asyncDispose]()
  rmSync(scratch, { recursive: true, force: true })
})
beforeEach(async () => {
  folder = join(scratch, `bin-${count++}`)
  mkdirSync(folder)
  releases.answers = {}
  await releases.publish('0.2.0', programOf('0.2.0'))
})
afterEach(() => {
  expect(readdirSync(temporary)).toEqual([])
})

const script = () => join(releases.folder, 'install.sh')
const install = (...words: string[]) => runScript([script(), '--to', folder, ...words])
async function runScript(words: string[], env: Record<string, string> = {}) {
  const child = Bun.spawn(['sh', ...words], {
    env: { PATH: process.env['PATH'] ?? '', TMPDIR: temporary, ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [code, out, err] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ])
  return { code, out, err }
}
const change = (name: string, from: string, to: string) => {
  const path = join(releases.folder, name)
  writeFileSync(path, readFileSync(path, 'utf8').replace(from, to))
}

test('installs the executable of this machine, once', async () => {
  const { code, out, err } = await install()
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(out).toEndWith(
    `holdfast v0.2.0 is installed as ${folder}/holdfast\nTo set up a server: ${folder}/holdfast init --service\n`,
  )
  expect(readdirSync(folder)).toEqual(['holdfast'])
  expect(await install()).toMatchObject({ code: 0, out: `${folder}/holdfast is this version already\n` })
  await releases.publish('0.3.0', programOf('0.3.0'))
  expect(await install()).toMatchObject({ code: 1, err: expect.stringContaining('run "holdfast upgrade"') })
  expect(readFileSync(join(folder, 'holdfast'), 'utf8')).toBe(programOf('0.2.0'))
})

test('refuses the list of another version, although it is signed', async () => {
  const ofToday = readFileSync(script(), 'utf8')
  await releases.publish('0.1.0', programOf('0.1.0'))
  writeFileSync(script(), ofToday)
  expect(await install()).toMatchObject({ code: 1, err: expect.stringContaining('another version than 0.2.0') })
  expect(readdirSync(folder)).toEqual([])
})

test('takes another key and another place from its arguments', async () => {
  expect(await install('--public-key', freshKey().publicKey)).toMatchObject({
    code: 1,
    err: expect.stringContaining('SHA256SUMS is not one by RW'),
  })
  expect(await install('--from', `${releases.url}/`, '--public-key', releases.key.publicKey)).toMatchObject({ code: 0 })
})

test.each<[string, () => void, string]>([
  ['with a changed executable', () => change(EXECUTABLE, '0.2.0', '0.2.1'), 'was changed or cut off'],
  [
    'that is cut off',
    () => (releases.answers = { [EXECUTABLE]: () => new Response(programOf('0.2.0').slice(0, -1)) }),
    'was changed or cut off',
  ],
  ['without the executable', () => rmSync(join(releases.folder, EXECUTABLE)), 'cannot be downloaded'],
  ['with a changed list', () => change('SHA256SUMS', '0', '1'), 'the signature'],
  ['with a list that another key signed', () => releases.sign('SHA256SUMS', freshKey()), 'the signature'],
  [
    'with a list that a key of the same number signed',
    () => releases.sign('SHA256SUMS', { ...freshKey(), id: releases.key.id }),
    'the signature',
  ],
  [
    'with a changed comment of the signature',
    () => change('SHA256SUMS.minisig', 'version:', 'Version:'),
    'the signature',
  ],
  ['without a signature', () => rmSync(join(releases.folder, 'SHA256SUMS.minisig')), 'cannot be downloaded'],
  [
    'with an empty signature',
    () => writeFileSync(join(releases.folder, 'SHA256SUMS.minisig'), '\n\n\n\n'),
    'the signature',
  ],
  [
    'of other platforms',
    () => {
      change('SHA256SUMS', `  ${EXECUTABLE}\n`, `  ${EXECUTABLE}-of-another\n`)
      releases.sign('SHA256SUMS')
    },
    `has no ${EXECUTABLE}`,
  ],
  ['with an executable of another machine', () => undefined, 'does not run on this machine'],
])('installs nothing from a release %s', async (_, spoil, fault) => {
  if (fault.includes('machine')) await releases.publish('0.2.0', '\u007fELF of another machine')
  spoil()
  const { code, err } = await install()
  expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining(fault) })
  expect(readdirSync(folder)).toEqual([])
})

test('asks no server without encryption, unless it is on this machine', async () => {
  expect(await install('--from', 'http://example.com')).toMatchObject({
    code: 1,
    err: expect.stringContaining('http://example.com is not an https address'),
  })
})

test('says how it is used', async () => {
  for (const words of [['--to'], ['--help'], ['--where', 'there']])
    expect(await runScript([script(), ...words])).toMatchObject({
      code: 2,
      err: expect.stringContaining('--to FOLDER'),
    })
  expect(await runScript([script(), '--to', join(scratch, 'none')])).toMatchObject({
    code: 1,
    err: expect.stringContaining('is not a folder'),
  })
})

test('does nothing if the script itself was cut off', async () => {
  const text = readFileSync(script(), 'utf8')
  const part = join(scratch, 'part.sh')
  for (const length of [200, text.indexOf('main()'), text.lastIndexOf('main "$@"')]) {
    writeFileSync(part, text.slice(0, length))
    await runScript([part, '--to', folder])
    expect(existsSync(join(folder, 'holdfast'))).toBe(false)
  }
})
