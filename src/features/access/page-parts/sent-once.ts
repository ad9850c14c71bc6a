/**
 * A form that a browser sends twice is carried out once. After a double click, a browser drops the response to the
 * first request and shows the response to the second, which would say that the handle is taken, that the app's request
 * has ended, or nothing at all. So both requests get the response to the first. This works within one node.
 */
import { createHash } from 'node:crypto'
import { WholeResponse } from '../../../http/encoding.ts'
import { perContext } from '../../../platform/context.ts'
import { PENDING_ID, type PageCall } from './form-parts.ts'
import { passkeyAnswer } from './passkey-part.ts'

/**
 * How long the response to a form is remembered after it was carried out. The second request may arrive after the first
 * one is done, because the browser has not received the response yet.
 */
const KEPT_MILLIS = 5000
const MAX_KEPT = 1000

/** A response that can be given twice. */
interface Shared {
  status: number
  headers: readonly (readonly [string, string])[]
  whole: string | Uint8Array | null
  cookies: readonly string[]
}

const sent = perContext(() => new Map<string, Promise<Shared | null>>())

/**
 * Call `work` for a form, unless this browser has just sent the same one. Only a redirect is remembered for a moment,
 * because it says that something was done. Any other page is shared only while it is being made, and a stream never.
 * Forms with a passkey or a code of a second factor are not shared either, because these count only once.
 *
 * Only for forms that contain a secret, or that come with the sign-in cookie: the request must identify the browser.
 * With a secret in the form, cookies are ignored, because the browser may already have new ones from the first response
 * when it sends the second request.
 */
export async function sentOnce(
  call: PageCall,
  form: URLSearchParams,
  work: () => Promise<Response>,
): Promise<Response> {
  if (passkeyAnswer(form) !== null || form.has(PENDING_ID)) return work()
  const forms = sent(call.ctx)
  const key = keyOf(call, form)
  const first = forms.get(key)
  if (first !== undefined) {
    const shared = await first
    return shared === null ? work() : again(call, shared)
  }
  const before = call.replyHeaders.getSetCookie().length
  const response = work()
  const running = response.then((one) => sharedOf(one, call.replyHeaders.getSetCookie().slice(before)))
  forms.set(key, running)
  const forget = () => void forms.delete(key)
  running.then((shared) => {
    if (shared?.status === 303 && forms.size <= MAX_KEPT) setTimeout(forget, KEPT_MILLIS).unref()
    else forget()
  }, forget)
  return response
}

/** Fields whose value only one person, or one browser, knows. */
const secretFields = ['password', 'form_token'] as const

/** Identifies a form: two requests that a browser sends for one form have the same key. */
function keyOf({ request, url, client }: PageCall, form: URLSearchParams): string {
  const { headers } = request
  const hasSecret = secretFields.some((name) => (form.get(name) ?? '') !== '')
  const parts = [
    url.pathname + url.search,
    hasSecret ? null : headers.get('cookie'),
    headers.get('user-agent'),
    client.address,
    form.toString(),
  ]
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64url')
}

function sharedOf(response: Response, cookies: readonly string[]): Shared | null {
  const whole = response instanceof WholeResponse ? response.whole : null
  if (whole === null && response.body !== null) return null
  return { status: response.status, headers: [...response.headers], whole, cookies }
}

function again({ replyHeaders }: PageCall, { status, headers, whole, cookies }: Shared): Response {
  for (const one of cookies) replyHeaders.append('Set-Cookie', one)
  const init = { status, headers: headers.map(([name, value]): [string, string] => [name, value]) }
  return whole === null ? new Response(null, init) : new WholeResponse(whole, init)
}
