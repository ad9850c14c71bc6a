/**
 * The native library that speaks QUIC between peers. It takes 30 MB of memory once it is loaded, so only a server with
 * `iroh.enabled` loads it. There is no other implementation to fall back to.
 */
import { tmpdir } from 'node:os'
import { madeOnce } from '../../base/made-once.ts'
import { inWords, type OperatorError } from '../../base/operator-error.ts'
import { nativeBuild, PLATFORM, type NativeBuilds } from '../secrets/native-library.ts'

type IrohLibrary = Pick<
  typeof import('@number0/iroh'),
  'Endpoint' | 'EndpointAddr' | 'EndpointId' | 'RelayMode' | 'SecretKey'
>

const builds: NativeBuilds<IrohLibrary> = {
  'linux-x64': [() => require('@number0/iroh-linux-x64-gnu'), () => require('@number0/iroh-linux-x64-musl')],
  'darwin-arm64': [() => require('@number0/iroh-darwin-arm64')],
}

/** Whether the library is published for this platform. */
export const hasIroh = PLATFORM in builds

/** Why a server on this platform has no endpoint. */
export const NO_IROH = `the QUIC library has no build for ${PLATFORM}, only for Linux on x64 and for macOS on arm64`

/** Returns the library, which is loaded on first use. Throws `OperatorError` if it cannot be loaded. */
export const irohLibrary = madeOnce((): IrohLibrary => {
  const { library, faults } = nativeBuild(builds)
  if (library === null) throw notLoaded(faults)
  return library
})

function notLoaded(faults: readonly unknown[]): OperatorError {
  if (!hasIroh) return inWords({ what: NO_IROH, remedy: 'set iroh.enabled to false' })
  if (faults.length === 0)
    return inWords({
      what: `this program was built without the QUIC library for ${PLATFORM}`,
      remedy: 'install the library with npm and build again, or set iroh.enabled to false',
    })
  return inWords({
    what: `the QUIC library cannot be loaded from ${tmpdir()} (${faults.map(String).join('; ')})`,
    remedy: 'set TMPDIR to a folder that can be written and from which programs may run',
  })
}
