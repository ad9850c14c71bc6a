/** Reads the files in which a reference PDS keeps signing keys. */
import { readFileSync, statSync } from 'node:fs'
import { OperatorError } from '../../../base/operator-error.ts'
import { openSigningKey } from '../../../platform/secrets/signing-keys.ts'
import type { SigningKey } from '../../../protocol/keys.ts'
import { requireReadable } from './reference-access.ts'

const KEY_BYTES = 32

export interface FormerKey {
  key: SigningKey
  /** The key as it is stored there. */
  secret: Uint8Array
}

/** Throws `OperatorError` if the file is missing, or holds no key. */
export function formerKeyAt(path: string): FormerKey {
  requireReadable(path)
  if (!statSync(path, { throwIfNoEntry: false })?.isFile())
    throw new OperatorError(`${path} is missing: it is the key that signs the repository. Copy the folder again`)
  const secret = readFileSync(path)
  if (secret.length !== KEY_BYTES)
    throw new OperatorError(`${path} is damaged: a key has ${KEY_BYTES} bytes. Restore a backup of it`)
  try {
    return { key: openSigningKey('k256', secret), secret }
  } catch (error) {
    throw new OperatorError(`${path} is damaged: its number is not a valid key. Restore a backup of it`, {
      cause: error,
    })
  }
}
