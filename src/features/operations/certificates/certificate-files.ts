/**
 * Certificates in files that another program renews. The server looks at the files every second: such programs replace
 * symbolic links, and notifications of changes do not follow links.
 */
import { readFileSync, statSync } from 'node:fs'
import { OperatorError } from '../../../base/operator-error.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { certificatesOf, readWholeCertificate, type Certificate } from '../../../platform/network/certificate-shelf.ts'

const LOOK_MILLIS = 1000
/** Longer files are refused without being read. */
const MAX_FILE_BYTES = 256 * 1024

interface State {
  /** The certificate that is served from each file in `tls.certificate_files`; null if none can be. */
  held: readonly (Certificate | null)[]
  faults: readonly FileFault[]
}

/** A file that cannot be served as it is now. */
export interface FileFault {
  path: string
  text: string
}

const stateOf = perContext((): State => ({ held: [], faults: [] }))

export const fileFaults = (ctx: Context): readonly FileFault[] => stateOf(ctx).faults

/**
 * Serve the certificates in the files. Throws `OperatorError` if one cannot be served, unless it has expired and
 * another one has not.
 */
export function serveFiles(ctx: Context): void {
  const found = readAll(ctx)
  const faults = found.filter((each) => each instanceof OperatorError)
  const wrong = faults.find((fault) => faults.length === found.length || !(fault instanceof Expired))
  if (wrong !== undefined) throw wrong
  for (const { message } of faults) ctx.log.warn('not serving a certificate', { reason: message })
  serve(
    ctx,
    found.map((each) => (each instanceof OperatorError ? null : each)),
  )
}

function serve(ctx: Context, certificates: readonly (Certificate | null)[]): void {
  stateOf(ctx).held = certificates
  certificatesOf(ctx).serve(certificates.filter((each) => each !== null))
}

/** Serve files that have changed. A file that cannot be served is logged once, and tried after its next change. */
export function watchFiles(ctx: Context): () => void {
  const { tls } = ctx.config
  let seen = stampOf(tls)
  const timer = setInterval(() => {
    const now = stampOf(tls)
    if (now === seen) return
    seen = now
    serveChanged(ctx)
  }, LOOK_MILLIS)
  timer.unref()
  return () => clearInterval(timer)
}

/** Keep a certificate while its new file cannot be served, and renew the others nevertheless. */
function serveChanged(ctx: Context): void {
  const { held } = stateOf(ctx)
  const next = readAll(ctx).map((each, index) => {
    if (!(each instanceof OperatorError)) return each
    const reason = each.message
    ctx.log.warn('keeping the previous certificate: the new one cannot be served', { reason })
    return held[index] ?? null
  })
  if (next.some((each, index) => each?.chain !== held[index]?.chain || each?.key !== held[index]?.key)) serve(ctx, next)
}

type Files = Context['config']['tls']

/** Returns a text that changes with each file, also when a file is missing or this user may not look at it. */
const stampOf = ({ certificateFiles, keyFiles }: Files): string =>
  [...certificateFiles, ...keyFiles].map(stampOfFile).join(' ')

function stampOfFile(path: string): string {
  try {
    const { dev, ino, size, mtimeMs } = statSync(path)
    return `${dev}:${ino}:${size}:${mtimeMs}`
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? ''
  }
}

class Expired extends OperatorError {}

/** Returns each certificate, or the error that keeps it from being served, which is also noted. */
function readAll(ctx: Context): (Certificate | OperatorError)[] {
  const { certificateFiles } = ctx.config.tls
  const found = readFiles(ctx)
  stateOf(ctx).faults = found.flatMap((each, index) =>
    each instanceof OperatorError ? [{ path: certificateFiles[index]!, text: each.message }] : [],
  )
  return found
}

function readFiles({ config, clock }: Context): (Certificate | OperatorError)[] {
  const { certificateFiles, keyFiles } = config.tls
  return certificateFiles.map((path, index) => {
    try {
      const found = readWholeCertificate(read(path), read(keyFiles[index]!))
      if ('fault' in found)
        return new OperatorError(`${path} ${found.fault}: set tls.certificate_files and tls.key_files`)
      return found.notAfter <= clock.now() ? new Expired(`${path} has expired: renew the certificate`) : found
    } catch (error) {
      if (error instanceof OperatorError) return error
      throw error
    }
  })
}

function read(path: string): string {
  try {
    if (statSync(path).size <= MAX_FILE_BYTES) return readFileSync(path, 'utf8')
  } catch (error) {
    throw new OperatorError(`${path} cannot be read: ${(error as Error).message}`, { cause: error })
  }
  throw new OperatorError(`${path} is longer than ${MAX_FILE_BYTES} bytes`)
}
