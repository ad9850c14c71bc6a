/** Pages for signed-in account holders, forms that act for them, and who may send these. */
import { route, type Common, type Endpoint } from '../../../http/endpoint.ts'
import type { UploadedFile } from '../../../http/uploaded-form.ts'
import type { Account } from '../../identity/accounts/accounts.ts'
import {
  type Device,
  type SignedIn,
  deviceOf,
  readOwnForm,
  requireFormToken,
  requireNavigation,
  requireOwnOrigin,
  withOwnUpload,
} from './devices.ts'
import { seeOther, sentOnce, type PageCall } from '../page-parts/page-parts.ts'

export interface Holder {
  account: Account
  device: Device
  /** The second factor that was used at this sign-in, for actions that require more than a password. */
  passedFactor: SignedIn['passedFactor']
  isProven: boolean
  isRemembered: boolean
}

/**
 * Returns the requested account, or the one that signed in last if `wanted` is null; null if it is not signed in. After
 * that, `call.revalidate` throws if the account has been signed out in this browser.
 */
export async function holderOf(call: PageCall, wanted: string | null): Promise<Holder | null> {
  const device = await deviceOf(call)
  const found = device?.accounts.find(({ account }) => wanted === null || account.did === wanted)
  if (!device || !found) return null
  found.noteUse()
  const { account, passedFactor, isProven, isRemembered, revalidate } = found
  call.revalidate = revalidate
  return { account, device, passedFactor, isProven, isRemembered }
}

/** Where to send a browser that `holderOf` refuses. The URL names an account that was to stay signed in there. */
export async function signInUrl(call: PageCall, wanted: string | null): Promise<string> {
  const former = (await deviceOf(call))?.former.find(({ account }) => wanted === null || account.did === wanted)
  return former ? signInAgainUrl(former.account) : '/account/sign-in'
}

export const signInAgainUrl = ({ handle, did }: Account): string =>
  `/account/sign-in?${new URLSearchParams({ identifier: handle ?? did })}`

/**
 * Returns the address of a page for account holders. `page` may name a part of it: `/account#handle`. If `did` is null,
 * the page is for the account that signed in last.
 */
export function holderUrl(page: string, did: string | null, more: Readonly<Record<string, string>> = {}): string {
  const query = new URLSearchParams({ ...(did !== null && { account: did }), ...more }).toString()
  return query === '' ? page : page.replace(/#|$/, (part) => `?${query}${part}`)
}

/**
 * Declare a page for account holders, whose address names the account. `requires` throws if a browser must not get the
 * page: it has to open the page in a tab if `requires` is omitted.
 */
export const holderPage = (
  path: string,
  show: (call: PageCall, holder: Holder) => Promise<Response>,
  {
    requires = requireNavigation,
    ...options
  }: Pick<Common<null>, 'limit'> & { requires?: (call: PageCall) => void } = {},
): Endpoint =>
  route('GET', path, {
    ...options,
    async handler(call) {
      requires(call)
      const wanted = call.url.searchParams.get('account')
      const holder = await holderOf(call, wanted)
      return holder ? show(call, holder) : seeOther(await signInUrl(call, wanted))
    },
  })

/**
 * Declare a form for account holders, which names its account and carries the token of the page. `isOnce`: if the
 * browser sends the form twice, it is carried out once.
 */
export const holderForm = (
  path: string,
  work: (call: PageCall, holder: Holder, form: URLSearchParams) => Promise<Response>,
  { isOnce = false, ...options }: Pick<Common<null>, 'long'> & { isOnce?: boolean } = {},
): Endpoint => {
  const carryOut = async (call: PageCall, form: URLSearchParams): Promise<Response> => {
    const holder = await holderOf(call, form.get('account'))
    if (!holder) return seeOther(await signInUrl(call, form.get('account')))
    requireFormToken(holder.device, form)
    return work(call, holder, form)
  }
  return route('POST', path, {
    ...options,
    async handler(call) {
      const form = await readOwnForm(call)
      return isOnce ? sentOnce(call, form, () => carryOut(call, form)) : carryOut(call, form)
    },
  })
}

/**
 * Declare a form as `holderForm` does, with a file that `work` reads as it arrives; null if none was chosen. A form
 * without a sign-in is not read at all.
 */
export const holderUpload = (
  path: string,
  work: (call: PageCall, holder: Holder, fields: URLSearchParams, file: UploadedFile | null) => Promise<Response>,
): Endpoint =>
  route('POST', path, {
    long: true,
    async handler(call) {
      requireOwnOrigin(call)
      if ((await deviceOf(call)) === null) return seeOther(await signInUrl(call, null))
      return withOwnUpload(call, async ({ fields, file }) => {
        const wanted = fields.get('account')
        const holder = await holderOf(call, wanted)
        if (!holder) return seeOther(await signInUrl(call, wanted))
        requireFormToken(holder.device, fields)
        return work(call, holder, fields, file)
      })
    },
  })
