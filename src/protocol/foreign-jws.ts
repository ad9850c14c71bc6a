/**
 * Verifies compact JWS of other parties, in any common algorithm. The caller names the algorithm; the one in the header
 * must equal it and never decides. The library is loaded on first use.
 *
 * Source: RFC 7515, 5.2; RFC 8725, 3.1.
 */
import type { KeyObject } from 'node:crypto'
import type { ForeignAlgorithm } from './foreign-keys.ts'

/**
 * Whether the key signed the text with the algorithm. A critical header (`crit`) that is not understood makes the
 * signature invalid.
 */
export async function verifyForeignJws(text: string, key: KeyObject, algorithm: ForeignAlgorithm): Promise<boolean> {
  const { compactVerify, errors } = await import('jose')
  try {
    await compactVerify(text, key, { algorithms: [algorithm] })
    return true
  } catch (error) {
    // jose throws a `TypeError` if the key does not fit the algorithm.
    if (error instanceof errors.JOSEError || error instanceof TypeError) return false
    throw error
  }
}
