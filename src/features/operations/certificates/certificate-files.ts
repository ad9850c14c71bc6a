/**
 * Certificates in files that another program renews. The server looks at the files every second, because notices of
 * changes do not reach through links, and links are what such programs replace.
 */
import { readFileSync, statSync } from 'node:fs'
import { OperatorError } from '../../../base/operator-error.ts'
import type { Context } from '../../../platform/context.ts'
import { certificatesOf, readWholeCertificate, type Certificate } from '../../../platform/network/certificate-shelf.ts'

const LOOK_MILLIS = 1000
/** Longer files are refused unread. */
const MAX_FILE_BYTES = 256 * 1024

/** Serve what is in the files. Throws `OperatorError` if one of them cannot be served. */
export const serveFiles = (ctx: Context): void => certificatesOf(ctx).serve(readAll(ctx))

/** Serve files that have changed. What cannot be served is logged once, and tried again after the next change. */
export function watchFiles(ctx: Context): () => void {
  const { log, config } = ctx
  let seen = stateOf(config.tls)
  const timer = setInterval(() => {
    const now = stateOf(config.tls)
    if (now === seen) return
    seen = now
    try {
      serveFiles(ctx)
    } catch (error) {
      if (!(error instanceof OperatorError)) throw error
      log.warn('keeping the previous certificates: the new ones cannot be served', { reason: error.message })
    }
  }, LOOK_MILLIS)
  timer.unref()
  return () => clearInterval(timer)
}

type Files = Context['config']['tls']

/** Changes with each file. One that is missing, or that this user may not look at, is part of the state. */
const stateOf = ({ certificateFiles, keyFiles }: Files): string =>
  [...certificateFiles, ...keyFiles].map(stateOfFile).join(' ')

function stateOfFile(path: string): string {
  try {
    const { dev, ino, size, mtimeMs } = statSync(path)
    return `${dev}:${ino}:${size}:${mtimeMs}`
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? ''
  }
}

function readAll({ config, clock }: Context): Certificate[] {
  const { certificateFiles, keyFiles } = config.tls
  return certificateFiles.map((path, index) => {
    const found = readWholeCertificate(read(path), read(keyFiles[index]!))
    if ('fault' in found) throw new OperatorError(`${path} ${found.fault}: set tls.certificate_files and tls.key_files`)
    if (found.notAfter <= clock.now()) throw new OperatorError(`${path} has expired: renew the certificate`)
    return found
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
