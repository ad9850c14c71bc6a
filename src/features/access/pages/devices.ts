/**
 * The browser that shows a page, and the accounts signed in there. A cookie contains an opaque token. Every sign-in
 * replaces it, so that a token which an attacker planted beforehand is useless. The token works only in the program and
 * on the system where the person signed in, such as Firefox on Linux. The version does not matter, because an update
 * must keep people signed in. In another program, the token opens nothing, but the sign-ins are kept: a phone may only
 * have asked for the pages of a desktop.
 *
 * Only pages read the cookie: no endpoint of the API does.
 */
import { createHash, createHmac } from 'node:crypto'
import { DAY_SECS, HOUR_SECS } from '../../../base/durations.ts'
import { cookieIn, cookieOf } from '../../../http/cookies.ts'
import type { Exchange } from '../../../http/endpoint.ts'
import { authenticationRequired, Refusal } from '../../../http/errors.ts'
import { inEnglish, type Html } from '../../../http/html.ts'
import { layoutTexts } from '../../../http/layout-texts.ts'
import { ageOf } from '../../../platform/running/clock.ts'
import { isUseDue } from '../../../platform/running/last-use.ts'
import { personsLanguage } from '../../../http/page-language.ts'
import { requestOrigin } from '../../../http/origin.ts'
import { withUpload, type UploadedForm } from '../../../http/uploaded-form.ts'
import type { Context } from '../../../platform/context.ts'
import type { Reader, Tx } from '../../../platform/database/database.ts'
import { newToken } from '../../../platform/secrets/new-token.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import { programOf } from '../../../protocol/user-agent.ts'
import { formatOpaqueToken, opaqueTokenHash, parseOpaqueToken } from '../../../protocol/opaque-token.ts'
import { TRUST_SECS, type NewTrust } from '../factors/factors.ts'
import { accountOf, type Account } from '../../identity/accounts/accounts.ts'
import { keepMailLanguage } from '../../identity/mails/mails.ts'
import {
  browsersOf,
  deleteDevice,
  deleteSignIn,
  insertDevice,
  makeRoomForSignIn,
  noteBrowserUse,
  renameDevice,
  signInsOf,
  type DeviceKey,
  type KnownBrowser,
  type PassedFactor,
  type SignIn,
} from './device-store.ts'
import { hidden, readForm, type PageCall } from '../page-parts/page-parts.ts'

/**
 * How long an account stays signed in. The cookie of a browser that was not asked to keep it also ends when the browser
 * closes. The last use is stored to the hour, so the allowed time without use may be up to an hour shorter.
 */
const lives = {
  remembered: { unusedSecs: 7 * DAY_SECS, maxSecs: 30 * DAY_SECS },
  passing: { unusedSecs: 3 * HOUR_SECS, maxSecs: 12 * HOUR_SECS },
} as const
/** Age of a sign-in after which apps and agents are let in only with the password, or the wallet. */
const FRESH_SECS = 7 * DAY_SECS
/** Age of a sign-in after which forms that open another way in, or hide the account, ask for the password. */
const PROVEN_SECS = HOUR_SECS
const MAX_ACCOUNTS = 8

const lifeOf = ({ isRemembered }: Pick<SignIn, 'isRemembered'>) => lives[isRemembered ? 'remembered' : 'passing']

/** When a sign-in ends if it is not used again, and when it ends in any case. */
function endsOf(signIn: SignIn): { unused: Millis; last: Millis } {
  const { unusedSecs, maxSecs } = lifeOf(signIn)
  const last = signIn.signedInAt + maxSecs * 1000
  return { unused: Math.min(last, (signIn.usedAt ?? signIn.signedInAt) + unusedSecs * 1000), last }
}

const isAlive = (signIn: SignIn, now: Millis): boolean => endsOf(signIn).unused > now
/** Whether the browser still knows the account: one that was to stay signed in is offered by name to sign in again. */
const isKnown = (signIn: SignIn, now: Millis): boolean =>
  isAlive(signIn, now) || (signIn.isRemembered && endsOf(signIn).last > now)

