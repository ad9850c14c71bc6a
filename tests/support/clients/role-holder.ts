/** An account that operates a server, with a role and a session of its own. */
import type { TestPds } from '../servers/pds.ts'
import { ADMIN_TOKEN } from '../servers/config.ts'
import { createAccount, PASSWORD, type TestAccount } from './account.ts'
import { bearer, request, type Answer } from './http.ts'

export interface RoleHolder extends TestAccount {
  /** Token of its session as an operator. */
  token: string
  /** Calls with that token: GET, or POST when there is `json`. */
  operate(path: string, init?: Parameters<typeof request>[1]): Promise<Answer>
}

type Server = Pick<TestPds, 'url'>

/** Give an account a role, or (null) none, with the admin token. */
export const giveRole = (pds: Server, account: string, role: string | null): Promise<Answer> =>
  request(`${pds.url}/v1/admin/operators`, { json: { account, role }, headers: bearer(ADMIN_TOKEN) })

export const operatorSignIn = (pds: Server, account: string, password = PASSWORD): Promise<Answer> =>
  request(`${pds.url}/v1/admin/sessions`, { json: { account, password } })

export const operateAs = (pds: Server, token: string, path: string, init: Parameters<typeof request>[1] = {}) =>
  request(`${pds.url}${path}`, { ...init, headers: { ...bearer(token), ...(init.headers as Record<string, string>) } })

/** Create an account with a role, and sign it in. */
export async function roleHolder(pds: Server, name: string, role: string): Promise<RoleHolder> {
  const account = await createAccount(pds, name)
  const given = await giveRole(pds, account.did, role)
  if (given.status !== 200) throw new Error(JSON.stringify(given.body))
  const { token } = (await operatorSignIn(pds, account.did)).body
  return { ...account, token, operate: (path, init) => operateAs(pds, token, path, init) }
}
