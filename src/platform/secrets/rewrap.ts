/**
 * Changes the master key: unwraps every secret with the old key and wraps it with the new one, in one transaction. The
 * secrets themselves do not change, so users notice nothing.
 */
import { inPages, sql, type Database, type Sql } from '../database/database.ts'
import { OperatorError } from '../../base/operator-error.ts'
import { SecretDoesNotOpen, type Vault } from './vault.ts'

/** Every column that holds wrapped secrets. A test compares the names with the schema. */
const families: Record<string, { list(after: string, limit: number): Sql; update(id: string, wrapped: string): Sql }> =
  {
    'server_secret.wrapped': {
      list: (after, limit) =>
        sql`SELECT name AS id, wrapped FROM server_secret WHERE name > ${after} ORDER BY name LIMIT ${limit}`,
      update: (id, wrapped) => sql`UPDATE server_secret SET wrapped = ${wrapped} WHERE name = ${id}`,
    },
    'account.signing_key_wrapped': {
      list: (after, limit) =>
        sql`SELECT did AS id, signing_key_wrapped AS wrapped FROM account WHERE did > ${after} ORDER BY did LIMIT ${limit}`,
      update: (id, wrapped) => sql`UPDATE account SET signing_key_wrapped = ${wrapped} WHERE did = ${id}`,
    },
    'reserved_signing_key.wrapped': {
      list: (after, limit) =>
        sql`SELECT signing_key AS id, wrapped FROM reserved_signing_key WHERE signing_key > ${after} ORDER BY signing_key LIMIT ${limit}`,
      update: (id, wrapped) => sql`UPDATE reserved_signing_key SET wrapped = ${wrapped} WHERE signing_key = ${id}`,
    },
    'staged_key.wrapped': {
      list: (after, limit) =>
        sql`SELECT did AS id, wrapped FROM staged_key WHERE did > ${after} ORDER BY did LIMIT ${limit}`,
      update: (id, wrapped) => sql`UPDATE staged_key SET wrapped = ${wrapped} WHERE did = ${id}`,
    },
    'name_claim.signing_key_wrapped': {
      list: (after, limit) =>
        sql`SELECT handle AS id, signing_key_wrapped AS wrapped FROM name_claim WHERE signing_key_wrapped IS NOT NULL AND handle > ${after} ORDER BY handle LIMIT ${limit}`,
      update: (id, wrapped) => sql`UPDATE name_claim SET signing_key_wrapped = ${wrapped} WHERE handle = ${id}`,
    },
    'escrow_share.share_wrapped': {
      list: (after, limit) =>
        sql`SELECT did AS id, share_wrapped AS wrapped FROM escrow_share WHERE did > ${after} ORDER BY did LIMIT ${limit}`,
      update: (id, wrapped) => sql`UPDATE escrow_share SET share_wrapped = ${wrapped} WHERE did = ${id}`,
    },
    'ceremony.signing_key_wrapped': {
      list: (after, limit) =>
        sql`SELECT id, signing_key_wrapped AS wrapped FROM ceremony WHERE signing_key_wrapped IS NOT NULL AND id > ${after} ORDER BY id LIMIT ${limit}`,
      update: (id, wrapped) => sql`UPDATE ceremony SET signing_key_wrapped = ${wrapped} WHERE id = ${id}`,
    },
    'operator_key.wrapped': {
      list: (after, limit) =>
        sql`SELECT signing_key AS id, wrapped FROM operator_key WHERE signing_key > ${after} ORDER BY signing_key LIMIT ${limit}`,
      update: (id, wrapped) => sql`UPDATE operator_key SET wrapped = ${wrapped} WHERE signing_key = ${id}`,
    },
    'push_sender_key.secret_wrapped': {
      list: (after, limit) =>
        sql`SELECT CAST(kid AS TEXT) AS id, secret_wrapped AS wrapped FROM push_sender_key
        WHERE secret_wrapped IS NOT NULL AND CAST(kid AS TEXT) > ${after} ORDER BY CAST(kid AS TEXT) LIMIT ${limit}`,
      update: (id, wrapped) => sql`UPDATE push_sender_key SET secret_wrapped = ${wrapped} WHERE kid = ${Number(id)}`,
    },
    'step.payload_wrapped': {
      list: (after, limit) =>
        sql`SELECT id, payload_wrapped AS wrapped FROM step WHERE id > ${after} ORDER BY id LIMIT ${limit}`,
      update: (id, wrapped) => sql`UPDATE step SET payload_wrapped = ${wrapped} WHERE id = ${id}`,
    },
  }

export const wrappedColumns = Object.keys(families)

const PAGE = 500

/**
 * Returns the number of secrets by column, and counts the change. Throws `OperatorError` if the old key does not open
 * all secrets; nothing is changed then.
 */
export function rewrap(db: Database, from: Vault, to: Vault): Promise<Record<string, number>> {
  return db.transaction(async (tx) => {
    const counts: Record<string, number> = {}
    for (const [name, { list, update }] of Object.entries(families)) {
      counts[name] = 0
      for await (const rows of inPages(PAGE, { id: '' }, ({ id }, limit) =>
        tx.all<{ id: string; wrapped: string }>(list(id, limit)),
      )) {
        for (const { id, wrapped } of rows) await tx.run(update(id, to.wrap(reopened(wrapped, from, to))))
        counts[name] += rows.length
      }
    }
    await tx.run(sql`UPDATE kek_generation SET generation = generation + 1`)
    return counts
  })
}

function reopened(wrapped: string, from: Vault, to: Vault): Uint8Array {
  try {
    return from.unwrap(wrapped)
  } catch (error) {
    if (!(error instanceof SecretDoesNotOpen)) throw error
    throw new OperatorError(
      opens(to, wrapped)
        ? 'the new key already wraps the secrets: an earlier run completed the change'
        : 'the old key does not open all secrets: nothing was changed',
      { cause: error },
    )
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