export interface SignedIn {
  account: Account
  /** When the password was entered, or a wallet approved. */
  signedInAt: Millis
  /** Whether the sign-in is too old to let an app or an agent in. */
  isStale: boolean
  /** Whether the sign-in is recent enough to prove who sends a form. */
  isProven: boolean
  isRemembered: boolean
  /** The second factor that was used at the sign-in; null if none was, or if the browser is trusted. */
  passedFactor: PassedFactor | null
  /** Note a use, which keeps the sign-in alive. Writes once an hour at most, after the response. */
  noteUse(): void
  /** Throws `AuthenticationRequired` once the account has been signed out in this browser. */
  revalidate(reader: Reader): Promise<void>
}

export interface Device extends DeviceKey {
  /** Newest sign-in first. */
  accounts: readonly SignedIn[]
  /** Accounts that were to stay signed in, but are not any more. They can be chosen, and then sign in again. */
  former: readonly SignedIn[]
  /** Both of these. */
  known: readonly SignedIn[]
  /** Token that every form which acts for a signed-in account must contain. */
  formToken: string
}

const isSecure = ({ config }: Context) => config.publicUrl.startsWith('https://')
/** The `__Host-` prefix makes browsers require https, this exact host and `Path=/`. RFC 6265bis section 4.1.3.2. */
const cookieName = (ctx: Context) => (isSecure(ctx) ? '__Host-holdfast' : 'holdfast')
const formCookieName = (ctx: Context) => `${cookieName(ctx)}-form`

/** Returns the token of the browser, which this response may be setting; null if there is none. */
const tokenOf = ({ ctx, request, replyHeaders }: Exchange): string | null =>
  cookieIn(replyHeaders.getSetCookie().toReversed(), cookieName(ctx)) ?? cookieOf(request, cookieName(ctx))

/** The program that sent a request, and its system; empty if unknown. */
const programIn = ({ request }: Exchange): string => programOf(request.headers.get('user-agent') ?? '') ?? ''

const formerTokenOf = ({ request }: Exchange): string | null =>
  formerDeviceToken(cookieOf(request, 'dev-id') ?? '', cookieOf(request, 'ses-id') ?? '')

/**
 * Returns the token of the browser. A browser that signed in to the reference implementation, before its accounts moved
 * here, has two cookies of 16 bytes instead. Other hosts of the domain can set such cookies, so they work only once:
 * the response replaces them by our own cookie.
 */
async function settledTokenOf(exchange: Exchange): Promise<string | null> {
  const known = tokenOf(exchange)
  if (known !== null) return known
  const { ctx, replyHeaders } = exchange
  const before = opaqueTokenHash(formerTokenOf(exchange) ?? '')
  const program = programIn(exchange)
  if (!before || (await liveSignInsOf(ctx.db, { tokenHash: before, program }, ctx.clock.now())).length === 0)
    return null
  const { token, hash } = newToken()
  if ((await ctx.db.transaction((tx) => renameDevice(tx, before, { tokenHash: hash, program }))) === 0) return null
  replyHeaders.append('Set-Cookie', cookie(ctx, cookieName(ctx), token, lives.remembered.maxSecs))
  return token
}

/** Returns our token for the cookies of the reference implementation; null if they are malformed. */
function formerDeviceToken(deviceId: string, sessionId: string): string | null {
  const [, device] = /^dev-([\da-f]{32})$/.exec(deviceId) ?? []
  const [, session] = /^ses-([\da-f]{32})$/.exec(sessionId) ?? []
  if (device === undefined || session === undefined) return null
  return formatOpaqueToken(Buffer.from(device + session, 'hex'))
}

/** A browser that came from another server, with its signed-in accounts. */
interface FormerBrowser {
  tokenHash: string
  signIns: readonly SignIn[]
}

/**
 * Returns a browser of the reference implementation, with the accounts whose sign-ins are still valid here; null if
 * there are none.
 */
export function formerBrowser(
  {
    id,
    sessionId,
    seenAt,
    ...had
  }: { id: string; sessionId: string; seenAt: Millis; signIns: readonly FormerSignIn[] },
  now: Millis,
): FormerBrowser | null {
  const token = formerDeviceToken(id, sessionId)
  const known = { openedAt: null, openedWith: null, openedFrom: null, passedFactor: null, usedAt: seenAt }
  const signIns = had.signIns
    .map((one) => ({ ...known, isRemembered: true, ...one }))
    .filter((one) => isAlive(one, now))
    .slice(0, MAX_ACCOUNTS)
  return token === null || signIns.length === 0 ? null : { tokenHash: opaqueTokenHash(token)!, signIns }
}

