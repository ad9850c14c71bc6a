/** Refusals of requests that the state of an account does not allow. */
import { Refusal } from '../../../http/errors.ts'
import type { AccountStatus } from '../../../protocol/account-status.ts'

export const accountNotFound = () => new Refusal(403, 'AccountNotFound', 'Account not found')
const accountTakedown = () => new Refusal(401, 'AccountTakedown', 'Account has been taken down')
const accountDeactivated = () => new Refusal(401, 'AccountDeactivated', 'Account is deactivated')

/** Throws `AccountNotFound` if the account was deleted, because a caller's token may outlive the account. */
export function refuseMissing(status: AccountStatus | null): asserts status is AccountStatus {
  if (status === null) throw accountNotFound()
}

/** Throws `AccountNotFound` or `AccountTakedown`, for actions that a deactivated account may still take. */
export function refuseTakendown(status: AccountStatus | null): asserts status is 'active' | 'deactivated' {
  refuseMissing(status)
  if (status === 'takendown') throw accountTakedown()
}

/** Throws `AccountNotFound`, `AccountTakedown` or `AccountDeactivated`, for writes. */
export function requireActive(status: AccountStatus | null): asserts status is 'active' {
  refuseTakendown(status)
  if (status === 'deactivated') throw accountDeactivated()
}
