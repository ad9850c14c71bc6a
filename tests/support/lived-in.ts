/** A server on which people have lived: every list on a page has something in it, in words that a test chooses. */
import type { Did } from '../../src/protocol/identifiers.ts'
import { createAccount, logIn, type TestAccount } from './clients/account.ts'
import { openAgentClaim, registerAgent as askForAccount } from './clients/agent.ts'
import { ownerCall, share, invite } from './clients/delegate.ts'
import { FactorHolder } from './clients/factor-holder.ts'
import { bearer, request } from './clients/http.ts'
import { OAuthClient } from './clients/oauth-client.ts'
import { registerDevices } from './clients/queued.ts'
import { registerAgent } from './clients/registered-agent.ts'
import { giveRole } from './clients/role-holder.ts'
import { png, Uploader } from './clients/uploader.ts'
import { ADMIN_TOKEN, MASTER_KEY } from './servers/config.ts'
import type { TestPds } from './servers/pds.ts'
import { until } from './until.ts'

export const APP_HOST = 'app.web.test'
export const APP_SCOPE = 'atproto transition:generic repo:com.example.thing blob:*/*'

/** The app that is published there. */
export const appOn = (pds: TestPds): OAuthClient =>
  new OAuthClient(pds, `https://${APP_HOST}/client.json`, null, `https://${APP_HOST}/callback`)

export interface LivedIn {
  pds: TestPds
  /** Has everything that an account can have, but factors. */
  alice: TestAccount
  /** Has passkeys and an authenticator app. */
  hannah: FactorHolder
  /** Operates the server. */
  olivia: TestAccount
  /** An app's request, as its page is opened. */
  authorizeUrl(): Promise<string>
  /** Of a program that asks to act for an account. */
  userCode: string
  /** Of a decision that can be appealed, and of one that was. */
  appealCodes: string[]
}

/** Of a server on which everything is on that pages and interfaces show. */
export const EVERYTHING_ON = {
  rateLimit: { enabled: false },
  waitlist: { enabled: true },
  agentAuth: { anonymousEnabled: true },
  accounts: { passwordOptional: true },
  signingKeyMasterKey: MASTER_KEY,
} as const

interface Web {
  publish(host: string, path: string, answer: () => Response): void
}

/**
 * `words`: what strangers write wherever they can. `sessions`: how many one app has. The server has the web site of
 * `APP_HOST`.
 */
