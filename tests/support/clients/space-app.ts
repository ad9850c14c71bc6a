/** An app that was granted something in spaces. */
import type { Answer, request } from './http.ts'
import { loopbackClientId, OAuthClient } from './oauth-client.ts'
import type { TestAccount } from './account.ts'
import type { TestPds } from '../servers/pds.ts'

export interface SpaceApp {
  /** The scopes of the token, without the base scope. */
  granted: string[]
  /** Calls a method of `com.atproto.space`, or another by its whole name. */
  get(method: string, params?: Record<string, string | number | boolean>): Promise<Answer>
  post(method: string, json: object): Promise<Answer>
  call(nsid: string, init?: Parameters<typeof request>[1]): Promise<Answer>
}

const nsidOf = (method: string) => (method.includes('.') ? method : `com.atproto.space.${method}`)

/** Signs in an app with the scopes. */
export async function spaceApp(
  pds: Pick<TestPds, 'url' | 'ctx'>,
  { did, password }: TestAccount,
  ...scopes: string[]
): Promise<SpaceApp> {
  const scope = ['atproto', ...scopes].join(' ')
  const client = new OAuthClient(pds as TestPds, loopbackClientId(scope))
  const tokens = await client.signIn({ identifier: did, password }, { scope })
  const call: SpaceApp['call'] = (nsid, init = {}) => client.call(tokens.access_token, nsid, {}, init)
  return {
    granted: tokens.scope.split(' ').filter((one: string) => one !== 'atproto'),
    get: (method, params = {}) => call(`${nsidOf(method)}?${new URLSearchParams(params as Record<string, string>)}`),
    post: (method, json) => call(nsidOf(method), { json }),
    call,
  }
}
