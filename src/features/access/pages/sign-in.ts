/**
 * Signs people in on pages: the OAuth consent page, the account page and the page for programs share this code. If the
 * account has a second factor, a page of its own asks for it, and carries the fields of the form along.
 */
import { Refusal } from '../../../http/errors.ts'
import { inEnglish } from '../../../http/html.ts'
import type { Revalidate } from '../../../http/revalidation.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { announceSignIn } from '../../identity/account-events/account-events.ts'
import { attemptLogin, MAX_TRIED_PASSWORD_CHARS, provePassword } from '../../identity/passwords/passwords.ts'
import type { Account } from '../../identity/accounts/accounts.ts'
import type { Did } from '../../../protocol/identifiers.ts'
import {
  askedFactors,
  beginPendingSignIn,
  isTrustedBrowser,
  mailSignInCode,
  offerPasskey,
  resumePendingSignIn,
  spendFactorCode,
  trustBrowser,
  usePasskey,
  type AskedFactors,
  type PasskeyUse,
} from '../factors/factors.ts'
import type { PassedFactor } from './device-store.ts'
import { factorTexts } from './factor-texts.ts'
import { entryUse } from './passkey-offer.ts'
import { browserHashOf, deviceOf, newTrust, trustHashOf } from './devices.ts'
import { ANOTHER_CODE, FACTOR_CODE, factorPage, TRUST, type FactorView } from './factor-page.ts'
import {
  faultAt,
  faultOf,
  faultTexts,
  passkeyAnswer,
  PENDING_ID,
  type Fault,
  type PageCall,
} from '../page-parts/page-parts.ts'

/** Status of a form that is shown again with a fault. It is 200, because the request itself was valid. */
const FORM_STATUS = 200

const signInFaults = {
  missing: faultAt(null, faultTexts.signInMissing, FORM_STATUS),
  wrong: faultAt('password', faultTexts.signInWrong, FORM_STATUS),
  blocked: faultAt(null, faultTexts.tooManyMinute, FORM_STATUS),
  over: faultAt(null, faultTexts.signInLate, FORM_STATUS),
  otherAccount: faultAt(null, faultTexts.passkeyOther, FORM_STATUS),
}

const wrongPassword = () => new Refusal(401, 'AuthenticationRequired', inEnglish(signInFaults.wrong.message))
const signInOver = () => new Refusal(401, 'AuthenticationRequired', inEnglish(signInFaults.over.message))

interface SignInForm {
  /** Handle, email address or DID. Ignored in the second step. */
  identifier: string
  /** Whether the form may end in a redirect to another origin. */
  leavesOrigin?: boolean
  /** Set if a passkey may replace the password; `did` is the only account that it may open, null for any. */
  passkey?: { did: Did | null }
  /** Whether this only proves the identity of a holder who is already signed in, and opens nothing. */
  isProof?: boolean
  /** Shows the form again. */
  again(fault: Fault): Promise<Response>
  /** Acts for the account that has signed in. Calls `enter` in its transaction. */
  act(account: Account, enter: EnterPage, passedFactor: PassedFactor | null): Promise<Response>
}

/**
 * Throws a `Refusal` if the password was replaced meanwhile. Announces the sign-in, but only once if it is called
 * several times.
 */
export type EnterPage = (tx: Tx) => Promise<void>

/**
 * Call `act` for the account of the identifier, whatever its status, if the form has its own password and its second
 * factor. Any wrong combination returns the same message after the same work, and only the right password tells whether
 * there is a factor.
 */
export async function withPassword(call: PageCall, form: URLSearchParams, wanted: SignInForm): Promise<Response> {
  const { ctx } = call
  if (form.has(PENDING_ID)) return withFactor(call, form, wanted)
  const answer = passkeyAnswer(form)
  if (answer !== null && wanted.passkey) return withPasskey(call, answer, wanted.passkey.did, wanted)
  const name = wanted.identifier.trim().replace(/^@/, '')
  const password = form.get('password') ?? ''
  if (name === '' || password === '') return wanted.again(signInFaults.missing)
  if (password.length > MAX_TRIED_PASSWORD_CHARS) return wanted.again(signInFaults.wrong)
  const attempt = async (account: Account | null) => {
    const revalidate = await provePassword(ctx, account, password, wrongPassword)
    if (!account || !revalidate) return null
    const asked = await askedFactors(ctx, account)
    return asked === null || (!wanted.isProof && (await isTrusted(call, account)))
      ? enter(call, account, revalidate, wanted)
      : askForFactor(call, form, wanted, { account, asked, revalidate })
  }
  const outcome = await attemptLogin(call, name, attempt, { isSignedIn: wanted.isProof })
  return outcome.ok ? outcome.value : wanted.again(signInFaults[outcome.fault])
}

