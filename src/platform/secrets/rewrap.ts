/**
 * Changes the master key: unwraps every secret with the old key and wraps it with the new one, in one transaction. The
 * secrets themselves do not change, so users notice nothing.
 */
import { inPages, sql, type Database, type Reader, type Sql } from '../database/database.ts'
import { OperatorError } from '../../base/operator-error.ts'
import { SecretDoesNotOpen, type Vault } from './vault.ts'

interface Place {
  table: Sql
  column: Sql
  key: Sql
}

/** Every column that holds wrapped secrets, and the key of its rows. A test compares the columns with the schema. */
const places: readonly Place[] = [
  { table: sql`server_secret`, column: sql`wrapped`, key: sql`name` },
  { table: sql`account`, column: sql`signing_key_wrapped`, key: sql`did` },
  { table: sql`reserved_signing_key`, column: sql`wrapped`, key: sql`signing_key` },
  { table: sql`staged_key`, column: sql`wrapped`, key: sql`did` },
  { table: sql`name_claim`, column: sql`signing_key_wrapped`, key: sql`handle` },
  { table: sql`escrow_share`, column: sql`share_wrapped`, key: sql`did` },
  { table: sql`ceremony`, column: sql`signing_key_wrapped`, key: sql`id` },
  { table: sql`operator_key`, column: sql`wrapped`, key: sql`signing_key` },
  { table: sql`push_sender_key`, column: sql`secret_wrapped`, key: sql`CAST(kid AS TEXT)` },
  { table: sql`move_plan`, column: sql`session_wrapped`, key: sql`token_hash` },
  { table: sql`move_in`, column: sql`session_wrapped`, key: sql`did` },
  { table: sql`certificate`, column: sql`wrapped`, key: sql`names` },
  { table: sql`certificate_order`, column: sql`key_wrapped`, key: sql`names` },
  { table: sql`totp_factor`, column: sql`secret_wrapped`, key: sql`did` },
  { table: sql`step`, column: sql`payload_wrapped`, key: sql`id` },
]

const nameOf = ({ table, column }: Pick<Place, 'table' | 'column'>): string => `${table.texts[0]}.${column.texts[0]}`

export const wrappedColumns = places.map(nameOf)

const PAGE = 500

/** The new key wraps a secret already. */
export class AlreadyRewrapped extends OperatorError {}

/**
 * Returns the number of secrets by column, and counts the change. Throws `OperatorError` if the old key does not open
 * all secrets, and `AlreadyRewrapped` if the new one opens one of the others; nothing is changed then.
 */
export function rewrap(db: Database, from: Vault, to: Vault): Promise<Record<string, number>> {
  return db.transaction(async (tx) => {
    const counts: Record<string, number> = {}
    for (const { table, column, key } of places) {
      let count = 0
      for await (const rows of secretsIn(tx, { table, column, key })) {
        for (const { id, secret } of rows)
          await tx.run(sql`UPDATE ${table} SET ${column} = ${to.wrap(reopened(secret, from, to))} WHERE ${key} = ${id}`)
        count += rows.length
      }
      counts[nameOf({ table, column })] = count
    }
    await tx.run(sql`UPDATE kek_generation SET generation = generation + 1`)
    return counts
  })
}

/** Whether a key opens all secrets. */
export async function opensAll(reader: Reader, vault: Vault): Promise<boolean> {
  for (const place of places)
    for await (const rows of secretsIn(reader, place))
      if (!rows.every(({ secret }) => opens(vault, secret))) return false
  return true
}

const secretsIn = (reader: Reader, { table, column, key }: Place) =>
  inPages(PAGE, { id: '' }, ({ id }, limit) =>
    reader.all<{ id: string; secret: string }>(
      sql`SELECT ${key} AS id, ${column} AS secret FROM ${table}
        WHERE ${column} IS NOT NULL AND ${key} > ${id} ORDER BY ${key} LIMIT ${limit}`,
    ),
  )

function reopened(wrapped: string, from: Vault, to: Vault): Uint8Array {
  try {
    return from.unwrap(wrapped)
  } catch (error) {
    if (!(error instanceof SecretDoesNotOpen)) throw error
    if (opens(to, wrapped))
      throw new AlreadyRewrapped('the new key already wraps the secrets: an earlier run completed the change', {
        cause: error,
      })
    throw new OperatorError('the old key does not open all secrets: nothing was changed', { cause: error })
  }
}

function opens(vault: Vault, wrapped: string): boolean {
  try {
    vault.unwrap(wrapped)
    return true
  } catch (error) {
    if (error instanceof SecretDoesNotOpen) return false
    throw error
  }
}