export async function livedIn({ pds, web }: { pds: TestPds; web: Web }, words: string, sessions = 1): Promise<LivedIn> {
  const program = { 'user-agent': words, referer: `https://app.example/${encodeURIComponent(words)}` }
  const alice = await createAccount(pds, 'alice', {}, program)
  const [bob, carol, dora] = await Promise.all(['bob', 'carol', 'dora'].map((name) => createAccount(pds, name)))
  const olivia = await createAccount(pds, 'olivia')
  await giveRole(pds, olivia.did, 'owner')
  const admin = async (path: string, json: object) => {
    const headers = { ...bearer(ADMIN_TOKEN), 'x-admin-reason': encodeURIComponent(words) }
    const { status, body } = await request(`${pds.url}${path}`, { json, headers })
    if (status !== 200) throw new Error(`${path} answered ${status} ${JSON.stringify(body)}`)
    return body
  }
  await signInEverywhere()
  await write()
  await delegate()
  const userCode = await letProgramsIn()
  const appealCodes = await decideCases()
  await invitePeople()
  await failRequests()
  const hannah = await withFactors()
  return { pds, alice, hannah, olivia, authorizeUrl, userCode, appealCodes }

  async function signInEverywhere(): Promise<void> {
    await logIn(pds, alice, alice.password)
    await request(`${pds.url}/xrpc/com.atproto.server.createSession`, {
      json: { identifier: alice.handle, password: alice.password },
      headers: program,
    })
    await alice.call('com.atproto.server.createAppPassword', { json: { name: words } })
    await alice.call('com.atproto.server.createAppPassword', { json: { name: 'x', privileged: true } })
    web.publish(APP_HOST, '/client.json', () =>
      Response.json({
        client_id: appOn(pds).clientId,
        client_name: words,
        client_uri: `https://${APP_HOST}/`,
        redirect_uris: [appOn(pds).redirectUri],
        grant_types: ['authorization_code', 'refresh_token'],
        scope: APP_SCOPE,
        token_endpoint_auth_method: 'none',
        dpop_bound_access_tokens: true,
      }),
    )
    for (let i = 0; i < sessions; i++)
      await appOn(pds).signIn({ identifier: alice.did, password: alice.password }, { scope: APP_SCOPE })
    if (pds.ctx.config.notifications.relay !== null) await registerDevices(pds, alice, [words.slice(0, 100)])
  }

  async function authorizeUrl(): Promise<string> {
    const app = appOn(pds)
    return app.authorizeUrl(await app.requestUri({ scope: APP_SCOPE, login_hint: alice.handle }))
  }

  async function write(): Promise<void> {
    const put = async (collection: string, rkey: string, record: object) => {
      const json = { repo: alice.did, collection, rkey, record: { $type: collection, ...record }, validate: false }
      const { status, body } = await alice.call('com.atproto.repo.putRecord', { json })
      if (status !== 200) throw new Error(JSON.stringify(body))
    }
    const createdAt = '2026-01-01T00:00:00.000Z'
    await put('app.bsky.actor.profile', 'self', { displayName: words, description: words })
    await put('app.bsky.feed.post', '3aaaaaaaaaa22', { text: words, createdAt, langs: ['de'] })
    await put('app.bsky.graph.list', '3aaaaaaaaaa23', { name: words, purpose: words, createdAt })
    await put('com.example.thing', 'one', { title: words, [words]: words })
    const uploader = Uploader.at(pds, alice.did as Did, alice.accessJwt)
    await uploader.refer('com.example.album/one', await uploader.upload(png, 'image/png'))
    await uploader.refer('com.example.album/two', await uploader.upload(words, 'text/html'))
    await pds.plant('account_flag', { labeler: 'did:plc:labeler', did: alice.did, val: words, labelled_at: 1 })
  }

  async function delegate(): Promise<void> {
    const ended = await share(pds, alice, dora!, { presets: ['post'] })
    await ownerCall(pds, alice, `delegates/${ended}/end`, {})
    await share(pds, alice, bob!, { presets: ['post', 'read'] })
    await invite(pds, alice, carol!)
    await share(pds, bob!, alice, { presets: ['read'] })
    await invite(pds, carol!, alice)
  }

  async function letProgramsIn(): Promise<string> {
    const agent = await registerAgent(pds, alice, { clientName: words, openedWith: words, subject: words })
    const json = { repo: alice.did, collection: 'com.example.thing', record: { $type: 'com.example.thing' } }
    await agent.call('com.atproto.repo.createRecord', { json: { ...json, validate: false } })
    const { body } = await askForAccount(pds, { type: 'anonymous', client_name: words }, program)
    if (body.claim_token === undefined) throw new Error(JSON.stringify(body))
    const opened = await openAgentClaim(pds, body.claim_token)
    return opened.body.claim_attempt.user_code
  }

  async function decideCases(): Promise<string[]> {
    await alice.call('com.atproto.moderation.createReport', {
      headers: { 'atproto-proxy': `${pds.ctx.config.serverDid}#atproto_labeler` },
      json: {
        reasonType: 'com.atproto.moderation.defs#reasonSpam',
        reason: words,
        subject: { $type: 'com.atproto.admin.defs#repoRef', did: bob!.did },
      },
    })
    const codes: string[] = []
    for (const person of [alice, dora!]) {
      const { id } = await admin('/v1/admin/cases', { subject: person.did, reason: words })
      await admin(`/v1/admin/cases/${id}/notes`, { text: words })
      await admin(`/v1/admin/cases/${id}/decision`, { act: 'warn', reason: words })
      await until(async () => {
        await pds.runSteps()
        const mails = pds.mails.filter(({ to }) => to === person.email)
        const [code] = mails.flatMap(({ text }) => /appeal\?code=([\w-]+)/.exec(text)?.[1] ?? [])
        if (code !== undefined) codes.push(code)
        return code !== undefined
      })
    }
    await request(`${pds.url}/v1/decisions/appeal`, { json: { code: codes[1], text: words } })
    return codes
  }

  async function invitePeople(): Promise<void> {
    await admin('/xrpc/com.atproto.server.createInviteCodes', {
      codeCount: 1,
      useCount: 2,
      forAccounts: [alice.did],
    })
    await admin('/v1/accounts/claim-codes', { count: 2 })
    await admin('/xrpc/com.atproto.server.createInviteCode', { useCount: 1 })
    await pds.plant('waitlist_entry', [
      { email: `${words}@example.com`, handle: words, created_at: 1 },
      { email: 'waiting@example.com', handle: null, created_at: 2 },
    ])
    await admin('/xrpc/com.atproto.admin.sendEmail', {
      recipientDid: alice.did,
      senderDid: alice.did,
      content: words,
      subject: words,
    })
    await request(`${pds.url}/v1/admin/sessions`, {
      json: { account: olivia.did, password: olivia.password },
      headers: program,
    })
    await pds.plant('step', {
      id: crypto.randomUUID(),
      kind: 'mail',
      key: words,
      did: alice.did,
      payload_wrapped: pds.ctx.vault.wrap(Buffer.from('{}')),
      due_at: null,
      tries: 9,
      last_error: words,
      created_at: 1,
    } as object)
  }

  async function failRequests(): Promise<void> {
    for (const path of ['com.atproto.server.getSession', encodeURIComponent(words)])
      await request(`${pds.url}/xrpc/${path}`, { headers: program })
  }

  async function withFactors(): Promise<FactorHolder> {
    const holder = new FactorHolder(pds, await createAccount(pds, 'hannah'))
    await holder.signIn()
    await holder.addPasskey(undefined, { name: words.slice(0, 60) })
    return holder
  }
}