type FormerSignIn = Pick<SignIn, 'did' | 'signedInAt'>

/** Store a browser of another server. Does nothing if it is already stored. */
export const keepBrowser = (tx: Tx, { tokenHash, signIns }: FormerBrowser): Promise<void> =>
  // The program is noted when the browser first comes here.
  insertDevice(tx, { tokenHash, program: null }, signIns, lastEndOf(signIns))

/** When the last of these sign-ins ends in any case. */
const lastEndOf = (signIns: readonly SignIn[]): Millis => Math.max(...signIns.map((one) => endsOf(one).last))

async function liveSignInsOf(reader: Reader, key: DeviceKey, now: Millis): Promise<SignIn[]> {
  return (await signInsOf(reader, key, now)).filter((one) => isAlive(one, now))
}

/** A browser in which an account is signed in. */
export interface ListedBrowser extends KnownBrowser {
  ends: ReturnType<typeof endsOf>
}

/** Returns the browsers in which the account is signed in, most recent sign-in first. */
export async function listBrowsers(reader: Reader, did: Did, now: Millis): Promise<ListedBrowser[]> {
  const live = (await browsersOf(reader, did, now)).filter((one) => isAlive(one, now))
  return live.map((one) => ({ ...one, ends: endsOf(one) }))
}

/** Returns the browser, or null if no account is, or was to stay, signed in there. */
export async function deviceOf(exchange: Exchange): Promise<Device | null> {
  const { ctx } = exchange
  const token = await settledTokenOf(exchange)
  const tokenHash = token && opaqueTokenHash(token)
  if (!token || !tokenHash) return null
  const now = ctx.clock.now()
  const program = programIn(exchange)
  const signIns = await signInsOf(ctx.db, { tokenHash, program }, now)
  const known = signIns.filter((one) => isKnown(one, now))
  const found = await Promise.all(known.map((one) => signedInOf(ctx, { tokenHash, program }, one)))
  const shown = found.flatMap((one) => one ?? [])
  if (shown.length === 0) return null
  const accounts = shown.filter((one) => one.isAlive)
  const former = shown.filter((one) => !one.isAlive)
  return { tokenHash, program, accounts, former, known: [...accounts, ...former], formToken: formTokenOf(token) }
}

async function signedInOf(
  ctx: Context,
  key: DeviceKey,
  signIn: SignIn,
): Promise<(SignedIn & { isAlive: boolean }) | null> {
  const { did, signedInAt, passedFactor, usedAt, isRemembered } = signIn
  const account = await accountOf(ctx.db, did)
  if (!account || account.takedownRef !== null) return null
  const now = ctx.clock.now()
  const age = ageOf(signedInAt, now)
  const alive = isAlive(signIn, now)
  return {
    account,
    signedInAt,
    isAlive: alive,
    isStale: !alive || age > FRESH_SECS * 1000,
    isProven: alive && age <= PROVEN_SECS * 1000,
    isRemembered,
    passedFactor,
    noteUse() {
      if (alive && isUseDue(usedAt, now))
        ctx.background.run('note of the use of a browser', () => noteBrowserUse(ctx.db, key.tokenHash, did, now))
    },
    revalidate: (reader) => requireSignedIn(reader, key, did, now),
  }
}

/** `at` is the time of the request: a sign-in that expires while the request runs does not end it. */
async function requireSignedIn(reader: Reader, device: DeviceKey, did: Did, at: Millis): Promise<void> {
  const signIns = await liveSignInsOf(reader, device, at)
  if (!signIns.some((signIn) => signIn.did === did)) throw authenticationRequired('You have been signed out')
}

const formTokenOf = (token: string): string =>
  createHmac('sha256', parseOpaqueToken(token)!).update('form').digest('base64url')

interface Remembered {
  /** Whether the account stays signed in when the browser is closed. */
  remember: boolean
  /** The second factor that was used. */
  passedFactor?: PassedFactor | null
}

