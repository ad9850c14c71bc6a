/**
 * Secrets at rest: AES-256-GCM under the master key.
 *
 * Stored form: padded base64 of `nonce(12) || ciphertext || tag(16)`, no associated data, a fresh nonce per write. If
 * no master key is configured, one is created at the first start and stored in the data directory, readable only by its
 * owner. The secrets are then as safe as that directory.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Config } from '../configuration/config.ts'
import { sql, sqlList, type Database, type Reader, type Tx } from '../database/database.ts'
import { type Explained, inWords, OperatorError } from '../../base/operator-error.ts'
import { writePrivately } from '../../base/private-file.ts'

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

  /** Returns the secret. Throws `SecretDoesNotOpen` if the text is malformed or the key is wrong. */
  unwrap(stored: string): Uint8Array {
    const bytes = Buffer.from(stored, 'base64')
    if (bytes.byteLength < NONCE_BYTES + TAG_BYTES || bytes.toString('base64') !== stored)
      throw new SecretDoesNotOpen('malformed secret')
    const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, NONCE_BYTES))
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
    try {
      return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
    } catch (error) {
      throw new SecretDoesNotOpen('the master key does not open this secret', { cause: error })
    }
  }
}

/** Returns the path of the key file, which is used if no key is configured. */
export const masterKeyFile = (dataDir: string): string => join(dataDir, KEY_FILE)

/**
 * Returns the key in the key file, which is created if it is missing. Throws `OperatorError` if the file holds no key.
 */
export function keyFileBeside(dataDir: string): Uint8Array {
  const path = masterKeyFile(dataDir)
  // Written as a whole or not at all, and before the key wraps anything: secrets under a lost key would keep the server
  // from ever starting.
  if (!existsSync(path)) writeKeyFile(path, `${randomBytes(32).toString('hex')}\n`)
  const key = readKeyFile(path)
  if (key === null) throw inWords(notAKey(path))
  return key
}

/** What a process that was killed while it wrote the file has left beside it: the whole key, or a part. */
const isLeft = (name: string): boolean => name.startsWith(`${KEY_FILE}.`) && /\.(new|part)$/.test(name)

/** Write the key file, whole or not at all, and delete what killed processes have left of it. */
export function writeKeyFile(path: string, key: Uint8Array | string): void {
  const folder = dirname(path)
  if (existsSync(folder))
    for (const name of readdirSync(folder)) if (isLeft(name)) rmSync(join(folder, name), { force: true })
  writePrivately(path, key, { replace: true })
}

function readKeyFile(path: string): Uint8Array | null {
  const text = readFileSync(path, 'utf8').trim()
  return /^[\da-f]{64}$/i.test(text) ? Buffer.from(text, 'hex') : null
}

const notAKey = (path: string): Explained => ({
  what: `${path} is not a master key (64 hexadecimal characters)`,
  remedy: 'restore it from a backup',
})

/** The row that shows whether a key is the one that wraps the secrets. */
const CHECK_NAME = 'master-key-check'

/** Secrets that the master key wraps, the check row first. */
export const secretsQuery = sql`SELECT wrapped FROM server_secret ORDER BY name <> ${CHECK_NAME}`

type KeyPlace = Pick<Config, 'signingKeyMasterKey' | 'dataDir'>

/** Returns why the master key cannot open the secrets of a database; null if it can, or if there are no secrets. */
export function masterKeyFault(
  { signingKeyMasterKey, dataDir }: KeyPlace,
  secrets: readonly string[],
): Explained | null {
  const path = masterKeyFile(dataDir)
  const [secret] = secrets
  if (secret === undefined) return null
  if (signingKeyMasterKey === null && !existsSync(path))
    return {
      what: 'the database holds secrets, but there is no master key',
      remedy: `set SERVICE_SIGNING_KEY_MASTER_KEY, or restore ${path}`,
    }
  const key = signingKeyMasterKey?.reveal() ?? readKeyFile(path)
  if (key === null) return notAKey(path)
  try {
    new Vault(key).unwrap(secret)
    return null
  } catch (error) {
    if (!(error instanceof SecretDoesNotOpen)) throw error
    const other = signingKeyMasterKey === null ? 'the key in master.key' : 'the configured master key'
    return {
      what: `${other} does not decrypt the secrets of this database`,
      remedy: 'configure the key that wraps them, or change that key with "holdfast rewrap"',
    }
  }
}

/**
 * Returns the vault of a data directory, under the configured key or the one in the key file. Throws `OperatorError` if
 * the key does not open the stored secrets, or if there are stored secrets but no key.
 */
export async function openVault(db: Database, place: KeyPlace): Promise<Vault> {
  const secrets = await db.all<{ wrapped: string }>(secretsQuery)
  const fault = masterKeyFault(
    place,
    secrets.map(({ wrapped }) => wrapped),
  )
  if (fault !== null) throw inWords(fault)
  const vault = new Vault(place.signingKeyMasterKey?.reveal() ?? keyFileBeside(place.dataDir))
  await serverSecret(db, vault, CHECK_NAME)
  return vault
}

/** Returns the secrets with these names, by name; those that are not stored are left out. */
export async function findSecrets(
  db: Reader,
  vault: Vault,
  names: readonly string[],
): Promise<Map<string, Uint8Array>> {
  const rows = await db.all<{ name: string; wrapped: string }>(
    sql`SELECT name, wrapped FROM server_secret WHERE name IN ${sqlList(names)}`,
  )
  return new Map(rows.map(({ name, wrapped }) => [name, vault.unwrap(wrapped)]))
}

/** Store a secret that comes from elsewhere, in place of one with this name. */
export const putSecret = (tx: Tx, vault: Vault, name: string, secret: Uint8Array): Promise<number> =>
  tx.run(sql`
    INSERT INTO server_secret (name, wrapped) VALUES (${name}, ${vault.wrap(secret)})
    ON CONFLICT (name) DO UPDATE SET wrapped = excluded.wrapped`)

/** Returns a secret of the server itself, created on first use. `name` is its row. */
export async function serverSecret(
  db: Database,
  vault: Vault,
  name: string,
  make: () => Uint8Array = () => randomBytes(32),
): Promise<Uint8Array> {
  const find = (reader: Reader) =>
    reader.get<{ wrapped: string }>(sql`SELECT wrapped FROM server_secret WHERE name = ${name}`)
  const row =
    (await find(db)) ??
    (await db.transaction(async (tx) => {
      await tx.run(
        sql`INSERT INTO server_secret (name, wrapped) VALUES (${name}, ${vault.wrap(make())}) ON CONFLICT (name) DO NOTHING`,
      )
      return find(tx)
    }))
  return vault.unwrap(row!.wrapped)
}
