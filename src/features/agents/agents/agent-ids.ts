/** Ids and claim tokens of agents. */
import { createHash, randomUUID } from 'node:crypto'
import { newToken } from '../../../platform/secrets/new-token.ts'

/** Returns `reg_` or `cla_` and 32 hexadecimal digits. */
export const newAgentId = (kind: 'reg' | 'cla'): string => `${kind}_${randomUUID().replaceAll('-', '')}`

/** Returns a token with which a registered program polls the state of its claim. Only its hash is stored. */
export function newClaimToken(): { claimToken: string; hash: string } {
  const claimToken = `clm_${newToken().token}`
  return { claimToken, hash: claimTokenHash(claimToken) }
}

export const claimTokenHash = (claimToken: string): string => createHash('sha256').update(claimToken).digest('hex')
