/**
 * The page at which people confirm programs. It works in two steps: first sign-in and code, then the decision. In
 * between, the server stores what it has shown to whom. The second form contains nothing but an unguessable id. An
 * account that is signed in on a browser decides on that browser, while it is signed in there.
 */
import { createHash } from 'node:crypto'
import { MINUTE_MILLIS } from '../../../base/durations.ts'
import { route } from '../../../http/endpoint.ts'
import type { Wording } from '../../../http/html.ts'
import { charge } from '../../../http/limiting.ts'
import type { Tx } from '../../../platform/database/database.ts'
import { newToken } from '../../../platform/secrets/new-token.ts'
import { opaqueTokenHash } from '../../../protocol/opaque-token.ts'
import { activityOf } from '../../../protocol/account-status.ts'
import type { Account } from '../../identity/accounts/accounts.ts'
import {
  chosenAccount,
  deviceOf,
  readOwnForm,
  requireFormToken,
  requireNavigation,
  withPassword,
  type Device,
  type EnterPage,
} from '../../access/pages/pages.ts'
import {
  faultAt,
  faultOf,
  pageRefusal,
  signedInElsewhere,
  type Fault,
  type PageCall,
} from '../../access/page-parts/page-parts.ts'
import { hasKnownWallets } from '../../access/wallet-proofs/wallet-proofs.ts'
import {
  CLAIM_PATH,
  decidedPage,
  decideClaimPage,
  enterCodePage,
  PRIVATE_READS,
  type EnteredClaim,
} from './agent-claim-page.ts'
import { findShownClaim, insertShownClaim, takeShownClaim, type ShownClaim } from './agent-claim-page-store.ts'
import { claimTexts as texts } from './claim-texts.ts'
import {
  confirmClaim,
  denyClaim,
  enteredCode,
  grantedScopes,
  plainCode,
  type EnteredCode,
  type Take,
} from './agent-claims.ts'

/** Time that a person has to decide. */
const DECISION_MILLIS = 5 * MINUTE_MILLIS

const wrongCode = faultAt('user_code', texts.wrongCode, 200)
const notActive = faultAt(null, texts.notActive, 200)
const walletFirst = faultAt(null, texts.walletFirst, 200)

/** Shows the first form. The code in the address is filled in, but never submitted. */
async function show(call: PageCall): Promise<Response> {
  requireNavigation(call)
  const code = plainCode(call.url.searchParams.get('code') ?? '')
  return showAgain(call, { code: /^\d{6}$/.test(code) ? code : '', identifier: '', account: null }, null)
}

async function showAgain(call: PageCall, entered: EnteredClaim, fault: Fault | null): Promise<Response> {
  const { ctx } = call
  const wallet = fault === walletFirst ? 'needed' : (await hasKnownWallets(ctx.db)) ? 'offered' : 'none'
  return enterCodePage(call, { entered, device: await deviceOf(call), fault, wallet })
}

const startAgain = (call: PageCall, message: Wording): Promise<Response> =>
  showAgain(call, { code: '', identifier: '', account: null }, faultAt('user_code', message))

/** Handles the first form. Checks the code only once it is known who enters it. */
async function identify(call: PageCall, form: URLSearchParams): Promise<Response> {
  const device = await deviceOf(call)
  const chosen = chosenAccount(device, form)
  const entered: EnteredClaim = {
    code: form.get('user_code') ?? '',
    identifier: form.get('identifier') ?? '',
    account: chosen?.account.did ?? (form.has('account') ? 'other' : null),
  }
  if (chosen && device) {
    if (await faultOf(() => requireFormToken(device, form))) return showAgain(call, entered, signedInElsewhere)
    if (!chosen.isStale) {
      chosen.noteUse()
      return look(call, chosen.account, entered, { enter: chosen.revalidate, device })
    }
    if (!chosen.account.hasPassword) return showAgain(call, entered, walletFirst)
  }
  const limited = await faultOf(() => charge(call, 'createSession'))
  if (limited) return showAgain(call, entered, limited)
  return withPassword(call, form, {
    identifier: chosen?.account.did ?? entered.identifier,
    again: (fault) => showAgain(call, entered, fault),
    act: (account, enter) => look(call, account, entered, { enter, device: null }),
  })
}

