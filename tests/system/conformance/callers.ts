/** One caller of each kind, ready to call. */
import type { Did } from '../../../src/protocol/identifiers.ts'
import { formatDidKey, signingKey } from '../../../src/protocol/keys.ts'
import { formatServiceToken } from '../../../src/protocol/service-token.ts'
import { createAccount, logIn, type TestAccount } from '../../support/clients/account.ts'
import { basic, bearer, request, type Answer } from '../../support/clients/http.ts'
import { loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { ADMIN_TOKEN, MASTER_KEY, startPds, type TestPds } from '../../support/servers/pds.ts'
import { startUpstream, type Upstream } from '../../support/servers/upstream.ts'

/** As in `served-methods.ts`, and `app`: an app with the grants that are asked for. */
export type Kind = '-' | 'F' | 'V' | 'A' | 'T' | 'R' | 'B' | 'M'

type Init = Parameters<typeof request>[1]

/** Their addresses are configured, so that nobody looks them up; and a scope cannot name a port. */
export const SERVICES = { appview: 'did:web:appview.test' as Did, reports: 'did:web:reports.test' as Did }

/** What a table of methods is made for: somebody's DID, or one that stands for it until the server runs. */
export const subjectsOf = (did = 'did:plc:placeholder') => ({
  did,
  handle: 'alice.test',
  appview: `${SERVICES.appview}#bsky_appview`,
  reports: `${SERVICES.reports}#atproto_labeler`,
})

export const operator = basic('admin', ADMIN_TOKEN)

export interface Stage extends AsyncDisposable {
  pds: TestPds
  appview: Upstream
  /** Another service that a token may be for. */
  elsewhere: Upstream
  alice: TestAccount
  /** Was taken down. */
  trudy: TestAccount
  headers(kind: Kind, nsid: string): Record<string, string>
  /** Call as an app that was granted `scope` and the base. */
  asApp(scope: string, path: string, init?: Init): Promise<Answer>
  /** Call with an app password that is limited to `scope` and the base. */
  asAppPassword(scope: string, path: string, init?: Init): Promise<Answer>
}

export async function openStage(): Promise<Stage> {
  const [appview, elsewhere] = [startUpstream(), startUpstream()]
  const moderationKey = signingKey('k256', crypto.getRandomValues(new Uint8Array(32)))
  elsewhere.document['verificationMethod'] = [
    {
      id: `${elsewhere.did}#atproto_label`,
      type: 'Multikey',
      controller: elsewhere.did,
      publicKeyMultibase: formatDidKey(moderationKey.publicKey).slice('did:key:'.length),
    },
  ]
  const pds = await startPds({
    signingKeyMasterKey: MASTER_KEY,
    rateLimit: { enabled: false },
    appview: { url: appview.url, did: `${SERVICES.appview}#bsky_appview` },
    moderation: { did: elsewhere.did, reportUrl: elsewhere.url, reportDid: SERVICES.reports },
  })
  const alice = await createAccount(pds, 'alice')
  const appPassword = async (privileged: boolean) => {
    const made = await alice.call('com.atproto.server.createAppPassword', {
      json: { name: privileged ? 'privileged' : 'plain', privileged },
    })
    return logIn(pds, alice, made.body.password)
  }
  const [privileged, plain] = [await appPassword(true), await appPassword(false)]
  const trudy = await takeDown(pds, await createAccount(pds, 'trudy'))
  const clients = new Map<string, Promise<{ client: OAuthClient; token: string }>>()

  const headers = (kind: Kind, nsid: string): Record<string, string> => {
    const nowSecs = Math.floor(pds.clock.now() / 1000)
    switch (kind) {
      case '-':
        return {}
      case 'F':
        return bearer(alice.accessJwt)
      case 'V':
        return bearer(privileged.accessJwt)
      case 'A':
        return bearer(plain.accessJwt)
      case 'T':
        return bearer(trudy.accessJwt)
      case 'R':
        return bearer(alice.refreshJwt)
      case 'B':
        return operator
      case 'M':
        return bearer(
          formatServiceToken(moderationKey, {
            iss: `${elsewhere.did}#atproto_labeler` as never,
            aud: pds.ctx.config.serverDid,
            lxm: nsid,
            iat: nowSecs,
            exp: nowSecs + 60,
            jti: crypto.randomUUID(),
          }),
        )
    }
  }

  const signIn = async (scope: string) => {
    const full = ['atproto', scope].filter(Boolean).join(' ')
    const client = new OAuthClient(pds, loopbackClientId(full))
    const { access_token: token } = await client.signIn(
      { identifier: alice.handle, password: alice.password },
      { scope: full },
    )
    return { client, token }
  }

  const scoped = new Map<string, Promise<TestAccount>>()
  const withAppPassword = async (scope: string) => {
    const { body } = await request(`${pds.url}/v1/app-passwords`, {
      json: { name: `scoped ${scope}`, scope: `atproto ${scope || 'rpc:test.nothing.here?aud=*'}` },
      headers: bearer(alice.accessJwt),
    })
    return logIn(pds, alice, body.password)
  }

  return {
    pds,
    appview,
    elsewhere,
    alice,
    trudy,
    headers,
    async asApp(scope, path, init = {}) {
      const opening = clients.get(scope) ?? signIn(scope)
      clients.set(scope, opening)
      const { client, token } = await opening
      return client.call(token, path, {}, init)
    },
    async asAppPassword(scope, path, init = {}) {
      const opening = scoped.get(scope) ?? withAppPassword(scope)
      scoped.set(scope, opening)
      const { accessJwt } = await opening
      return request(`${pds.url}/xrpc/${path}`, { ...init, headers: { ...init?.headers, ...bearer(accessJwt) } })
    },
    async [Symbol.asyncDispose]() {
      await pds[Symbol.asyncDispose]()
      await Promise.all([appview[Symbol.asyncDispose](), elsewhere[Symbol.asyncDispose]()])
    },
  }
}

/** By the operator; answers the account with the limited session that is left to it. */
export async function takeDown(pds: TestPds, account: TestAccount): Promise<TestAccount> {
  await setTakedown(pds, account.did, true)
  return logIn(pds, account, account.password, { allowTakendown: true })
}

export async function setTakedown(pds: Pick<TestPds, 'url'>, did: string, applied: boolean): Promise<void> {
  const answer = await request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
    json: { subject: { $type: 'com.atproto.admin.defs#repoRef', did }, takedown: { applied } },
    headers: operator,
  })
  if (answer.status !== 200) throw new Error(`the takedown answered ${answer.status} ${JSON.stringify(answer.body)}`)
}
