/** The states of an account, and the refusals for each. */
import { Refusal } from '../../../http/errors.ts'
import type { Millis } from '../../../protocol/identifiers.ts'

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

export const accountNotFound = () => new Refusal(403, 'AccountNotFound', 'Account not found')
export const accountTakedown = () => new Refusal(401, 'AccountTakedown', 'Account has been taken down')
const accountDeactivated = () => new Refusal(401, 'AccountDeactivated', 'Account is deactivated')

/** Throws `AccountNotFound` if the account is gone, which the caller's token may outlive. */
export function refuseMissing(status: AccountStatus | null): asserts status is AccountStatus {
  if (status === null) throw accountNotFound()
}

/** Throws `AccountNotFound` or `AccountTakedown`, for what a deactivated account may still do. */
export function refuseTakendown(status: AccountStatus | null): asserts status is 'active' | 'deactivated' {
  refuseMissing(status)
  if (status === 'takendown') throw accountTakedown()
}

/** Throws `AccountNotFound`, `AccountTakedown` or `AccountDeactivated`, for writes. */
export function requireActive(status: AccountStatus | null): asserts status is 'active' {
  refuseTakendown(status)
  if (status === 'deactivated') throw accountDeactivated()
}
