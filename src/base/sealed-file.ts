/**
 * A file that holds secrets: JSON, encrypted in the age format (age-encryption.org/v1), so that the `age` tool opens it
 * too. Readable by its owner alone, and replaced as a whole.
 */
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { Decrypter, Encrypter, generateX25519Identity, identityToRecipient } from 'age-encryption'
import { OperatorError } from './operator-error.ts'
import { writePrivately } from './private-file.ts'

export const MIN_PASSPHRASE_CHARS = 8
/** The base-2 logarithm of the cost of deriving a key from the passphrase: 256 MiB of memory and about a second. */
export const DEFAULT_WORK_FACTOR = 18
export const MIN_WORK_FACTOR = 10
/** The library neither seals nor opens at a higher cost. */
export const MAX_WORK_FACTOR = 20

/** What opens and closes a file: a passphrase, or a key (`AGE-SECRET-KEY-1…`). */
export type Seal = { passphrase: string; workFactor: number } | { key: string }

export const newSealKey = (): Promise<string> => generateX25519Identity()

/** Throws OperatorError unless the content of a file is a key. It is not repeated. */
export async function requireSealKey(key: string, path: string): Promise<void> {
  try {
    await identityToRecipient(key)
  } catch {
    throw new OperatorError(`${path} holds no key (AGE-SECRET-KEY-1…)`)
  }
}

/** Where this program keeps a file of its user. Source: XDG Base Directory Specification. */
export const userDataPath = (env: Readonly<Record<string, string | undefined>>, name: string): string =>
  join(dataHome(env['XDG_DATA_HOME']) ?? join(env['HOME'] || homedir(), '.local/share'), 'holdfast', name)

/** A relative path is ignored, as the specification wants it. */
const dataHome = (path: string | undefined): string | null => (path !== undefined && isAbsolute(path) ? path : null)

/** Throws OperatorError if the passphrase is too short. */
export function requireLength(passphrase: string): void {
  if (passphrase.length < MIN_PASSPHRASE_CHARS)
    throw new OperatorError(`the passphrase needs at least ${MIN_PASSPHRASE_CHARS} characters`)
}

export async function sealText(text: string, seal: Seal): Promise<Uint8Array> {
  const encrypter = new Encrypter()
  if ('key' in seal) encrypter.addRecipient(await identityToRecipient(seal.key))
  else {
    encrypter.setScryptWorkFactor(seal.workFactor)
    encrypter.setPassphrase(seal.passphrase)
  }
  return encrypter.encrypt(text)
}

/** Throws OperatorError unless the seal opens it. */
async function unsealText(sealed: Uint8Array, seal: Seal, what: string): Promise<string> {
  try {
    const decrypter = new Decrypter()
    if ('key' in seal) decrypter.addIdentity(seal.key)
    else decrypter.addPassphrase(seal.passphrase)
    return await decrypter.decrypt(sealed, 'text')
  } catch (error) {
    throw new OperatorError(`the ${'key' in seal ? 'key' : 'passphrase'} does not open this ${what}`, { cause: error })
  }
}

/** What a kind of file is called, and the format of it that this version reads. */
export interface FileKind {
  name: string
  format: number
}

export class SealedFile<Contents extends { format: number }> {
  readonly path: string
  readonly #kind: FileKind
  readonly #seal: Seal
  /** What the file held when it was read or written last; null if there was none. */
  #sealed: Uint8Array | null = null

  /** A file that is yet to be written, or read. */
  constructor(path: string, kind: FileKind, seal: Seal) {
    this.path = path
    this.#kind = kind
    this.#seal = seal
  }

  static exists = (path: string): boolean => readOrNull(path) !== null

  /** Throws OperatorError if there is no file, if the seal does not open it, or if a later version wrote it. */
  async read(): Promise<Contents> {
    const { name, format } = this.#kind
    const sealed = readOrNull(this.path)
    if (sealed === null) throw new OperatorError(`there is no ${name} at ${this.path}`)
    const contents = JSON.parse(await unsealText(sealed, this.#seal, name)) as Contents
    if (contents.format !== format)
      throw new OperatorError(`${this.path} has format ${contents.format}; this version supports format ${format}`)
    this.#sealed = sealed
    return contents
  }

  /** Whether the file is as it was when it was read or written last. */
  isUnchanged(): boolean {
    const current = readOrNull(this.path)
    return current === null || this.#sealed === null
      ? current === this.#sealed
      : Buffer.from(current).equals(this.#sealed)
  }

  /** Whether there was a file when it was read or written last, and there is none now. */
  isGone = (): boolean => this.#sealed !== null && readOrNull(this.path) === null

  /** Discard the known content: the next write creates a new file. */
  forget(): void {
    this.#sealed = null
  }

  /** Durable when it returns. Throws OperatorError if another program has written the file since it was read. */
  async write(contents: Contents): Promise<void> {
    const sealed = await sealText(JSON.stringify(contents, null, 2), this.#seal)
    if (!this.isUnchanged()) throw new OperatorError(`another command has changed ${this.path}; run this one again`)
    writePrivately(this.path, sealed, { replace: this.#sealed !== null })
    this.#sealed = sealed
  }
}

/** Whether a file opens with a passphrase. False if there is none, or if it needs a key. */
export const needsPassphrase = (path: string): boolean =>
  Buffer.from(readOrNull(path) ?? [])
    .toString('latin1', 0, 64)
    .startsWith('age-encryption.org/v1\n-> scrypt ')

function readOrNull(path: string): Uint8Array | null {
  try {
    return readFileSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
