/** The states of an account, as lexicons and events name them. */
import type { Millis } from './identifiers.ts'

export type AccountStatus = 'active' | 'deactivated' | 'takendown'

/** The columns that decide the state. */
interface Restrictions {
  takedownRef: string | null
  deactivatedAt: Millis | null
}

/** A takedown outweighs a deactivation. */
export function statusOf({ takedownRef, deactivatedAt }: Restrictions): AccountStatus {
  if (takedownRef !== null) return 'takendown'
  return deactivatedAt === null ? 'active' : 'deactivated'
}

/** Returns the state as lexicons write it: `active`, and the reason if it is false. */
export function activityOf(account: Restrictions): { active: boolean; status?: Exclude<AccountStatus, 'active'> } {
  const status = statusOf(account)
  return status === 'active' ? { active: true } : { active: false, status }
}
