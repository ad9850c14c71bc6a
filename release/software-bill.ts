/**
 * The software bill of materials of a release, in CycloneDX 1.6: the runtime, and every package from which the bundler
 * takes a file, with versions, digests and licences from package-lock.json.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { SOFTWARE_NAME, VERSION } from '../src/base/version.ts'
import { bundleOptions, bundlePlugins, nativePackage, type Target, targets } from '../build.ts'

const root = join(import.meta.dir, '..')
/** The runtime is a development dependency, but part of every executable. */
const RUNTIME = 'node_modules/bun'

interface Package {
  version: string
  integrity: string
  license?: string
  os?: string[]
  cpu?: string[]
}

const packages = () =>
  (JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as { packages: Record<string, Package> }).packages

/** Returns the places in the lock file of the packages from which the bundler takes a file. */
async function bundledPlaces(): Promise<Set<string>> {
  const { metafile } = await Bun.build({
    ...bundleOptions,
    plugins: bundlePlugins(null, root),
    metafile: true,
    sourcemap: 'none',
    bytecode: false,
  })
  const files = Object.keys(metafile!.inputs)
  return new Set(
    files.flatMap(
      (file) => /^(?:.*\/)?(node_modules\/(?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? [],
    ),
  )
}

/** The suffixes of native packages for the C libraries of Linux. */
const endings = { glibc: '-gnu', musl: '-musl' } as const

/** Whether npm would install a native package for one of the targets. */
const isForOne = (chosen: readonly Target[], place: string, { os, cpu }: Package): boolean =>
  chosen.some((name) => {
    const target = targets[name]
    const isFitting = os?.includes(target.os) === true && (cpu?.includes(target.cpu) ?? true)
    return isFitting && (!('libc' in target) || place.endsWith(endings[target.libc]))
  })

/** The bill of executables for these targets. */
export async function softwareBill(chosen: readonly Target[], releasedAt: Date) {
  const bundled = await bundledPlaces()
  const places = Object.entries(packages()).filter(([place, found]) =>
    nativePackage.test(place.replace('node_modules/', ''))
      ? isForOne(chosen, place, found)
      : bundled.has(place) || place === RUNTIME,
  )
  return {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      timestamp: releasedAt.toISOString(),
      component: {
        type: 'application',
        'bom-ref': SOFTWARE_NAME,
        name: SOFTWARE_NAME,
        version: VERSION,
        licenses: [{ license: { id: 'MIT' } }],
      },
    },
    components: places.map(([place, found]) => componentOf(place, found)),
  }
}

function componentOf(place: string, { version, integrity, license }: Package) {
  const name = place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length)
  return {
    type: 'library',
    'bom-ref': place,
    name,
    version,
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
    hashes: [{ alg: 'SHA-512', content: Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex') }],
    ...(license !== undefined && { licenses: [licenseOf(license)] }),
  }
}

const licenseOf = (text: string) => (text.includes(' ') ? { expression: text } : { license: { id: text } })
