/**
 * Encryption of backups in the age format (age-encryption.org/v1), which other tools can decrypt too.
 *
 * Objects are encrypted to the archive's public key. Only its private key is encrypted with the passphrase, because key
 * derivation from a passphrase is slow on purpose. Once the archive exists, making backups needs no passphrase.
 */
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { OperatorError } from '../../../base/operator-error.ts'
import type { Secret } from '../../../base/secret.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import { bytesOf, DamagedObject, jsonObject, readWhole, type Archive } from './archive.ts'
import { identityOfPassphrase } from './passphrase-identity.ts'

const ARCHIVE_FILE = 'archive.json'
const IDENTITY_FILE = 'identity.age'
const FORMAT = 1
/** `founding-<milliseconds>-<id>`: marks that a backup is founding the archive. Deleted at the end. */
const FOUNDING = 'founding-'
/** Founding a destination takes one small write, so an older mark was left by a backup that was killed. */
const ABANDONED_FOUNDING_MILLIS = 10 * 60_000
/** Longest random pause before a backup that has met another one tries again. */
const MAX_FOUNDING_PAUSE_MILLIS = 1000
const MAX_FOUNDING_TRIES = 30

/** Loaded for encrypted backups only. */
const library = () => import('age-encryption')

interface ArchiveFile {
  format: number
  /** The age recipient (public key) of the archive; null if it is not encrypted. */
  recipient: string | null
  /**
   * The private key, encrypted with the passphrase, in base64. It is in this file so that a single write founds an
   * archive. Earlier versions wrote it to `identity.age` only, and look for it there.
   */
  identity?: string
}

/** Settings of a new archive. */
export interface Passphrase {
  /** Null for an archive without encryption. */
  passphrase: Secret<string> | null
  /** The base-2 logarithm of the cost of deriving a key from it. */
  workFactor: number
  /**
   * Try the passphrase on the archive, at the work factor with which the archive was founded. Skipped if `known` is the
   * archive's public key: this passphrase has opened it before.
   */
  trial?: { known: string | null }
}

export interface Seal {
  /** The suffix of the names of encrypted objects. */
  suffix: '' | '.age'
  close(content: AsyncIterable<Uint8Array>): Promise<AsyncIterable<Uint8Array>>
}

