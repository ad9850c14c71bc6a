/**
 * Secrets at rest: AES-256-GCM under the master key.
 *
 * Stored form: padded base64 of `nonce(12) || ciphertext || tag(16)`, no associated data, a fresh nonce per write.
 * Without a configured master key one is made at the first start and kept beside the database, readable by its
 * owner alone: the secrets are then as safe as the folder.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sql, type Database, type Tx } from './database.ts'
import { OperatorError } from './operator-error.ts'

const NONCE_BYTES = 12
const TAG_BYTES = 16
const KEY_FILE = 'master.key'

export class SecretDoesNotOpen extends OperatorError {}

export class Vault {
  readonly #key: Uint8Array

  /** `key` is 32 bytes. */
  constructor(key: Uint8Array) {
    if (key.byteLength !== 32) throw new RangeError('a master key has 32 bytes')
    this.#key = key
  }

  wrap(secret: Uint8Array): string {
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce)
    return Buffer.concat([nonce, cipher.update(secret), cipher.final(), cipher.getAuthTag()]).toString('base64')
  }

  /** Throws `SecretDoesNotOpen`, whatever the fault. */
  unwrap(stored: string): Uint8Array {
    const bytes = Buffer.from(stored, 'base64')
    if (bytes.byteLength < NONCE_BYTES + TAG_BYTES || bytes.toString('base64') !== stored) throw new SecretDoesNotOpen('malformed secret')
    const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, NONCE_BYTES))
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
    try {
      return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
    } catch (error) {
      throw new SecretDoesNotOpen('the master key does not open this secret', { cause: error })
    }
  }
}

/** Where the key is kept that no configuration names. */
export const masterKeyFile = (dataDir: string): string => join(dataDir, KEY_FILE)

/** The key beside the database, made when there is none. */
export function keyFileBeside(dataDir: string): Uint8Array {
  const path = masterKeyFile(dataDir)
  if (!existsSync(path)) {
    writeFileSync(path, `${randomBytes(32).toString('hex')}\n`, { mode: 0o600, flag: 'wx' })
    chmodSync(path, 0o600)
  }
  return Buffer.from(readFileSync(path, 'utf8').trim(), 'hex')
}

/** A secret of the server itself, made at first use. `name` is its row. */
export async function serverSecret(db: Database, vault: Vault, name: string, make: () => Uint8Array = () => randomBytes(32)): Promise<Uint8Array> {
  const find = (reader: Database | Tx) => reader.get<{ wrapped: string }>(sql`SELECT wrapped FROM server_secret WHERE name = ${name}`)
  const row =
    (await find(db)) ??
    (await db.transaction(async (tx) => {
      await tx.run(sql`INSERT INTO server_secret (name, wrapped) VALUES (${name}, ${vault.wrap(make())}) ON CONFLICT (name) DO NOTHING`)
      return find(tx)
    }))
  return vault.unwrap(row!.wrapped)
}
