/**
 * The admin token of a development server, which needs no configuration: a file in the data directory, so that commands
 * of the same user on the same machine find it with `--dev`.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Secret } from '../../base/secret.ts'
import { explained } from '../files/system-faults.ts'

const TOKEN_FILE = 'holdfast.admin-token'
const TOKEN_BYTES = 32

const tokenPath = (dataDir: string): string => join(dataDir, TOKEN_FILE)

/**
 * Returns the token of a data directory; null if no development server has made one. Throws `OperatorError` if it
 * cannot be read.
 */
export function findDevelopmentToken(dataDir: string): Secret<string> | null {
  const path = tokenPath(dataDir)
  try {
    const token = existsSync(path) ? readFileSync(path, 'utf8').trim() : ''
    return token === '' ? null : new Secret(token)
  } catch (error) {
    throw explained(error, { path, folder: dataDir })
  }
}

/** Returns the token of a data directory, which exists. Makes one if there is none. */
export function makeDevelopmentToken(dataDir: string): Secret<string> {
  const known = findDevelopmentToken(dataDir)
  if (known !== null) return known
  const token = randomBytes(TOKEN_BYTES).toString('hex')
  writeFileSync(tokenPath(dataDir), `${token}\n`, { mode: 0o600 })
  return new Secret(token)
}
