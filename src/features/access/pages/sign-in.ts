/**
 * Signs people in on pages: OAuth consent and the account page share this one way. A second factor would be asked for
 * here, between the password and `then`.
 */
import { Refusal } from '../../../http/errors.ts'
import type { Revalidate } from '../../../http/revalidation.ts'
import { announceSignIn } from '../../identity/account-events/account-events.ts'
import { attemptLogin, MAX_TRIED_PASSWORD_CHARS, provePassword } from '../../identity/passwords/passwords.ts'
import type { Account } from '../../identity/accounts/accounts.ts'
import { deviceOf } from './devices.ts'
import { faultAt, type Fault, type PageCall } from '../page-parts/page-parts.ts'

type SignInOutcome<T> = { ok: true; value: T } | { ok: false; fault: Fault }

/** Status of the page that is shown again with what is missing or wrong, because the request itself was valid. */
const FORM_STATUS = 200

const signInFaults = {
  missing: faultAt(null, 'Please enter your handle or email address and your password.', FORM_STATUS),
  wrong: faultAt('password', 'The account or the password is wrong. App passwords do not work here.', FORM_STATUS),
  blocked: faultAt(null, 'Too many attempts. Please wait a minute and try again.', FORM_STATUS),
}

const wrongPassword = () => new Refusal(401, 'AuthenticationRequired', signInFaults.wrong.message)

/**
 * Call `then` for the account that the identifier and its own password open, whatever its status. Any wrong combination
 * returns the same message after the same work. A success clears the failures once `then` has finished, which calls
 * `revalidate` in the transaction that acts on the sign-in.
 */
export async function withPassword<T>(
  call: PageCall,
  identifier: string,
  password: string,
  then: (account: Account, revalidate: Revalidate) => Promise<T>,
): Promise<SignInOutcome<T>> {
  const name = identifier.trim().replace(/^@/, '')
  if (name === '' || password === '') return { ok: false, fault: signInFaults.missing }
  if (password.length > MAX_TRIED_PASSWORD_CHARS) return { ok: false, fault: signInFaults.wrong }
  const { ctx } = call
  const outcome = await attemptLogin(call, name, async (account) => {
    const revalidate = await provePassword(ctx, account, password, wrongPassword)
    if (!account || !revalidate) return null
    const isKnownBrowser =
      (await deviceOf(call))?.accounts.some((signedIn) => signedIn.account.did === account.did) ?? false
    const value = await then(account, revalidate)
    if (account.takedownRef === null) announceSignIn(call, account.did, 'password on a page', { isKnownBrowser })
    return { value }
  })
  return outcome.ok ? { ok: true, value: outcome.value.value } : { ok: false, fault: signInFaults[outcome.fault] }
}
