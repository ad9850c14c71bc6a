/**
 * A form that a browser sends twice is carried out once. A doubled click has the browser drop the response to the first
 * request and show the one to the second, which would say that the handle is taken, that the app's request has ended,
 * or nothing at all: both requests get the response to the first. It holds within one node.
 */
import { createHash } from 'node:crypto'
import { WholeResponse } from '../../../http/encoding.ts'
import { perContext } from '../../../platform/context.ts'
import { PENDING_ID, type PageCall } from './form-parts.ts'
import { passkeyAnswer } from './passkey-part.ts'

/**
 * How long what was done is remembered. The second request may arrive after the first one is done, because the browser
 * has not heard of that yet.
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
 * because it says that something was done. Another page is shared while it is being made; a stream never is. Nor is
 * what a passkey or a code of a second factor has proved, which counts once.
 *
 * Only for forms that have a secret in them, or the cookie of who is signed in: what tells browsers apart has to be in
 * the request. With a secret in the form, cookies do not count: the browser may have those of the first response by the
 * time that it sends the second request.
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

/** Fields with what only one person, or one browser, knows. */
const secretFields = ['password', 'form_token'] as const

/** What two requests have in common that a browser sends for one form. */
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
