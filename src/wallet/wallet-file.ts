/**
 * The file of a wallet: JSON, encrypted with a passphrase in the age format (age-encryption.org/v1), so that the `age`
 * tool opens it too. Readable by its owner alone, and replaced as a whole.
 */
import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { Decrypter, Encrypter } from 'age-encryption'
import { OperatorError } from '../base/operator-error.ts'
import { WALLET_FORMAT, type WalletContents } from './wallet-contents.ts'

export const MIN_PASSPHRASE_CHARS = 8
/** The base-2 logarithm of the cost of deriving a key from the passphrase: 256 MiB of memory and about a second. */
export const DEFAULT_WORK_FACTOR = 18
export const MIN_WORK_FACTOR = 10
export const MAX_WORK_FACTOR = 22

/** Where the wallet is kept unless a path is given. Source: XDG Base Directory Specification. */
export const defaultWalletPath = (env: Readonly<Record<string, string | undefined>>): string =>
  join(dataHome(env['XDG_DATA_HOME']) ?? join(env['HOME'] || homedir(), '.local/share'), 'holdfast', 'wallet.age')

/** A relative path is ignored, as the specification wants it. */
const dataHome = (path: string | undefined): string | null => (path !== undefined && isAbsolute(path) ? path : null)

export async function sealText(text: string, passphrase: string, workFactor: number): Promise<Uint8Array> {
  const encrypter = new Encrypter()
  encrypter.setScryptWorkFactor(workFactor)
  encrypter.setPassphrase(passphrase)
  return encrypter.encrypt(text)
}

/** Throws OperatorError unless the passphrase opens it. */
async function unsealText(sealed: Uint8Array, passphrase: string): Promise<string> {
  const decrypter = new Decrypter()
  decrypter.addPassphrase(passphrase)
  try {
    return await decrypter.decrypt(sealed, 'text')
  } catch (error) {
    throw new OperatorError('the passphrase does not open this wallet', { cause: error })
  }
}

export class WalletFile {
  readonly path: string
  readonly #passphrase: string
  readonly #workFactor: number
  /** What the file held when it was read or written last; null if there was none. */
  #sealed: Uint8Array | null

  private constructor(path: string, passphrase: string, workFactor: number, sealed: Uint8Array | null) {
    this.path = path
    this.#passphrase = passphrase
    this.#workFactor = workFactor
    this.#sealed = sealed
  }

  static exists = (path: string): boolean => readOrNull(path) !== null

  /** A file that does not exist yet. Throws OperatorError if the passphrase is too short. */
  static fresh(path: string, passphrase: string, workFactor: number): WalletFile {
    if (passphrase.length < MIN_PASSPHRASE_CHARS)
      throw new OperatorError(`the passphrase needs at least ${MIN_PASSPHRASE_CHARS} characters`)
    return new WalletFile(path, passphrase, workFactor, null)
  }

  /** Throws OperatorError if there is no file, if the passphrase does not open it, or if a later version wrote it. */
  static async open(path: string, passphrase: string, workFactor: number): Promise<{ file: WalletFile; contents: WalletContents }> {
    const sealed = readOrNull(path)
    if (sealed === null) throw new OperatorError(`there is no wallet at ${path}`)
    const contents = JSON.parse(await unsealText(sealed, passphrase)) as WalletContents
    if (contents.format !== WALLET_FORMAT)
      throw new OperatorError(`${path} has format ${contents.format}; this version supports format ${WALLET_FORMAT}`)
    return { file: new WalletFile(path, passphrase, workFactor, sealed), contents }
  }

  /** Durable when it returns. Throws OperatorError if another program has written the file since it was read. */
  async write(contents: WalletContents): Promise<void> {
    const sealed = await sealText(JSON.stringify(contents, null, 2), this.#passphrase, this.#workFactor)
    mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 })
    const current = readOrNull(this.path)
    if (current === null ? this.#sealed !== null : this.#sealed === null || !Buffer.from(current).equals(this.#sealed))
      throw new OperatorError(`another command has changed ${this.path}; run this one again`)
    writePrivately(this.path, sealed, { replace: current !== null })
    this.#sealed = sealed
  }
}

function readOrNull(path: string): Uint8Array | null {
  try {
    return readFileSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/**
 * Writes a file that only its owner may read, and flushes it and its folder. Throws OperatorError if it exists, unless
 * it may be replaced.
 */
export function writePrivately(path: string, content: Uint8Array | string, { replace }: { replace: boolean }): void {
  if (!replace && existsSync(path)) throw new OperatorError(`${path} exists already`)
  const temporary = `${path}.${randomBytes(4).toString('hex')}.new`
  try {
    writeFileSync(temporary, content, { mode: 0o600, flag: 'wx', flush: true })
    if (replace) renameSync(temporary, path)
    else linkSync(temporary, path)
  } finally {
    rmSync(temporary, { force: true })
  }
  const folder = openSync(dirname(path), 'r')
  fsyncSync(folder)
  closeSync(folder)
}