/**
 * Show what the program with this code asks for, and store what is shown. `enter` throws if the password was replaced
 * meanwhile, or the browser was signed out. `device` is the browser on which the account is signed in; null if the
 * person has entered the password.
 */
async function look(
  call: PageCall,
  account: Account,
  entered: EnteredClaim,
  { enter, device }: { enter: EnterPage; device: Device | null },
): Promise<Response> {
  const { ctx } = call
  const { did } = account
  if (!activityOf(account).active) return showAgain(call, entered, notActive)
  let found: EnteredCode = { ok: false, fault: 'unknown' }
  const limited = await faultOf(async () => (found = await enteredCode(call, did, entered.code)))
  if (limited || !found.ok) return showAgain(call, entered, limited ?? wrongCode)
  const { claim, registration } = found as Extract<EnteredCode, { ok: true }>
  const { token: pageId, hash } = newToken()
  const scopes = grantedScopes(ctx)
  const expiresAt = ctx.clock.now() + DECISION_MILLIS
  await ctx.db.transaction(async (tx) => {
    await enter(tx)
    await insertShownClaim(tx, keyOn(device, hash), { did, claimId: claim.id, scopes }, expiresAt)
  })
  return decideClaimPage(call, { pageId, account, claim, registration, scopes })
}

/** The key of what is shown. If an account is signed in on a browser, the key depends on the cookie of that browser. */
const keyOn = (device: Device | null, idHash: string): string =>
  device === null ? idHash : createHash('sha256').update(`${idHash} on ${device.tokenHash}`).digest('hex')

/**
 * Returns what was shown with this id, and its key. If it was shown to an account that is signed in on this browser,
 * `call.revalidate` then throws once the account is signed out. Null if there is none, or not for this browser.
 */
async function shownBefore(call: PageCall, idHash: string): Promise<{ key: string; shown: ShownClaim } | null> {
  const { db, clock } = call.ctx
  for (const device of [null, await deviceOf(call)]) {
    const key = keyOn(device, idHash)
    const shown = await findShownClaim(db, key, clock.now())
    const signedIn = device?.accounts.find(({ account }) => account.did === shown?.did)
    if (signedIn) call.revalidate = signedIn.revalidate
    if (shown !== null && (device === null || signedIn)) return { key, shown }
  }
  return null
}

const decisions = {
  approve: {
    carryOut: (call: PageCall, { did, claimId }: ShownClaim, take: Take, form: URLSearchParams) =>
      confirmClaim(call, did, claimId, { privateReads: form.has(PRIVATE_READS), take }),
    ending: 'approved',
  },
  deny: {
    carryOut: (call: PageCall, { did, claimId }: ShownClaim, take: Take) => denyClaim(call, did, claimId, take),
    ending: 'denied',
  },
} as const

/** Handles the second form. What was shown serves a single decision, whatever its outcome. */
async function decide(call: PageCall, form: URLSearchParams): Promise<Response> {
  const { ctx } = call
  const name = form.get('decision') ?? ''
  if (!Object.hasOwn(decisions, name)) throw pageRefusal('The form neither approves nor denies.')
  const { carryOut, ending } = decisions[name as keyof typeof decisions]
  const idHash = opaqueTokenHash(form.get('id') ?? '')
  const found = idHash && (await shownBefore(call, idHash))
  if (!found) return startAgain(call, texts.gone)
  const { key, shown } = found
  const now = ctx.clock.now()
  const take = async (tx: Tx) => (await takeShownClaim(tx, key, now)) > 0
  if (shown.scopes.join(' ') !== grantedScopes(ctx).join(' ')) {
    await ctx.db.transaction(take)
    return startAgain(call, texts.changed)
  }
  const outcome = await carryOut(call, shown, take, form)
  if (outcome === 'gone') return startAgain(call, texts.gone)
  return decidedPage(call, outcome === 'done' ? ending : outcome)
}

async function submit(call: PageCall): Promise<Response> {
  const form = await readOwnForm(call, { needsNoCookie: true })
  return form.get('step') === 'decide' ? decide(call, form) : identify(call, form)
}

export const agentClaimPageRoutes = [
  route('GET', CLAIM_PATH, { handler: show }),
  route('POST', CLAIM_PATH, { limit: 'agentClaimConfirm', handler: submit }),
]
