/**
 * Translates errors of a database into sentences for the operator: which database, what is wrong, and how to fix it.
 */
import { dirname } from 'node:path'
import { type Explained, inWordsIfAny, OperatorError } from '../../base/operator-error.ts'
import { explain } from '../files/system-faults.ts'
import { DatabaseUnavailable } from './database.ts'
import { isLost } from './postgres-faults.ts'
import { createStatement, isPostgresUrl, withoutPassword } from './database-url.ts'
import { sqlitePath } from './sqlite.ts'

interface PostgresPlace {
  url: string
  host: string
  user: string
  name: string
}

/** By SQLSTATE. The first that matches decides. */
const postgresFaults: readonly [RegExp, (place: PostgresPlace, message: string) => Explained][] = [
  [
    /^3D000$/,
    ({ url, name }) => ({
      what: `the database ${url} does not exist`,
      remedy: `create it with ${createStatement(name)}`,
    }),
  ],
  [
    /^28...$/,
    ({ url, user }, message) => ({
      what: `the database ${url} refuses the user "${user}" (${message})`,
      remedy: 'check the user and the password in its address, and what pg_hba.conf allows',
    }),
  ],
  [
    /^42501$/,
    ({ url, user, name }, message) => ({
      what: `the user "${user}" lacks rights in the database ${url} (${message})`,
      remedy: `make it the owner, with ALTER DATABASE ${name} OWNER TO ${user}, and of its tables`,
    }),
  ],
]

/** A table or column that the schema has and the database lacks, in the words of either database. */
const lacking =
  /^(?:column "[^"]+" of )?relation "([^"]+)" does not exist|no such (?:table|column): (\S+)|^column "?([^" ]+)"? does not exist/

/** Returns null if the error has nothing to do with the database, or says enough. */
export function explainDatabase(error: unknown, databaseUrl: string): Explained | null {
  const cause = innermost(error)
  const message = cause instanceof Error ? cause.message : String(cause)
  const url = withoutPassword(databaseUrl)
  const [, ...names] = lacking.exec(message) ?? []
  const lacks = names.find((name) => name !== undefined)
  if (lacks !== undefined && isDatabaseError(cause))
    return { what: `the database ${url} is damaged: it lacks ${lacks}`, remedy: 'restore a backup of it' }
  if (isPostgresUrl(databaseUrl)) return explainPostgres(cause, message, url)
  const path = sqlitePath(databaseUrl)
  return isDatabaseError(cause) ? explain(cause, { path, folder: dirname(path) }) : null
}

function explainPostgres(cause: unknown, message: string, url: string): Explained | null {
  const { hostname, port, username, pathname } = new URL(url)
  const user = decodeURIComponent(username)
  const place = { url, host: `${hostname}:${port || '5432'}`, user, name: pathname.slice(1) || user }
  const state = String((cause as { errno?: unknown } | null)?.errno)
  const found = postgresFaults.find(([states]) => states.test(state))
  if (found !== undefined) return found[1](place, message)
  if (!isLost(cause)) return null
  return {
    what: `no PostgreSQL answers at ${place.host} (${message})`,
    remedy: 'check the address of the database, that PostgreSQL runs there, and that it can be reached from here',
  }
}

/** What the database or the driver itself said. */
function innermost(error: unknown): unknown {
  const isOurs = error instanceof DatabaseUnavailable || error instanceof OperatorError
  return isOurs && error.cause !== undefined ? innermost(error.cause) : error
}

/** Returns the error as an `OperatorError` if it is one of the database, else the error itself. */
export function inDatabaseWords(error: unknown, databaseUrl: string): unknown {
  return error instanceof OperatorError ? error : inWordsIfAny(explainDatabase(error, databaseUrl), error)
}

/** Whether the error comes from a database, and not from code of ours. */
const isDatabaseError = (error: unknown): boolean =>
  /^(SQLITE_|ERR_POSTGRES_)/.test(String((error as { code?: unknown } | null)?.code))