/** Sign an account in, in this browser. The response sets a new cookie. */
export async function signIn(
  exchange: Exchange,
  did: Did,
  { remember, passedFactor, enter }: Remembered & { enter?: (tx: Tx) => Promise<void> },
): Promise<void> {
  const entry = entryOf(exchange, { remember, passedFactor })
  await exchange.ctx.db.transaction(async (tx) => {
    await enter?.(tx)
    await entry.keep(tx, did)
  })
  entry.tell()
}

/**
 * Returns a sign-in in two steps, for callers with a transaction of their own: `keep` stores it in the transaction, and
 * `tell` sets the cookie after the commit.
 */
export function entryOf(
  exchange: Exchange,
  { remember, passedFactor = null }: Remembered,
): { keep(tx: Tx, did: Did): Promise<void>; tell(): void } {
  const { ctx, replyHeaders } = exchange
  const before = opaqueTokenHash(tokenOf(exchange) ?? formerTokenOf(exchange) ?? '')
  const { token, hash } = newToken()
  const now = ctx.clock.now()
  let maxAgeSecs: number | null = null
  const origin = requestOrigin(exchange)
  const language = personsLanguage(exchange)
  const program = programIn(exchange)
  return {
    async keep(tx, did) {
      const known = before ? await signInsOf(tx, { tokenHash: before, program }, now) : []
      const first = known.find((one) => one.did === did && one.openedAt !== null) ?? origin
      const others = known.filter((one) => one.did !== did && isKnown(one, now))
      const own = { ...first, did, signedInAt: now, passedFactor, usedAt: now, isRemembered: remember }
      const signIns = [own, ...others].slice(0, MAX_ACCOUNTS)
      const lasting = signIns.filter((one) => one.isRemembered)
      if (lasting.length > 0) maxAgeSecs = Math.ceil((lastEndOf(lasting) - now) / 1000)
      if (before) await deleteDevice(tx, before)
      await makeRoomForSignIn(tx, did)
      await insertDevice(tx, { tokenHash: hash, program }, signIns, lastEndOf(signIns))
      if (language !== null) await keepMailLanguage(tx, did, language, { isChosen: false })
    },
    tell: () => replyHeaders.append('Set-Cookie', cookie(ctx, cookieName(ctx), token, maxAgeSecs)),
  }
}

/** Sign one account out of this browser. If it was the last one, forget the browser. */
export async function signOut({ ctx, replyHeaders }: Exchange, device: Device, did: Did): Promise<void> {
  const isLast = device.accounts.every(({ account }) => account.did === did)
  await ctx.db.transaction((tx): Promise<unknown> =>
    isLast ? deleteDevice(tx, device.tokenHash) : deleteSignIn(tx, device.tokenHash, did),
  )
  if (isLast) replyHeaders.append('Set-Cookie', cookie(ctx, cookieName(ctx), '', 0))
}

