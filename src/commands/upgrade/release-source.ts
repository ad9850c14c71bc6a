/**
 * A folder of releases on the web, which need not be trusted: a manifest counts only with the signature of the release
 * key, and an executable only with the size and digest that the manifest names.
 */
import { closeSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { HOUR_MILLIS } from '../../base/durations.ts'
import { OperatorError } from '../../base/operator-error.ts'
import { Stalled, unstalled } from '../../base/unstalled.ts'
import { userAgentHeader } from '../../base/user-agent-header.ts'
import { SOFTWARE_NAME } from '../../base/version.ts'
import { explained } from '../../platform/files/system-faults.ts'
import { type Outbound, OutboundError } from '../../platform/network/outbound.ts'
import { MAX_SIGNATURE_BYTES, type MinisignKey, verifyMinisign } from '../../protocol/minisign.ts'
import {
  MAX_MANIFEST_BYTES,
  parseReleaseManifest,
  type ReleaseFile,
  type ReleaseManifest,
} from '../../protocol/release-manifest.ts'

const MANIFEST = 'latest.json'
/** Hosts of releases redirect to the place of their files. */
const MAX_REDIRECTS = 5
/** Time for an executable over a slow line. */
const MAX_DOWNLOAD_MILLIS = 2 * HOUR_MILLIS
/** Longest pause within a download. */
const MAX_PAUSE_MILLIS = 60_000

export interface ReleaseSource {
  outbound: Outbound
  /** Without a slash at the end. */
  url: string
  key: MinisignKey
}

/** Fetch the manifest of the newest release. Throws OperatorError if it is not signed with the key, or malformed. */
export async function fetchManifest(source: ReleaseSource): Promise<ReleaseManifest> {
  const [text, signature] = [
    await fetchSmall(source, MANIFEST, MAX_MANIFEST_BYTES),
    await fetchSmall(source, `${MANIFEST}.minisig`, MAX_SIGNATURE_BYTES),
  ]
  const digest = new Bun.CryptoHasher('blake2b512').update(text).digest()
  const verified = verifyMinisign(signature.toString(), source.key, digest)
  if (!verified.ok)
    throw new OperatorError(
      `${source.url}/${MANIFEST} cannot be trusted: its signature ${verified.fault}. Nothing was changed`,
    )
  const parsed = parseReleaseManifest(text.toString(), SOFTWARE_NAME)
  if (!parsed.ok) throw new OperatorError(`${source.url}/${MANIFEST} ${parsed.fault}`)
  const signedFor = new Set(verified.comment.split('\t'))
  if (!signedFor.has(`file:${MANIFEST}`) || !signedFor.has(`version:${parsed.manifest.version}`))
    throw new OperatorError(
      `${source.url}/${MANIFEST} cannot be trusted: its signature belongs to another file or version. Nothing was changed`,
    )
  return parsed.manifest
}

async function fetchSmall(source: ReleaseSource, name: string, maxBytes: number): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  try {
    for await (const piece of await bodyOf(source, name, maxBytes)) pieces.push(piece)
  } catch (error) {
    throw inWords(error, `${source.url}/${name}`)
  }
  return Buffer.concat(pieces)
}

/**
 * Download an executable to a new file at `path`, and flush it to the disk. If it is not the one that the manifest
 * names, delete the file and throw OperatorError.
 */
export async function fetchExecutable(
  source: ReleaseSource,
  { file, size, sha256 }: ReleaseFile,
  path: string,
): Promise<void> {
  const url = `${source.url}/${file}`
  rmSync(path, { force: true })
  const hasher = new Bun.CryptoHasher('sha256')
  let received = 0
  try {
    const descriptor = openSync(path, 'wx', 0o600)
    try {
      for await (const piece of unstalled(await bodyOf(source, file, size), MAX_PAUSE_MILLIS)) {
        hasher.update(piece)
        received += piece.byteLength
        for (let written = 0; written < piece.byteLength;) written += writeSync(descriptor, piece, written)
      }
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
    if (received !== size) throw new OperatorError(`${url} was cut off after ${received} of ${size} bytes`)
    if (hasher.digest('hex') !== sha256) throw new OperatorError(`${url} is not the file of the signed manifest`)
  } catch (error) {
    rmSync(path, { force: true })
    throw explained(inWords(error, url), { path, folder: path, key: 'the folder of the executable' })
  }
}

async function bodyOf(
  { outbound, url }: ReleaseSource,
  name: string,
  maxBytes: number,
): Promise<AsyncIterable<Uint8Array>> {
  const response = await outbound.fetch(`${url}/${name}`, {
    headers: { 'user-agent': userAgentHeader('cli') },
    maxRedirects: MAX_REDIRECTS,
    bodyTimeoutMillis: MAX_DOWNLOAD_MILLIS,
    maxBytes,
  })
  if (response.status !== 200) {
    await response.body?.cancel()
    throw new OperatorError(`${url}/${name} cannot be downloaded: the server returned status ${response.status}`)
  }
  return response.body ?? (async function* () {})()
}

function inWords(error: unknown, url: string): unknown {
  if (error instanceof OutboundError && error.fault === 'too-large')
    return new OperatorError(`${url} is larger than it should be`)
  if (error instanceof OutboundError || error instanceof Stalled)
    return new OperatorError(`${url} cannot be downloaded: ${error.message}`, { cause: error })
  const { code } = error as NodeJS.ErrnoException
  // A connection that breaks during the body gives a network code. Errors of files are explained elsewhere.
  return code === 'ECONNRESET' || code === 'ConnectionClosed'
    ? new OperatorError(`${url} was cut off: ${(error as Error).message}`)
    : error
}
