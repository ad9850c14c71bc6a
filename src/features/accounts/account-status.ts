/** The states of an account, and what each of them is refused. */
import { Refusal } from '../../http/errors.ts'
import type { Millis } from '../../protocol/identifiers.ts'

export type AccountStatus = 'active' | 'deactivated' | 'takendown'

/** What decides the state, as the row says it. */
interface Restrictions {
  takedownRef: string | null
  deactivatedAt: Millis | null
}

/** A takedown outweighs a deactivation. */
export function statusOf({ takedownRef, deactivatedAt }: Restrictions): AccountStatus {
  if (takedownRef !== null) return 'takendown'
  return deactivatedAt === null ? 'active' : 'deactivated'
}

/** The state as the wire tells it: `active`, and why not. */
export function activityOf(account: Restrictions): { active: boolean; status?: Exclude<AccountStatus, 'active'> } {
  const status = statusOf(account)
  return status === 'active' ? { active: true } : { active: false, status }
}

export const accountNotFound = () => new Refusal(403, 'AccountNotFound', 'Account not found')
export const accountTakedown = () => new Refusal(401, 'AccountTakedown', 'Account has been taken down')
const accountDeactivated = () => new Refusal(401, 'AccountDeactivated', 'Account is deactivated')

/** For callers whose token may outlive the account: refuses them when it is gone. */
export function refuseMissing(status: AccountStatus | null): asserts status is AccountStatus {
  if (status === null) throw accountNotFound()
}

/** For what a deactivated account may still do: refuses a missing account and one that was taken down. */
export function refuseTakendown(status: AccountStatus | null): asserts status is 'active' | 'deactivated' {
  refuseMissing(status)
  if (status === 'takendown') throw accountTakedown()
}

/** For writes: only an active account makes them. */
export function requireActive(status: AccountStatus | null): asserts status is 'active' {
  refuseTakendown(status)
  if (status === 'deactivated') throw accountDeactivated()
}
