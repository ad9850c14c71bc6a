/**
 * The admin token that a server without one makes for itself, in development and with `serve --domain`: a file in the
 * data directory, for commands of the same user on the same machine.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { writePrivately } from '../../base/private-file.ts'
import { Secret } from '../../base/secret.ts'
import { explained } from '../files/system-faults.ts'

const TOKEN_FILE = 'holdfast.admin-token'
const TOKEN_BYTES = 32

export const ownTokenPath = (dataDir: string): string => join(dataDir, TOKEN_FILE)

/**
 * Returns the token of a data directory; null if no server has made one. Throws `OperatorError` if it cannot be read.
 */
export function findOwnToken(dataDir: string): Secret<string> | null {
  const path = ownTokenPath(dataDir)
  try {
    const token = existsSync(path) ? readFileSync(path, 'utf8').trim() : ''
    return token === '' ? null : new Secret(token)
  } catch (error) {
    throw explained(error, { path, folder: dataDir })
  }
}

/** Returns the token of a data directory, which exists. Makes one if there is none. Throws as `findOwnToken` does. */
export function makeOwnToken(dataDir: string): Secret<string> {
  const known = findOwnToken(dataDir)
  if (known !== null) return known
  const token = randomBytes(TOKEN_BYTES).toString('hex')
  const path = ownTokenPath(dataDir)
  try {
    writePrivately(path, `${token}\n`, { replace: true })
  } catch (error) {
    throw explained(error, { path, folder: dataDir })
  }
  return new Secret(token)
}
