/** Two people and what is between them: one shares an account, the other acts for it in a browser. */
import { request, bearer, type Answer } from './http.ts'
import { hiddenFields, tickedScopes } from './oauth-client.ts'
import { CookieBrowser } from './wallet-sign-in.ts'
import type { TestAccount } from './account.ts'

type Server = ConstructorParameters<typeof CookieBrowser>[0]

/** Calls an endpoint of account holders: GET, or POST when there is `json`. */
export const ownerCall = (pds: Server, { accessJwt }: Pick<TestAccount, 'accessJwt'>, path: string, json?: unknown) =>
  request(`${pds.url}/v1/${path}`, { headers: bearer(accessJwt), ...(json === undefined ? {} : { json }) })

/** Invite an account. Returns the id of the invitation. */
export async function invite(
  pds: Server,
  holder: TestAccount,
  delegate: Pick<TestAccount, 'handle'>,
  terms: Record<string, unknown> = {},
): Promise<string> {
  const { status, body } = await ownerCall(pds, holder, 'delegates', { delegate: delegate.handle, ...terms })
  if (status !== 200) throw new Error(`the invitation was refused: ${JSON.stringify(body)}`)
  return body.id
}

/** Invite an account, which accepts. Returns the id of the delegation. */
export async function share(
  pds: Server,
  holder: TestAccount,
  delegate: TestAccount,
  terms: Record<string, unknown> = {},
): Promise<string> {
  const id = await invite(pds, holder, delegate, terms)
  const { status, body } = await ownerCall(pds, delegate, `shared-accounts/${id}/accept`, {})
  if (status !== 200) throw new Error(`the invitation was not accepted: ${JSON.stringify(body)}`)
  return id
}

/** The browser of a person who acts for others. */
export class DelegateBrowser extends CookieBrowser {
  async signIn({ handle, password }: Pick<TestAccount, 'handle' | 'password'>): Promise<this> {
    const { status, body } = await this.send('/account/sign-in', { identifier: handle, password })
    if (status !== 303) throw new Error(`not signed in: ${status} ${body}`)
    return this
  }

  /** Opens an app's request, and allows all that it asks for as the account, or the delegation, that is chosen. */
  async allow(authorizeUrl: string, account: string, changes: Record<string, string> = {}): Promise<Answer> {
    const { pathname, search } = new URL(authorizeUrl)
    return this.answer((await this.open(pathname + search)).body, account, changes)
  }

  /** Sends the form of a page of a request. */
  async answer(page: string, account: string, changes: Record<string, string> = {}): Promise<Answer> {
    const form = new URLSearchParams({ ...hiddenFields(page), account, action: 'approve', ...changes })
    for (const scope of tickedScopes(page)) form.append('granted_scope', scope)
    return this.send('/oauth/authorize', form)
  }
}

/** Where an answer leads back to. Throws if it leads nowhere. */
export function returned({ status, headers, body }: Answer): URLSearchParams {
  const location = headers.get('location')
  if (location === null) throw new Error(`no redirect: ${status} ${body}`)
  return new URL(location).searchParams
}
