/** Cursor of a list of accounts: `<creation of the last account, in milliseconds>::<its DID>`. */
import { invalidRequest } from '../../../http/errors.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import type { AccountPlace } from './account-store.ts'

export const accountCursor = ({ createdAt, did }: AccountPlace): string => `${createdAt}::${did}`

/** Returns the place after which the list continues, or null for its start. Throws `InvalidRequest` if malformed. */
export function parseAccountCursor(cursor: string | undefined): AccountPlace | null {
  if (cursor === undefined) return null
  const [, createdAt, did] = /^([0-9]{1,15})::(did:.+)$/.exec(cursor) ?? []
  if (createdAt === undefined) throw invalidRequest('Malformed cursor')
  return { createdAt: Number(createdAt), did: did as Did }
}
