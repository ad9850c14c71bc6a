/**
 * The browser that a page is shown in, and who is signed in there. A cookie holds an opaque token; every sign-in
 * replaces it, so that a token which was planted beforehand opens nothing.
 *
 * Pages alone look at the cookie: no endpoint of the API does.
 */
import { createHmac } from 'node:crypto'
import type { Exchange } from '../../http/endpoint.ts'
import { Refusal } from '../../http/errors.ts'
import type { Html } from '../../http/html.ts'
import { ageOf } from '../../platform/running/clock.ts'
import { originOf } from '../../http/origin.ts'
import type { Context } from '../../platform/context.ts'
import type { Tx } from '../../platform/database/database.ts'
import { newToken } from '../../platform/secrets/new-token.ts'
import type { Did } from '../../protocol/identifiers.ts'
import { opaqueTokenHash, parseOpaqueToken } from '../../protocol/opaque-token.ts'
import { accountOf, type Account } from '../accounts/accounts.ts'
import { deleteDevice, deleteSignIn, insertDevice, signInsOf } from './device-store.ts'
import { hidden, readForm, type PageCall } from './page-parts.ts'

/** With "stay signed in", and without: until the browser closes, but not for long. */
const REMEMBERED_SECS = 90 * 86_400
const UNREMEMBERED_SECS = 3600
/** After this the password is asked for again. */
const FRESH_SECS = 7 * 86_400
const MAX_ACCOUNTS = 8

export interface SignedIn {
  account: Account
  /** The password was given long ago and is asked for again. */
  isStale: boolean
}

export interface Device {
  tokenHash: string
  /** The newest sign-in first. */
  accounts: readonly SignedIn[]
  /** Goes into every form that acts for somebody who is signed in, and comes back with it. */
  formToken: string
}

/** To be waited for in the transaction that gives something for a sign-in: throws when the password was replaced meanwhile. */
export type Confirm = (tx: Tx) => Promise<void>

const isSecure = ({ config }: Context) => config.publicUrl.startsWith('https://')
/** The prefix makes browsers insist on https, on this very host, and on the whole of it. */
const cookieName = (ctx: Context) => (isSecure(ctx) ? '__Host-holdfast' : 'holdfast')
const formCookieName = (ctx: Context) => `${cookieName(ctx)}-form`

/** Null when nobody is signed in in this browser. */
export async function deviceOf({ ctx, request }: Exchange): Promise<Device | null> {
  const token = cookieOf(request, cookieName(ctx))
  const tokenHash = token && opaqueTokenHash(token)
  if (!token || !tokenHash) return null
  const now = ctx.clock.now()
  const found = await Promise.all(
    (await signInsOf(ctx.db, tokenHash, now)).map(async ({ did, signedInAt }) => {
      const account = await accountOf(ctx.db, did)
      return account && { account, isStale: ageOf(signedInAt, now) > FRESH_SECS * 1000 }
    }),
  )
  const accounts = found.filter((signedIn) => signedIn !== null && signedIn.account.takedownRef === null) as SignedIn[]
  return accounts.length === 0 ? null : { tokenHash, accounts, formToken: formTokenOf(token) }
}

function cookieOf(request: Request, name: string): string | null {
  const pair = (request.headers.get('cookie') ?? '').split(/;\s*/).find((one) => one.startsWith(`${name}=`))
  return pair?.slice(name.length + 1) ?? null
}

const formTokenOf = (token: string): string => createHmac('sha256', parseOpaqueToken(token)!).update('form').digest('base64url')

/** Sign an account in, in this browser. The answer gets a new cookie. */
export async function signIn(exchange: Exchange, did: Did, { remember, confirm }: { remember: boolean; confirm?: Confirm }): Promise<void> {
  const entry = entryOf(exchange, { remember })
  await exchange.ctx.db.transaction(async (tx) => {
    await confirm?.(tx)
    await entry.keep(tx, did)
  })
  entry.tell()
}