export interface Unseal {
  suffix: '' | '.age'
  /** Yields the content of the object that has this name. Throws `DamagedObject`. */
  open(name: string, content: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>
}

const plain = {
  suffix: '' as const,
  close: async (content: AsyncIterable<Uint8Array>) => content,
  open: (_: string, content: AsyncIterable<Uint8Array>) => content,
}

/**
 * Returns the encryption for writing. The first use of an archive decides whether it is encrypted.
 *
 * Throws OperatorError if a passphrase is given for an unencrypted archive, if the passphrase is tried and does not
 * open the archive, or if another backup does not finish founding it.
 */
export async function sealOf(archive: Archive, given: Passphrase, now: Date): Promise<Seal> {
  const file = (await archiveFile(archive)) ?? (await found(archive, given, now.getTime()))
  const { recipient, identity } = file
  if (recipient === null && given.passphrase !== null) throw isPlain()
  if (recipient === null) return plain
  const { passphrase, trial } = given
  if (trial !== undefined && passphrase !== null && trial.known !== recipient) {
    await requireKeyOf(archive, file, passphrase)
    trial.known = recipient
  }
  if (identity !== undefined) await haveIdentityFile(archive, Buffer.from(identity, 'base64'))
  return {
    suffix: '.age',
    async close(content) {
      const { Encrypter } = await library()
      const encrypter = new Encrypter()
      encrypter.addRecipient(recipient)
      return encrypter.encrypt(streamOf(content))
    },
  }
}

/**
 * Returns the decryption for reading. Throws OperatorError if there is no archive, or no passphrase for an encrypted
 * one.
 */
export async function unsealOf(archive: Archive, passphrase: Secret<string> | null): Promise<Unseal> {
  const file = await archiveFile(archive)
  if (file === null) throw new OperatorError('there are no backups at this destination')
  if (file.recipient === null) return plain
  if (passphrase === null)
    throw new OperatorError('these backups are encrypted; give the passphrase in SERVICE_BACKUP_PASSPHRASE')
  const identity = await identityOf(archive, file, passphrase)
  return {
    suffix: '.age',
    open: (name, content) => decrypted(name, content, identity),
  }
}

/** Throws OperatorError if there is an archive that this passphrase does not open. */
export async function requirePassphrase(archive: Archive, passphrase: Secret<string>): Promise<void> {
  const file = await archiveFile(archive)
  if (file === null) return
  if (file.recipient === null) throw isPlain()
  await requireKeyOf(archive, file, passphrase)
}

/**
 * Throws OperatorError unless the passphrase opens the archive's private key, and backups are encrypted to that key.
 * Otherwise the operator could not restore them: an attacker who can write to the archive can replace the public key,
 * and read every later backup. Derives a key, as a restore does.
 */
async function requireKeyOf(archive: Archive, file: ArchiveFile, passphrase: Secret<string>): Promise<void> {
  const { identityToRecipient } = await library()
  if ((await identityToRecipient(await identityOf(archive, file, passphrase))) !== file.recipient)
    throw new OperatorError(
      `${ARCHIVE_FILE} names another key for backups than the one that the passphrase decrypts: find out who changed it, and choose an empty destination`,
    )
}

/** Returns the private key of the archive. */
async function identityOf(archive: Archive, { identity }: ArchiveFile, passphrase: Secret<string>): Promise<string> {
  const sealed = identity === undefined ? await readWhole(archive, IDENTITY_FILE) : Buffer.from(identity, 'base64')
  return openIdentity(sealed, passphrase.reveal())
}

const isPlain = () =>
  new OperatorError('this destination holds unencrypted backups; choose another one for encrypted backups')

async function* decrypted(
  name: string,
  content: AsyncIterable<Uint8Array>,
  identity: string,
): AsyncGenerator<Uint8Array> {
  const { Decrypter } = await library()
  const decrypter = new Decrypter()
  decrypter.addIdentity(identity)
  let readFault: { error: unknown } | null = null
  const read = async function* () {
    try {
      yield* content
    } catch (error) {
      readFault = { error }
      throw error
    }
  }
  try {
    yield* await decrypter.decrypt(streamOf(read()))
  } catch (error) {
    // If reading failed, the object need not be damaged: throw the error of the read.
    throw readFault === null ? new DamagedObject(name, { cause: error }) : (readFault as { error: unknown }).error
  }
}

/** Found the archive. If another backup founds it at the same time, return what that backup wrote. */
async function found(archive: Archive, { passphrase, workFactor }: Passphrase, now: Millis): Promise<ArchiveFile> {
  const key = passphrase === null ? { recipient: null } : await newKey(passphrase.reveal(), workFactor)
  const file: ArchiveFile = { format: FORMAT, ...key }
  for (let tries = 0; tries < MAX_FOUNDING_TRIES; tries++) {
    const mark = `${FOUNDING}${now}-${crypto.randomUUID()}`
    // Each backup writes its mark before it looks for others, so at least one of two sees the other.
    await archive.write(mark, bytesOf(''))
    try {
      if (await isOnlyMark(archive, mark, now)) {
        // Another backup may have founded the archive, and deleted its mark, since this one looked.
        const existing = await archiveFile(archive)
        if (existing !== null) return existing
        // This process may have been paused until another one took its mark for abandoned, so the first write founds.
        await archive.writeNew(ARCHIVE_FILE, Buffer.from(JSON.stringify(file)))
        const founded = await archiveFile(archive)
        if (founded !== null) return founded
      }
    } finally {
      await archive.delete(mark)
    }
    await sleep(Math.random() * MAX_FOUNDING_PAUSE_MILLIS)
    const existing = await archiveFile(archive)
    if (existing !== null) return existing
  }
  throw new OperatorError('another backup is preparing this destination; try again in ten minutes')
}

/** Whether no other backup is founding the archive. Deletes the marks that killed backups left. */
async function isOnlyMark(archive: Archive, mark: string, now: Millis): Promise<boolean> {
  let isOnly = true
  for (const name of await Array.fromAsync(archive.names(FOUNDING))) {
    if (name === mark) continue
    const since = Number(name.slice(FOUNDING.length).split('-')[0])
    if (Math.abs(now - since) > ABANDONED_FOUNDING_MILLIS) await archive.delete(name)
    else isOnly = false
  }
  return isOnly
}

/** Store the private key in a file of its own too, which the age tool and earlier versions read. */
async function haveIdentityFile(archive: Archive, sealed: Uint8Array): Promise<void> {
  const present = await readWhole(archive, IDENTITY_FILE)
  if (present === null || !Buffer.from(present).equals(sealed)) await archive.write(IDENTITY_FILE, bytesOf(sealed))
}

async function newKey(passphrase: string, workFactor: number): Promise<{ recipient: string; identity: string }> {
  const { Encrypter, generateX25519Identity, identityToRecipient } = await library()
  const identity = await generateX25519Identity()
  const encrypter = new Encrypter()
  encrypter.setScryptWorkFactor(workFactor)
  encrypter.setPassphrase(passphrase)
  const sealed = await encrypter.encrypt(identity)
  return { recipient: await identityToRecipient(identity), identity: Buffer.from(sealed).toString('base64') }
}

async function archiveFile(archive: Archive): Promise<ArchiveFile | null> {
  const bytes = await readWhole(archive, ARCHIVE_FILE)
  if (bytes === null) return null
  const file = jsonObject<ArchiveFile>(ARCHIVE_FILE, bytes, ({ format }) => typeof format === 'number')
  if (file.format !== FORMAT)
    throw new OperatorError(`this archive has format ${file.format}; this version supports format ${FORMAT}`)
  return file
}

async function openIdentity(sealed: Uint8Array | null, passphrase: string): Promise<string> {
  if (sealed === null) throw new OperatorError(`the archive lacks ${IDENTITY_FILE}, which holds the key of its backups`)
  const { Decrypter } = await library()
  const decrypter = new Decrypter()
  decrypter.addIdentity(identityOfPassphrase(passphrase))
  try {
    return await decrypter.decrypt(sealed, 'text')
  } catch (error) {
    throw new OperatorError('the passphrase does not decrypt these backups', { cause: error })
  }
}

const streamOf = (content: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> =>
  Readable.toWeb(Readable.from(content)) as ReadableStream<Uint8Array>
