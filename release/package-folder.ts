/** The folder of a release: its executables, and everything made from them. Everything in it is signed. */
import { createReadStream, readFileSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { SOFTWARE_NAME } from '../src/base/version.ts'
import { migrations } from '../src/platform/database/embedded-migrations.ts'
import { signMinisign } from '../src/protocol/minisign.ts'
import type { ReleaseFile, ReleaseManifest } from '../src/protocol/release-manifest.ts'
import { debianPackage, textFile } from './debian-package.ts'
import type { ReleaseKey } from './release-key.ts'

const files = join(import.meta.dir, 'files')
const fileText = (name: string): string => readFileSync(join(files, name), 'utf8')
const root = join(import.meta.dir, '..')

export const MANIFEST = 'latest.json'
export const SUMS = 'SHA256SUMS'

/** Executables that are also packed for Debian, and Debian's names for their processors. */
const debianArchitectures: Readonly<Record<string, string>> = { 'linux-x64': 'amd64', 'linux-arm64': 'arm64' }

/** Files of the release that are packed as they are. */
const plainFiles = [
  'Dockerfile',
  'compose.yaml',
  'holdfast.service',
  'holdfast.env',
  'pds',
  'prometheus-rules.yml',
  'grafana-dashboard.json',
]

export interface Built {
  platform: string
  /** Name in the folder. */
  file: string
}

export interface Release {
  folder: string
  version: string
  /** Where the folder will be. */
  url: string
  key: ReleaseKey
  built: readonly Built[]
  notes: string
  bill: object
  at: Date
}

/** Write what belongs to the executables in the folder, and sign everything. Returns the names of all files. */
export async function packRelease(release: Release): Promise<string[]> {
  const { folder, notes, bill, built, key } = release
  const write = (name: string, content: string | Uint8Array, mode = 0o644): string => {
    writeFileSync(join(folder, name), content, { mode })
    return name
  }
  const names = [
    ...built.map(({ file }) => file),
    ...built.flatMap((each) => {
      const architecture = debianArchitectures[each.platform]
      if (architecture === undefined) return []
      return write(`${SOFTWARE_NAME}_${release.version}_${architecture}.deb`, debOf(release, each.file, architecture))
    }),
    ...plainFiles.map((name) => write(name, fileText(name))),
    write('install.sh', installScript(release), 0o755),
    write(`${SOFTWARE_NAME}.cdx.json`, `${JSON.stringify(bill, null, 2)}\n`),
    write('NOTES.md', notes.replace('-P KEY', `-P ${key.publicKey}`)),
    write(MANIFEST, `${JSON.stringify(await manifestOf(release), null, 2)}\n`),
  ]
  const sums = await Promise.all(
    names.map(async (name) => `${(await digestsOf(join(folder, name))).sha256}  ${name}\n`),
  )
  names.push(write(SUMS, sums.join('')))
  const signatures = names.map(async (name) => write(`${name}.minisig`, await signatureOf(join(folder, name), release)))
  return [...names, ...(await Promise.all(signatures))]
}

async function manifestOf({ folder, version, built }: Release): Promise<ReleaseManifest> {
  const entries = built.map(async ({ platform, file }): Promise<[string, ReleaseFile]> => {
    const path = join(folder, file)
    return [platform, { file, size: statSync(path).size, sha256: (await digestsOf(path)).sha256 }]
  })
  return {
    name: SOFTWARE_NAME,
    version,
    files: Object.fromEntries(await Promise.all(entries)),
    migrations: migrations.map(({ number }) => number).toSorted((a, b) => a - b),
  }
}

const installScript = ({ url, key, version }: Release): string =>
  fileText('install.sh').replace('@URL@', url).replace('@PUBLIC_KEY@', key.publicKey).replace('@VERSION@', version)

/** The signature covers the comment, so it cannot be passed off as that of another file or version. */
async function signatureOf(path: string, { version, key, at }: Release): Promise<string> {
  const seconds = Math.floor(at.getTime() / 1000)
  const comment = `timestamp:${seconds}\tfile:${basename(path)}\tversion:${version}\thashed`
  return signMinisign((await digestsOf(path)).blake2b, key.id, key.key, comment)
}

async function digestsOf(path: string): Promise<{ sha256: string; blake2b: Uint8Array }> {
  const [sha256, blake2b] = [new Bun.CryptoHasher('sha256'), new Bun.CryptoHasher('blake2b512')]
  for await (const chunk of createReadStream(path)) for (const hasher of [sha256, blake2b]) hasher.update(chunk)
  return { sha256: sha256.digest('hex'), blake2b: blake2b.digest() }
}

function debOf({ folder, version, at }: Release, file: string, architecture: string): Uint8Array {
  const executable = readFileSync(join(folder, file))
  const data = [
    { path: 'usr/bin/holdfast', mode: 0o755, content: executable },
    textFile('usr/sbin/pds', fileText('pds'), 0o755),
    textFile('usr/lib/systemd/system/holdfast.service', fileText('holdfast.service')),
    textFile('etc/holdfast.env', fileText('holdfast.env'), 0o600),
    textFile('usr/share/doc/holdfast/copyright', readFileSync(join(root, 'LICENSE'), 'utf8')),
  ]
  const kibibytes = Math.ceil(data.reduce((sum, { content }) => sum + content.length, 0) / 1024)
  return debianPackage(
    [
      textFile('control', controlOf(version, architecture, kibibytes)),
      textFile('conffiles', '/etc/holdfast.env\n'),
      ...['postinst', 'prerm', 'postrm'].map((name) => textFile(name, fileText(name), 0o755)),
    ],
    data,
    at,
  )
}

const controlOf = (version: string, architecture: string, kibibytes: number): string => `Package: holdfast
Version: ${version}
Architecture: ${architecture}
Maintainer: The Holdfast authors
Installed-Size: ${kibibytes}
Depends: libc6 (>= 2.28), libgcc-s1, passwd, util-linux
Recommends: ca-certificates
Section: net
Priority: optional
Description: Personal Data Server for the AT Protocol
 Stores the accounts, identities, repositories and media of its users, and
 serves them to the network.
`