/** The authenticator has verified the user, so no second factor is needed. */
async function withPasskey(call: PageCall, answer: string, did: Did | null, wanted: SignInForm): Promise<Response> {
  const used = await tryPasskey(call, answer, entryUse(call))
  if ('fault' in used) return wanted.again(used.fault)
  if (did !== null && used.account.did !== did) return wanted.again(signInFaults.otherAccount)
  return enter(call, used.account, used.revalidate, wanted, { passedFactor: 'held', means: 'passkey' })
}

type Used = Awaited<ReturnType<typeof usePasskey>>

async function tryPasskey(call: PageCall, answer: string, use: PasskeyUse): Promise<Used | { fault: Fault }> {
  let used: Used | null = null
  const fault = await faultOf(async () => {
    used = await usePasskey(call, answer, use)
  })
  return used ?? { fault: atCode(fault)! }
}

interface Entry {
  passedFactor: PassedFactor | null
  means: 'password on a page' | 'passkey'
}

const byPassword: Entry = { passedFactor: null, means: 'password on a page' }

async function enter(
  call: PageCall,
  account: Account,
  revalidate: Revalidate,
  { act, isProof = false }: SignInForm,
  { passedFactor, means }: Entry = byPassword,
): Promise<Response> {
  const isKnownBrowser =
    (await deviceOf(call))?.accounts.some((signedIn) => signedIn.account.did === account.did) ?? false
  let isAnnounced = isProof || account.takedownRef !== null
  const revalidateAndAnnounce: EnterPage = async (tx) => {
    await revalidate(tx)
    if (isAnnounced) return
    await announceSignIn(tx, call, account.did, means, { isKnownBrowser })
    tx.afterCommit(() => (isAnnounced = true))
  }
  return act(account, revalidateAndAnnounce, passedFactor)
}

interface ProvenPassword {
  account: Account
  asked: AskedFactors
  revalidate: Revalidate
}

/** Stores the sign-in so far, and shows the page that asks for the factor. */
async function askForFactor(
  call: PageCall,
  form: URLSearchParams,
  { leavesOrigin, isProof }: SignInForm,
  { account, asked, revalidate }: ProvenPassword,
): Promise<Response> {
  const pending = { did: account.did, browserHash: browserHashOf(call) }
  const pendingId = await beginPendingSignIn(call.ctx, pending, revalidate)
  const fault = asked.mailed ? await faultOf(() => mailSignInCode(call, account)) : null
  const passkey = await offerPasskey(call.ctx, account.did, () => proofUse(account, pendingId))
  return factorPage(call, { form, pendingId, asked, passkey, fault: atCode(fault), leavesOrigin, isProof })
}

/** The use of a passkey as the factor in addition to the password. */
const proofUse = ({ did }: Account, pendingId: string): PasskeyUse => ({ purpose: 'prove', did, binding: pendingId })

/** The second step: the form has the id of the sign-in instead of the password. */
async function withFactor(call: PageCall, form: URLSearchParams, wanted: SignInForm): Promise<Response> {
  const pendingId = form.get(PENDING_ID) ?? ''
  const resumed = await resumePendingSignIn(call.ctx, pendingId, browserHashOf(call), signInOver)
  const asked = resumed && (await askedFactors(call.ctx, resumed.account))
  if (!resumed || !asked) return wanted.again(signInFaults.over)
  const { account, revalidate, end } = resumed
  const showAgain = async (view: Pick<FactorView, 'fault' | 'notice'>) => {
    const passkey = await offerPasskey(call.ctx, account.did, () => proofUse(account, pendingId))
    return factorPage(call, { ...wanted, ...view, form, pendingId, asked, passkey })
  }
  if (asked.mailed && form.has(ANOTHER_CODE)) {
    const fault = await faultOf(() => mailSignInCode(call, account))
    return showAgain({ fault: atCode(fault), notice: factorTexts.anotherSent })
  }
  const answer = passkeyAnswer(form)
  const fault = await faultOf((): Promise<unknown> =>
    answer === null
      ? spendFactorCode(call, account, asked, form.get(FACTOR_CODE) ?? '')
      : usePasskey(call, answer, proofUse(account, pendingId)),
  )
  if (fault) return showAgain({ fault: atCode(fault) })
  if (form.has(TRUST) && !wanted.isProof) {
    const trust = newTrust(call, account.did)
    await trustBrowser(call, account.did, trust, revalidate)
    trust.tell()
  }
  const passedFactor = asked.mailed ? 'mailed' : 'held'
  const response = await enter(call, account, revalidate, wanted, { ...byPassword, passedFactor })
  await end()
  return response
}

async function isTrusted(call: PageCall, { did }: Account): Promise<boolean> {
  const { db, clock } = call.ctx
  const hash = trustHashOf(call, did)
  return hash !== null && (await isTrustedBrowser(db, did, hash, clock.now()))
}

const atCode = (fault: Fault | null): Fault | null =>
  fault && { ...fault, field: fault.field === null ? null : FACTOR_CODE, status: FORM_STATUS }
