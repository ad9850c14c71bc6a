/** The folder of a reference PDS: finds everything by the reference's own rules and its environment. */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { isAbsolute, join, relative, resolve } from 'node:path'
import { OperatorError } from '../../../base/operator-error.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import { openReferenceDatabase, type ReferenceDatabase } from './reference-database.ts'
import { requireOpen, requireReadable } from './reference-access.ts'
import { parseReferenceEnv, variable, type ReferenceEnv } from './reference-env.ts'
import { formerKeyAt } from './reference-key.ts'
import { refuseUsed, stampsOf } from './reference-use.ts'

/** The name that the installer of the reference gives to its environment. */
const ENV_FILE = 'pds.env'
/** Folders of blobs, as the installer and as the documentation name them. */
const blobFolders = ['blocks', 'blobs']

export interface BlobPlaces {
  stored: string
  temporary: string
  quarantine: string
}

export interface ReferenceFolder {
  path: string
  env: ReferenceEnv
  /** The file that `env` comes from; null if there is none. */
  envPath: string | null
  accounts: ReferenceDatabase
  sequencer: ReferenceDatabase
  /** Where blobs are on the disk; null if they are in a bucket. */
  blobs: BlobPlaces | null
  actors: string
  /** Throws `OperatorError` if the accounts or the event log have changed since the folder was opened. */
  requireUnchanged(): void
  close(): void
}

/** Opens the folder. Throws `OperatorError` if it is not one, is incomplete, in use, or of another version. */
export function openReferenceFolder(path: string, givenEnv: string | null): ReferenceFolder {
  requireOpen(path)
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory())
    throw new OperatorError(`there is no folder at ${path}`)
  const envPath = envPathOf(path, givenEnv)
  if (envPath !== null) requireReadable(envPath)
  const env = envPath === null ? {} : parseReferenceEnv(readFileSync(envPath, 'utf8'))
  const place = (name: string, otherwise: string) => placeOf(path, env, name) ?? join(path, otherwise)
  const accountsPath = place('PDS_ACCOUNT_DB_LOCATION', 'account.sqlite')
  const sequencerPath = place('PDS_SEQUENCER_DB_LOCATION', 'sequencer.sqlite')
  if (!existsSync(accountsPath))
    throw new OperatorError(`${path} is not the data folder of a reference PDS: it has no account.sqlite`)
  const databases = [accountsPath, sequencerPath]
  refuseUsed(databases)
  const stamps = stampsOf(databases)
  const accounts = openReferenceDatabase(accountsPath, 'account')
  try {
    return {
      path,
      env,
      envPath,
      accounts,
      sequencer: openReferenceDatabase(sequencerPath, 'sequencer'),
      blobs: variable(env, 'PDS_BLOBSTORE_S3_BUCKET') === null ? blobPlaces(path, env) : null,
      actors: place('PDS_ACTOR_STORE_DIRECTORY', 'actors'),
      requireUnchanged() {
        refuseUsed(databases)
        if (stampsOf(databases) !== stamps)
          throw new OperatorError(`${path} has changed in the meantime: stop the old server, and run the command again`)
      },
      close() {
        accounts.close()
        this.sequencer.close()
      },
    }
  } catch (error) {
    accounts.close()
    throw error
  }
}

function envPathOf(path: string, given: string | null): string | null {
  if (given === null) return existsSync(join(path, ENV_FILE)) ? join(path, ENV_FILE) : null
  if (!existsSync(given)) throw new OperatorError(`there is no file at ${given}`)
  return given
}

/**
 * Returns where a variable points. The folder may have another path here than it had for the server, as in a container.
 */
function placeOf(path: string, env: ReferenceEnv, name: string): string | null {
  const stated = variable(env, name)
  if (stated === null) return null
  const home = variable(env, 'PDS_DATA_DIRECTORY')
  const inside = home === null ? null : relative(resolve(home), resolve(stated))
  if (inside !== null && !inside.startsWith('..') && !isAbsolute(inside)) return join(path, inside)
  return isAbsolute(stated) ? stated : join(path, stated)
}

function blobPlaces(path: string, env: ReferenceEnv): BlobPlaces {
  const stored =
    placeOf(path, env, 'PDS_BLOBSTORE_DISK_LOCATION') ??
    blobFolders.map((name) => join(path, name)).find((folder) => existsSync(folder)) ??
    join(path, blobFolders[0]!)
  const temporary = placeOf(path, env, 'PDS_BLOBSTORE_DISK_TMP_LOCATION') ?? join(stored, 'tempt')
  return { stored, temporary, quarantine: join(stored, 'quarantine') }
}

/** The folder of an account: its database, and the key that signs its repository. */
export function actorFolder({ actors }: Pick<ReferenceFolder, 'actors'>, did: Did): string {
  const shard = createHash('sha256').update(did).digest('hex').slice(0, 2)
  return join(actors, shard, did)
}

/**
 * Keys that the old server had reserved for future accounts, by the DID or the did:key under which they are stored.
 * Leaves out files without a key, and reports them to `onFault`.
 */
export function reservedKeysOf(
  { actors }: Pick<ReferenceFolder, 'actors'>,
  onFault: (fault: string) => void,
): { name: string; secret: Uint8Array }[] {
  const folder = join(actors, 'reserved_keys')
  requireOpen(folder)
  if (!existsSync(folder)) return []
  return readdirSync(folder)
    .filter((name) => name.startsWith('did:'))
    .flatMap((name) => {
      try {
        return [{ name, secret: formerKeyAt(join(folder, name)).secret }]
      } catch (error) {
        if (!(error instanceof OperatorError)) throw error
        onFault(error.message)
        return []
      }
    })
}
