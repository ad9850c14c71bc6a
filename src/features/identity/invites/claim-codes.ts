/** Claim codes: short codes that admit one account and expire. */
import { randomBytes } from 'node:crypto'
import { isUniqueViolation } from '../../../platform/database/database.ts'
import { shortCode } from '../../../protocol/short-code.ts'

const CODE_LENGTH = 6
/** Attempts to draw a batch in which every code is new. */
const MAX_DRAWS = 3

function drawBatch(count: number): string[] {
  const codes = new Set<string>()
  while (codes.size < count) codes.add(shortCode(CODE_LENGTH, randomBytes))
  return [...codes]
}

/**
 * Draw codes and let `store` store them. Draws others if one of them exists already, which `store` reports by a unique
 * violation.
 */
export async function withNewClaimCodes<T>(count: number, store: (codes: string[]) => Promise<T>): Promise<T> {
  for (let draw = 1; ; draw++) {
    try {
      return await store(drawBatch(count))
    } catch (error) {
      if (!isUniqueViolation(error) || draw === MAX_DRAWS) throw error
    }
  }
}
