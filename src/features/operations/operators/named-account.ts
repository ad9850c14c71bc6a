import { notFound } from '../../../http/errors.ts'
import type { Reader } from '../../../platform/database/database.ts'
import { parseDid } from '../../../protocol/identifiers.ts'
import { accountOf, type Account } from '../../identity/accounts/accounts.ts'

/**
 * Returns the account that `:did` in the path names. Throws NotFound if that is not a DID, or not the DID of an account
 * here.
 */
export async function namedAccount(reader: Reader, path: Readonly<Record<string, string>>): Promise<Account> {
  const did = parseDid(path['did'] ?? '')
  const account = did && (await accountOf(reader, did))
  if (!account) throw notFound('No such account')
  return account
}
