/** Claim codes: short codes that admit one account and expire. */
import { randomBytes } from 'node:crypto'
import { isUniqueViolation } from '../../../platform/database/database.ts'
import { shortCode } from '../../../protocol/short-code.ts'

const CODE_LENGTH = 6
/** Most attempts to draw a batch in which every code is new. */
const MAX_DRAWS = 3

function drawBatch(count: number): string[] {
  const codes = new Set<string>()
  while (codes.size < count) codes.add(shortCode(CODE_LENGTH, randomBytes))
  return [...codes]
}

/**
 * Draw codes and let `store` store them. If one of them already exists, which `store` reports by a unique violation,
 * draw others.
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