/** A null age makes a session cookie, which ends when the browser closes. */
function cookie(ctx: Context, name: string, value: string, maxAgeSecs: number | null): string {
  const age = maxAgeSecs === null ? '' : `; Max-Age=${maxAgeSecs}`
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Lax${isSecure(ctx) ? '; Secure' : ''}${age}`
}

// Protection against cross-site request forgery

const refusedForm = () => new Refusal(403, 'Forbidden', inEnglish(layoutTexts.formNotOurs))

/**
 * Returns the hidden field that proves that a form is from our page, or null if the browser needs none. A browser
 * without Fetch Metadata that hides the origin, as browsers do for pages without a referrer, must send the page's
 * token. The token is derived from a cookie, which another site can neither read nor set.
 */
export function formProof(call: PageCall, device: Device | null = null): Html[] | null {
  if (device) return hidden({ form_token: device.formToken })
  return call.request.headers.has('sec-fetch-site') ? null : hidden({ form_token: formTokenOf(formCookieOf(call)) })
}

/** Returns the token in the form cookie. If the browser has none, the response sets one, once. */
function formCookieOf({ ctx, request, replyHeaders }: PageCall): string {
  const kept =
    cookieIn(replyHeaders.getSetCookie(), formCookieName(ctx)) ?? cookieOf(request, formCookieName(ctx)) ?? ''
  if (parseOpaqueToken(kept)) return kept
  const { token } = newToken()
  replyHeaders.append('Set-Cookie', cookie(ctx, formCookieName(ctx), token, null))
  return token
}

/**
 * Returns the hash of a secret that only this browser has, even if no account is signed in there. Another site can
 * neither read nor set it.
 */
export const browserHashOf = (call: PageCall): string => opaqueTokenHash(formCookieOf(call))!

/**
 * Each account trusts a browser by a cookie of its own: people who share a browser may have read each other's cookies.
 */
const trustCookieName = (ctx: Context, did: Did) =>
  `${cookieName(ctx)}-trust-${createHash('sha256').update(did).digest('hex').slice(0, 16)}`

/** Returns the hash of the secret by which an account trusts this browser; null if there is none. */
export const trustHashOf = ({ ctx, request }: PageCall, did: Did): string | null =>
  opaqueTokenHash(cookieOf(request, trustCookieName(ctx, did)) ?? '')

/**
 * Returns a new secret by which an account will trust this browser. A secret that was planted or copied before is then
 * useless. `tell` sets the cookie, after the commit.
 */
export function newTrust(call: PageCall, did: Did): NewTrust & { tell(): void } {
  const { ctx, replyHeaders } = call
  const { token, hash } = newToken()
  return {
    before: trustHashOf(call, did),
    hash,
    tell: () => replyHeaders.append('Set-Cookie', cookie(ctx, trustCookieName(ctx, did), token, TRUST_SECS)),
  }
}

/**
 * Returns a form that was sent from a page of this origin. Throws `Forbidden` otherwise. A request without any origin
 * header is not from a browser, and is accepted. `needsNoCookie`: also accept a browser that hides the origin, although
 * only a cookie could prove that the form is ours.
 */
export async function readOwnForm(call: PageCall, { needsNoCookie = false } = {}): Promise<URLSearchParams> {
  const isHidden = requireOwnOrigin(call)
  const form = await readForm(call)
  if (isHidden && !needsNoCookie) requireOwnToken(call, form)
  return form
}

/** Like `readOwnForm`, for a form with a file: calls `work` before the file is read. */
export async function withOwnUpload(
  call: PageCall,
  work: (form: UploadedForm) => Promise<Response>,
): Promise<Response> {
  const isHidden = requireOwnOrigin(call)
  return withUpload(call.body, (form) => {
    if (isHidden) requireOwnToken(call, form.fields)
    return work(form)
  })
}

/** Returns whether the browser hides where the form comes from. Throws `Forbidden` if it comes from another site. */
export function requireOwnOrigin({ ctx, request }: PageCall): boolean {
  const site = request.headers.get('sec-fetch-site')
  const origin = request.headers.get('origin')
  const isHidden = site === null && origin === 'null'
  const isOwn = site === null ? origin === null || origin === ctx.config.publicUrl : site === 'same-origin'
  if (!isOwn && !isHidden) throw refusedForm()
  return isHidden
}

function requireOwnToken(call: PageCall, form: URLSearchParams): void {
  if (!ownFormTokens(call).includes(form.get('form_token') ?? '')) throw refusedForm()
}

/** The form tokens that pages in this browser may contain. */
const ownFormTokens = (call: PageCall): string[] =>
  [tokenOf(call), cookieOf(call.request, formCookieName(call.ctx))].flatMap((found) => {
    const token = found ?? ''
    return parseOpaqueToken(token) ? [formTokenOf(token)] : []
  })

/**
 * Throws `Forbidden` unless the form contains the page's token, as every form that acts for a signed-in account must.
 */
export function requireFormToken(device: Device, form: URLSearchParams): void {
  if (form.get('form_token') !== device.formToken) throw refusedForm()
}

/**
 * Throws `InvalidRequest` unless the page is opened in a tab, and not fetched by a script or embedded in another page.
 */
export function requireNavigation({ request }: Exchange): void {
  const mode = request.headers.get('sec-fetch-mode') ?? 'navigate'
  const destination = request.headers.get('sec-fetch-dest') ?? 'document'
  if (mode !== 'navigate' || destination !== 'document')
    throw new Refusal(400, 'InvalidRequest', inEnglish(layoutTexts.ownTab))
}
