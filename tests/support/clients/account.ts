/** An account holder, as seen by a client that keeps its tokens. */
import { bearer, request, type Answer } from './http.ts'
import type { TestPds } from '../servers/pds.ts'

export const PASSWORD = 'correct horse battery staple'

export interface TestAccount {
  did: string
  handle: string
  email: string
  password: string
  accessJwt: string
  refreshJwt: string
  /** Calls with the access token: GET, or POST when there is `json` or `method` says so. */
  call(nsid: string, init?: Parameters<typeof request>[1]): Promise<Answer>
}

/** Sign up `<name>.test` through the front door. Fails when the answer is not 200. */
export async function createAccount(
  pds: Pick<TestPds, 'url'>,
  name: string,
  input: Record<string, unknown> = {},
  headers: Record<string, string> = {},
): Promise<TestAccount> {
  const wanted = { handle: `${name}.test`, email: `${name}@example.com`, password: PASSWORD, ...input }
  const answer = await xrpc(pds, 'com.atproto.server.createAccount', { json: wanted, headers })
  if (answer.status !== 200) throw new Error(`sign-up answered ${answer.status} ${JSON.stringify(answer.body)}`)
  return holder(pds, { ...wanted, ...answer.body })
}

/** Log in again, with the password or an app password. */
export async function logIn(
  pds: Pick<TestPds, 'url'>,
  account: Pick<TestAccount, 'handle' | 'email'>,
  password: string,
  input: Record<string, unknown> = {},
): Promise<TestAccount> {
  const answer = await xrpc(pds, 'com.atproto.server.createSession', {
    json: { identifier: account.handle, password, ...input },
  })
  if (answer.status !== 200) throw new Error(`login answered ${answer.status} ${JSON.stringify(answer.body)}`)
  return holder(pds, { email: account.email, password, ...answer.body })
}

export function holder(pds: Pick<TestPds, 'url'>, fields: Omit<TestAccount, 'call'>): TestAccount {
  const { did, handle, email, password, accessJwt, refreshJwt } = fields
  return {
    did,
    handle,
    email,
    password,
    accessJwt,
    refreshJwt,
    call: (nsid, init = {}) =>
      xrpc(pds, nsid, {
        ...init,
        headers: { ...bearer(accessJwt), ...(init.headers as Record<string, string> | undefined) },
      }),
  }
}

export const xrpc = (pds: Pick<TestPds, 'url'>, nsid: string, init?: Parameters<typeof request>[1]): Promise<Answer> =>
  request(`${pds.url}/xrpc/${nsid}`, init)