/** A sign-in in two halves, for who has a transaction of their own: `keep` stores it there, `tell` gives the browser its cookie afterwards. */
export function entryOf(exchange: Exchange, { remember }: { remember: boolean }): { keep(tx: Tx, did: Did): Promise<void>; tell(): void } {
  const { ctx, replyHeaders, request } = exchange
  const before = opaqueTokenHash(cookieOf(request, cookieName(ctx)) ?? '')
  const { token, hash } = newToken()
  const now = ctx.clock.now()
  const lifeSecs = remember ? REMEMBERED_SECS : UNREMEMBERED_SECS
  const origin = originOf(exchange)
  return {
    async keep(tx, did) {
      const known = before ? await signInsOf(tx, before, now) : []
      const first = known.find((one) => one.did === did && one.openedAt !== null) ?? origin
      const others = known.filter((one) => one.did !== did)
      if (before) await deleteDevice(tx, before)
      await insertDevice(tx, hash, [{ ...first, did, signedInAt: now }, ...others].slice(0, MAX_ACCOUNTS), now + lifeSecs * 1000)
    },
    tell: () => replyHeaders.append('Set-Cookie', cookie(ctx, cookieName(ctx), token, remember ? lifeSecs : null)),
  }
}

/** Sign one account out of this browser, and forget the browser with the last one. */
export async function signOut({ ctx, replyHeaders }: Exchange, device: Device, did: Did): Promise<void> {
  const isLast = device.accounts.every(({ account }) => account.did === did)
  await ctx.db.transaction((tx): Promise<unknown> => (isLast ? deleteDevice(tx, device.tokenHash) : deleteSignIn(tx, device.tokenHash, did)))
  if (isLast) replyHeaders.append('Set-Cookie', cookie(ctx, cookieName(ctx), '', 0))
}

/** Without an age it goes with the browser. */
function cookie(ctx: Context, name: string, value: string, maxAgeSecs: number | null): string {
  const age = maxAgeSecs === null ? '' : `; Max-Age=${maxAgeSecs}`
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Lax${isSecure(ctx) ? '; Secure' : ''}${age}`
}

// Against requests that another site makes in somebody's browser

const refusedForm = () => new Refusal(403, 'Forbidden', 'This form was not sent from a page of ours. Please go back, reload and try again.')

/**
 * For forms that anybody may send. Browsers that do not name the site a form comes from (Fetch Metadata) and hide its
 * origin, as they do for pages without referrer, have to bring the token of the page: it belongs to a cookie of its
 * own, which another site can neither read nor set. Null for browsers that need none.
 */
export function formProof(call: PageCall, device: Device | null = null): Html[] | null {
  if (device) return hidden({ form_token: device.formToken })
  const { ctx, request, replyHeaders } = call
  if (request.headers.has('sec-fetch-site')) return null
  const kept = cookieOf(request, formCookieName(ctx)) ?? ''
  const token = parseOpaqueToken(kept) ? kept : newToken().token
  if (token !== kept) replyHeaders.append('Set-Cookie', cookie(ctx, formCookieName(ctx), token, null))
  return hidden({ form_token: formTokenOf(token) })
}

/** A form, which must come from a page of this origin. What says nothing about where it comes from is no browser. */
export async function readOwnForm(call: PageCall): Promise<URLSearchParams> {
  const { ctx, request } = call
  const site = request.headers.get('sec-fetch-site')
  const origin = request.headers.get('origin')
  const isHidden = site === null && origin === 'null'
  const isOwn = site === null ? origin === null || origin === ctx.config.publicUrl : site === 'same-origin'
  if (!isOwn && !isHidden) throw refusedForm()
  const form = await readForm(call)
  if (isHidden && !ownFormTokens(call).includes(form.get('form_token') ?? '')) throw refusedForm()
  return form
}

/** Tokens that pages shown in this browser may carry. */
const ownFormTokens = ({ ctx, request }: PageCall): string[] =>
  [cookieName(ctx), formCookieName(ctx)].flatMap((name) => {
    const token = cookieOf(request, name) ?? ''
    return parseOpaqueToken(token) ? [formTokenOf(token)] : []
  })

/** And what acts for somebody who is signed in must carry the token of the page. */
export function requireFormToken(device: Device, form: URLSearchParams): void {
  if (form.get('form_token') !== device.formToken) throw refusedForm()
}

/** A page is opened in a tab of its own, not fetched by a script or put into another page. */
export function requireNavigation({ request }: Exchange): void {
  const mode = request.headers.get('sec-fetch-mode') ?? 'navigate'
  const destination = request.headers.get('sec-fetch-dest') ?? 'document'
  if (mode !== 'navigate' || destination !== 'document') throw new Refusal(400, 'InvalidRequest', 'This page can only be opened in a tab of its own.')
}
