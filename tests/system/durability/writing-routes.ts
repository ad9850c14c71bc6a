/**
 * A request for every endpoint that writes, each of which is good: it succeeds where nothing is in the way. What it
 * needs (an account, a code, a device) is prepared before, so that the request itself may meet a server that cannot
 * write.
 */
import { randomBytes } from 'node:crypto'
import { arrive, type WebHolder } from '../../support/clients/web-holder.ts'
import { registerAgent as establishAgent } from '../../support/clients/registered-agent.ts'
import { begin as stageKey, publishing, type Wallet } from '../../support/clients/rotating.ts'
import { createAccount, PASSWORD, xrpc, type TestAccount } from '../../support/clients/account.ts'
import {
  CLAIM_GRANT,
  confirmAgent,
  confirmedAgent,
  openAgentClaim,
  registerAgent,
} from '../../support/clients/agent.ts'
import { bring } from '../../support/clients/brought.ts'
import {
  begin,
  claimCode,
  mobile,
  newWallet,
  prepared,
  sendDid,
  signingKeyFor,
} from '../../support/clients/ceremony.ts'
import type { WebHost } from '../../support/servers/did-web-host.ts'
import { bearer, request, type Answer } from '../../support/clients/http.ts'
import { begin as beginMove, moveOf, plan as planMove } from '../../support/clients/mover.ts'
import {
  identityAssertion,
  notifyEvent,
  presentIdentity,
  revocation,
  type IssuerKey,
} from '../../support/servers/issuer.ts'
import { invite, ownerCall, share } from '../../support/clients/delegate.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { hiddenFields, loopbackClientId, OAuthClient } from '../../support/clients/oauth-client.ts'
import { OperatorDevice } from '../../support/clients/operator-device.ts'
import { signOperation } from '../../../src/protocol/plc.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import type { TestPds } from '../../support/servers/pds.ts'
import type { PlcHost } from '../../support/servers/plc-server.ts'
import { authorityToken, NOTICE_AUTHORITY } from '../../support/clients/service-signer.ts'
import { PushDevice } from '../../support/clients/push-device.ts'
import { newRecoveryCode, newShare, putShare, release } from '../../support/clients/recovery.ts'
import { ConsoleBrowser } from '../../support/clients/console-browser.ts'
import { operateAs, operatorSignIn, roleHolder } from '../../support/clients/role-holder.ts'
import { decisionOf, openConsent, sendDecision } from '../../support/clients/wallet-consent.ts'
import { CookieBrowser } from '../../support/clients/wallet-sign-in.ts'
import {
  askSession,
  deviceKey,
  sessionRequest,
  sovereignAccount,
  walletSession,
  type DeviceKey,
} from '../../support/clients/wallet.ts'

export interface Place {
  pds: TestPds
  /** Another server, from which people move here. */
  old: Pick<TestPds, 'url' | 'mails'>
  directory: PlcHost
  web: WebHost
  issuer: IssuerKey
}

/** Sends the request; each time with a proof of its own, where one is needed. */
export type Send = () => Promise<Answer>

/** By endpoint: prepares its request. */
export type WritingRoutes = Record<string, () => Promise<Send>>

const COLLECTION = 'org.example.note'
const inSpace = (did: string) => ({
  space: `at://${did}/space/org.example.space/a`,
  repo: did,
  collection: COLLECTION,
})
/** More than the server keeps in memory of a body. */
const LARGE_BYTES = 100 * 1024
const CAR = { 'content-type': 'application/vnd.ipld.car' }
const operator = bearer(ADMIN_TOKEN)

/** `crowd` begins the names of its accounts. */
export function writingRoutes({ pds, old, directory, web, issuer }: Place, crowd = 'person'): WritingRoutes {
  let count = 0
  const newName = () => `${crowd}${count++}`
  const person = (input = {}) => createAccount(pds, newName(), input)
  const sovereign = (input = {}) => sovereignAccount(pds, newName(), input)
  const withWallet = async () => {
    const account = await person()
    return { account, token: bearer(await walletSession(pds, account.did)) }
  }
  const at = (path: string, init: Parameters<typeof request>[1] = {}) =>
    request(`${pds.url}${path}`, { method: 'POST', ...init })
  const operate = (path: string, json: object = {}) => at(path, { json, headers: operator })
  const byOperator = (nsid: string, json: object) => at(`/xrpc/${nsid}`, { json, headers: operator })
  const form = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
    at(path, {
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'sec-fetch-site': 'same-origin', ...headers },
      body: new URLSearchParams(fields).toString(),
    })
  const mailed = async (account: TestAccount, nsid: string) => {
    await account.call(nsid, { method: 'POST' })
    return lastCode(pds, account.email)
  }
  const record = () => ({ $type: COLLECTION, text: 'hello' })
  const inviteCode = async () =>
    (await byOperator('com.atproto.server.createInviteCode', { useCount: 1 })).body.code as string

  async function signedInOperator(): Promise<ConsoleBrowser> {
    const browser = new ConsoleBrowser(pds)
    await browser.signIn((await roleHolder(pds, newName(), 'moderator')).did)
    return browser
  }

  /** Begins a sign-in to the account page that the wallet has approved. */
  async function approvedSignIn(account: TestAccount & { device: DeviceKey }) {
    const browser = new CookieBrowser(pds)
    const begun = await browser.begin()
    const choice = { grantedScope: 'atproto', matchCode: begun.matchCode! }
    await sendDecision(pds, decisionOf(pds, account, begun, choice))
    return { browser, complete: () => browser.complete(begun.requestId) }
  }
  const signedInBrowser = async ({ handle }: TestAccount) => {
    const browser = new CookieBrowser(pds)
    await browser.send('/account/sign-in', { identifier: handle, password: PASSWORD })
    return browser
  }
  /** Somebody whose browser is signed in, and the forms of the account page. */
  async function onPage(given?: TestAccount, by?: CookieBrowser) {
    const account = given ?? (await person())
    const browser = by ?? (await signedInBrowser(account))
    const { body } = await browser.open('/account')
    const form_token = /name="form_token" value="([^"]+)"/.exec(body)![1]!
    const send = (path: string, fields: Record<string, string> = {}) =>
      browser.send(`/account/${path}`, { account: account.did, form_token, ...fields })
    const upload = (path: string, file: ArrayBuffer | Uint8Array) => {
      const form = new FormData()
      for (const [name, value] of Object.entries({ account: account.did, form_token, sure: 'yes' }))
        form.append(name, value)
      form.append('file', new Blob([file as Uint8Array<ArrayBuffer>]), 'archive')
      return browser.upload(`/account/${path}`, form)
    }
    return { account, browser, send, upload }
  }
  const sessionIdOf = ({ accessJwt }: TestAccount): string =>
    JSON.parse(Buffer.from(accessJwt.split('.')[1]!, 'base64url').toString()).sid
  /** The value that the page sends with a form. */
  const idOn = async (browser: CookieBrowser, path: string): Promise<string> => {
    const { body } = await browser.open('/account')
    const [, rest = ''] = body.split(`action="/account/${path}?`)
    return /name="id" value="([^"]+)"/.exec(rest)![1]!
  }

  const withShare = async () => {
    const account = await sovereign()
    await putShare(pds, account.accessJwt, newShare())
    return account
  }
  const transfer = async () => {
    const { account, token } = await withWallet()
    const { body } = await at('/v1/transfer/initiate', { headers: token })
    const accept = () =>
      at('/v1/transfer/accept', {
        json: { transferCode: body.transferCode, devicePublicKey: 'zPhone', platform: 'ios' },
      })
    return { account, token, transferId: body.transferId as string, accept }
  }
  const senderKey = async (): Promise<number> => {
    const { body } = await operate('/v1/admin/notifications/sender-keys/rotate')
    return Math.max(...body.keys.map(({ kid }: { kid: number }) => kid))
  }
  const registration = () => ({
    deviceUuid: `device ${++count}`,
    notificationPublicKey: new PushDevice().publicKey,
    apnsToken: (1_000_000 + count).toString(16),
    apnsTopic: 'org.example.wallet',
  })
  const registeredDevice = async () => {
    const account = await person()
    const device = registration()
    await at('/v1/notifications/register', { json: device, headers: bearer(account.accessJwt) })
    return { account, deviceUuid: device.deviceUuid }
  }
  const childOf = async () => {
    const { account, token } = await withWallet()
    const name = newName()
    const device = deviceKey()
    const { plcOp } = await bring(pds, name, { rotationKeys: [device.did] }, device)
    const make = () => at('/agent/child', { json: { handle: `${name}.test`, plcOp }, headers: token })
    return { account, token, make }
  }
  const rotation = async (): Promise<Wallet & { operation: unknown }> => {
    const account = await sovereign()
    const wallet = { pds, directory, account, device: account.device }
    const { body } = await stageKey(wallet)
    return { ...wallet, operation: await publishing(wallet, body.signingKey) }
  }
  const webHolder = (): Promise<WebHolder> => {
    const name = newName()
    return arrive({ pds, web, dns: pds.dns }, `${name}.web.test`, { handle: `${name}.test` })
  }
  const ownedBlob = async () => {
    const { did, call } = await person()
    const { body } = await call('com.atproto.repo.uploadBlob', {
      method: 'POST',
      headers: { 'content-type': 'text/plain' },
      body: newName(),
    })
    return { did, cid: body.blob.ref.$link as string }
  }
  const openedCase = async () => {
    const account = await person()
    const { body } = await operate('/v1/admin/cases', { subject: account.did, reason: 'seen' })
    return { account, id: body.id as number }
  }
  const warnedCase = async () => {
    const { account, id } = await openedCase()
    await operate(`/v1/admin/cases/${id}/decision`, { act: 'warn', reason: 'a reason' })
    await pds.runSteps()
    const { text } = pds.mails.findLast(({ to }) => to === account.email)!
    return { id, code: /appeal\?code=([\w-]+)/.exec(text)![1]! }
  }
  const askedClaim = async () => {
    const { body } = await registerAgent(pds, { type: 'anonymous' })
    const opened = await openAgentClaim(pds, body.claim_token)
    return { claimToken: body.claim_token as string, userCode: opened.body.claim_attempt.user_code as string }
  }
  /** An agent of a person whom the identity provider knows. */
  const vouchedFor = async () => {
    const account = await person()
    const sub = newName()
    const assertion = identityAssertion(pds, issuer, { claims: { sub, email: account.email } })
    const { body } = await presentIdentity(pds, assertion)
    await confirmAgent(pds, account, body.claim.user_code)
    return { account, sub }
  }
  const app = () => new OAuthClient(pds, loopbackClientId())
  const signedInApp = async () => {
    const account = await person()
    const client = app()
    return { account, client, tokens: await client.signIn({ identifier: account.handle, password: PASSWORD }) }
  }
  const signedOperation = async (account: TestAccount, changes: object) => {
    const token = await mailed(account, 'com.atproto.identity.requestPlcOperationSignature')
    const { body } = await account.call('com.atproto.identity.signPlcOperation', { json: { token, ...changes } })
    return body.operation
  }

  const repoOf = async ({ url }: Pick<TestPds, 'url'>, { did }: TestAccount) =>
    (await fetch(`${url}/xrpc/com.atproto.sync.getRepo?did=${did}`)).bytes()
  const note = (account: TestAccount, more: object = {}) =>
    account.call('com.atproto.repo.createRecord', {
      json: { repo: account.did, collection: COLLECTION, record: { ...record(), ...more } },
    })
  /** Somebody who has their archive, and has written more since. */
  const archived = async (more: (account: TestAccount) => Promise<object> = async () => ({})) => {
    const account = await person()
    await note(account, await more(account))
    const exported = await fetch(`${pds.url}/v1/account/archive`, { headers: bearer(account.accessJwt) })
    const archive = await exported.arrayBuffer()
    await note(account)
    return { account, archive }
  }
  const picture = async (account: TestAccount) => {
    const { body } = await account.call('com.atproto.repo.uploadBlob', {
      method: 'POST',
      body: randomBytes(LARGE_BYTES),
      headers: { 'content-type': 'application/octet-stream' },
    })
    return { picture: body.blob }
  }
  const restore = (path: string, body: ArrayBuffer, token: string) =>
    at(path, { body, headers: { 'content-type': 'application/zip', ...bearer(token) } })

  /** Somebody of the other server. */
  const elsewhere = (input = {}) => createAccount(old, newName(), input)
  /** What a new account here is called, and how its holder signs in. */
  const wanted = () => {
    const name = newName()
    return { handle: `${name}.test`, email: `${name}@example.com`, password: PASSWORD }
  }
  const planned = async () => ({ plan: (await planMove(pds, await elsewhere())).body.plan as string, ...wanted() })
  /** Somebody whose move waits for the code that the other server has mailed. */
  const moving = async () => {
    const from = await elsewhere()
    const account = await beginMove(pds, from, newName())
    await pds.runSteps()
    const { agreement } = await moveOf(pds, account)
    return { account, agreement, code: await lastCode(old, from.email) }
  }
  /** Somebody who has a rotation key of their identity, and what they want here. */
  const keyHolder = async () => {
    const device = deviceKey()
    const from = await elsewhere({ recoveryKey: device.did })
    return { device, from, wish: { ...wanted(), identifier: from.did, recoveryKey: device.did } }
  }
  const offer = ({ identifier, handle, recoveryKey }: Record<'identifier' | 'handle' | 'recoveryKey', string>) =>
    at('/v1/move-in/offer', { json: { identifier, handle, recoveryKey } })
  const signedOffer = async () => {
    const { device, from, wish } = await keyHolder()
    const { body } = await offer(wish)
    return { from, json: { ...wish, operation: signOperation(body.operation, device.key) } }
  }
  /** Somebody whose move waits for their archive. */
  const awaitedArchive = async () => {
    const { from, json } = await signedOffer()
    const { body } = await at('/v1/move-in', { json })
    return { from, handle: json.handle, token: bearer(body.accessJwt) }
  }
  /** Somebody whose identity names another server by now. */
  const gone = async () => {
    const account = await person()
    const services = { atproto_pds: { type: 'AtprotoPersonalDataServer', endpoint: 'https://new.example' } }
    const operation = await signedOperation(account, { services })
    await request(`${directory.url}/${account.did}`, { json: operation })
    return account
  }
  /** Prepares nothing but the account. */
  const asPerson =
    (nsid: string, input: (account: TestAccount) => Parameters<TestAccount['call']>[1] = () => ({ method: 'POST' })) =>
    async () => {
      const account = await person()
      return () => account.call(nsid, input(account))
    }
  const aboutPerson = (nsid: string, input: (account: TestAccount) => object) => async () => {
    const account = await person()
    return () => byOperator(nsid, input(account))
  }

  return {
    // Accounts and sessions
    'com.atproto.server.createAccount': async () => {
      const name = newName()
      return () =>
        xrpc(pds, 'com.atproto.server.createAccount', {
          json: { handle: `${name}.test`, email: `${name}@example.com`, password: PASSWORD },
        })
    },
    'com.atproto.server.activateAccount': async () => {
      const account = await person()
      await account.call('com.atproto.server.deactivateAccount', { json: {} })
      return () => account.call('com.atproto.server.activateAccount', { method: 'POST' })
    },
    'com.atproto.server.deactivateAccount': asPerson('com.atproto.server.deactivateAccount', () => ({ json: {} })),
    'com.atproto.server.createSession': async () => {
      const { handle } = await person()
      return () => xrpc(pds, 'com.atproto.server.createSession', { json: { identifier: handle, password: PASSWORD } })
    },
    'com.atproto.server.refreshSession': async () => {
      const { refreshJwt } = await person()
      return () => xrpc(pds, 'com.atproto.server.refreshSession', { method: 'POST', headers: bearer(refreshJwt) })
    },
    'com.atproto.server.deleteSession': async () => {
      const { refreshJwt } = await person()
      return () => xrpc(pds, 'com.atproto.server.deleteSession', { method: 'POST', headers: bearer(refreshJwt) })
    },
    'com.atproto.server.createAppPassword': asPerson('com.atproto.server.createAppPassword', () => ({
      json: { name: 'phone' },
    })),
    'com.atproto.server.revokeAppPassword': async () => {
      const account = await person()
      await account.call('com.atproto.server.createAppPassword', { json: { name: 'phone' } })
      return () => account.call('com.atproto.server.revokeAppPassword', { json: { name: 'phone' } })
    },
    'com.atproto.server.requestEmailConfirmation': asPerson('com.atproto.server.requestEmailConfirmation'),
    'com.atproto.server.confirmEmail': async () => {
      const account = await person()
      const token = await mailed(account, 'com.atproto.server.requestEmailConfirmation')
      return () => account.call('com.atproto.server.confirmEmail', { json: { email: account.email, token } })
    },
    'com.atproto.server.requestEmailUpdate': async () => {
      const account = await person()
      const token = await mailed(account, 'com.atproto.server.requestEmailConfirmation')
      await account.call('com.atproto.server.confirmEmail', { json: { email: account.email, token } })
      return () => account.call('com.atproto.server.requestEmailUpdate', { method: 'POST' })
    },
    'com.atproto.server.updateEmail': asPerson('com.atproto.server.updateEmail', ({ handle }) => ({
      json: { email: `new.${handle}@example.com` },
    })),
    'com.atproto.server.requestPasswordReset': async () => {
      const { email } = await person()
      return () => xrpc(pds, 'com.atproto.server.requestPasswordReset', { json: { email } })
    },
    'com.atproto.server.resetPassword': async () => {
      const { email } = await person()
      await xrpc(pds, 'com.atproto.server.requestPasswordReset', { json: { email } })
      const token = await lastCode(pds, email)
      return () => xrpc(pds, 'com.atproto.server.resetPassword', { json: { token, password: 'another password' } })
    },
    'com.atproto.server.requestAccountDelete': asPerson('com.atproto.server.requestAccountDelete'),
    'com.atproto.server.deleteAccount': async () => {
      const account = await person()
      const token = await mailed(account, 'com.atproto.server.requestAccountDelete')
      return () =>
        xrpc(pds, 'com.atproto.server.deleteAccount', { json: { did: account.did, password: PASSWORD, token } })
    },
    'com.atproto.server.reserveSigningKey': async () => () =>
      xrpc(pds, 'com.atproto.server.reserveSigningKey', { json: {} }),
    'com.atproto.server.createInviteCode': async () => () =>
      byOperator('com.atproto.server.createInviteCode', { useCount: 1 }),
    'com.atproto.server.createInviteCodes': async () => () =>
      byOperator('com.atproto.server.createInviteCodes', { codeCount: 1, useCount: 1 }),

    // Identities
    'com.atproto.identity.requestPlcOperationSignature': asPerson('com.atproto.identity.requestPlcOperationSignature'),
    'com.atproto.identity.signPlcOperation': async () => {
      const account = await person()
      const token = await mailed(account, 'com.atproto.identity.requestPlcOperationSignature')
      return () => account.call('com.atproto.identity.signPlcOperation', { json: { token } })
    },
    'com.atproto.identity.submitPlcOperation': async () => {
      const account = await person()
      const alsoKnownAs = [`at://${account.handle}`, 'at://else.example']
      const operation = await signedOperation(account, { alsoKnownAs })
      return () => account.call('com.atproto.identity.submitPlcOperation', { json: { operation } })
    },
    'com.atproto.identity.updateHandle': asPerson('com.atproto.identity.updateHandle', ({ handle }) => ({
      json: { handle: `new-${handle}` },
    })),
    'com.atproto.identity.refreshIdentity': async () => {
      const { did } = await person()
      return () => xrpc(pds, 'com.atproto.identity.refreshIdentity', { json: { identifier: did } })
    },

    // Repositories
    'com.atproto.repo.createRecord': asPerson('com.atproto.repo.createRecord', ({ did }) => ({
      json: { repo: did, collection: COLLECTION, record: record() },
    })),
    'com.atproto.repo.putRecord': asPerson('com.atproto.repo.putRecord', ({ did }) => ({
      json: { repo: did, collection: COLLECTION, rkey: 'self', record: record() },
    })),
    'com.atproto.repo.deleteRecord': async () => {
      const account = await person()
      const place = { repo: account.did, collection: COLLECTION, rkey: 'self' }
      await account.call('com.atproto.repo.putRecord', { json: { ...place, record: record() } })
      return () => account.call('com.atproto.repo.deleteRecord', { json: place })
    },
    'com.atproto.repo.applyWrites': asPerson('com.atproto.repo.applyWrites', ({ did }) => ({
      json: {
        repo: did,
        writes: [{ $type: 'com.atproto.repo.applyWrites#create', collection: COLLECTION, value: record() }],
      },
    })),
    'com.atproto.space.createRecord': asPerson('com.atproto.space.createRecord', ({ did }) => ({
      json: { ...inSpace(did), record: record() },
    })),
    'com.atproto.space.putRecord': asPerson('com.atproto.space.putRecord', ({ did }) => ({
      json: { ...inSpace(did), rkey: 'self', record: record() },
    })),
    'com.atproto.space.deleteRecord': async () => {
      const account = await person()
      const place = { ...inSpace(account.did), rkey: 'self' }
      await account.call('com.atproto.space.putRecord', { json: { ...place, record: record() } })
      return () => account.call('com.atproto.space.deleteRecord', { json: place })
    },
    'com.atproto.space.applyWrites': asPerson('com.atproto.space.applyWrites', ({ did: repo }) => ({
      json: {
        space: inSpace(repo).space,
        repo,
        writes: [{ $type: 'com.atproto.space.applyWrites#create', collection: COLLECTION, value: record() }],
      },
    })),
    'com.atproto.repo.uploadBlob': asPerson('com.atproto.repo.uploadBlob', () => ({
      method: 'POST',
      body: 'some text',
      headers: { 'content-type': 'text/plain' },
    })),
    'com.atproto.repo.importRepo': async () => {
      const account = await person()
      await note(account)
      const car = await repoOf(pds, account)
      await note(account)
      return () => account.call('com.atproto.repo.importRepo', { method: 'POST', body: car, headers: CAR })
    },
    'app.bsky.actor.putPreferences': asPerson('app.bsky.actor.putPreferences', () => ({
      json: { preferences: [{ $type: 'app.bsky.actor.defs#adultContentPref', enabled: true }] },
    })),

    // Operators, by the standard methods
    'com.atproto.admin.deleteAccount': aboutPerson('com.atproto.admin.deleteAccount', ({ did }) => ({ did })),
    'com.atproto.admin.disableAccountInvites': aboutPerson('com.atproto.admin.disableAccountInvites', ({ did }) => ({
      account: did,
    })),
    'com.atproto.admin.enableAccountInvites': async () => {
      const { did } = await person()
      await byOperator('com.atproto.admin.disableAccountInvites', { account: did })
      return () => byOperator('com.atproto.admin.enableAccountInvites', { account: did })
    },
    'com.atproto.admin.disableInviteCodes': async () => {
      const code = await inviteCode()
      return () => byOperator('com.atproto.admin.disableInviteCodes', { codes: [code] })
    },
    'com.atproto.admin.sendEmail': aboutPerson('com.atproto.admin.sendEmail', ({ did }) => ({
      recipientDid: did,
      senderDid: pds.ctx.config.serverDid,
      content: 'hello',
      subject: 'hello',
    })),
    'com.atproto.admin.updateAccountEmail': aboutPerson('com.atproto.admin.updateAccountEmail', ({ did, handle }) => ({
      account: did,
      email: `given.${handle}@example.com`,
    })),
    'com.atproto.admin.updateAccountHandle': aboutPerson(
      'com.atproto.admin.updateAccountHandle',
      ({ did, handle }) => ({
        did,
        handle: `given-${handle}`,
      }),
    ),
    'com.atproto.admin.updateAccountPassword': aboutPerson('com.atproto.admin.updateAccountPassword', ({ did }) => ({
      did,
      password: 'another password',
    })),
    'com.atproto.admin.updateSubjectStatus': aboutPerson('com.atproto.admin.updateSubjectStatus', ({ did }) => ({
      subject: { $type: 'com.atproto.admin.defs#repoRef', did },
      takedown: { applied: true },
    })),

    'POST /waitlist': async () => {
      const name = newName()
      return () => at('/waitlist', { json: { email: `${name}@example.com` } })
    },

    // OAuth
    'POST /oauth/par': async () => {
      const client = app()
      await client.push()
      return () => client.push()
    },
    'POST /oauth/authorize': async () => {
      const { handle } = await person()
      const client = app()
      const { body } = await request(client.authorizeUrl(await client.requestUri()))
      const fields = {
        ...hiddenFields(body),
        identifier: handle,
        password: PASSWORD,
        action: 'approve',
        granted_scope: 'atproto',
      }
      return () => form('/oauth/authorize', fields)
    },
    'POST /oauth/token': async () => {
      const { handle } = await person()
      const client = app()
      const code = await client.code({ identifier: handle, password: PASSWORD })
      return () => client.redeem(code)
    },
    'POST /oauth/token (refresh)': async () => {
      const { client, tokens } = await signedInApp()
      return () => client.refresh(tokens.refresh_token)
    },
    'POST /oauth/token (agent)': async () => {
      const { claimToken, userCode } = await askedClaim()
      await confirmAgent(pds, await person(), userCode)
      return () => form('/oauth/token', { grant_type: CLAIM_GRANT, claim_token: claimToken })
    },
    'POST /oauth/revoke': async () => {
      const { client, tokens } = await signedInApp()
      return () => client.revoke(tokens.refresh_token)
    },
    'GET /oauth/authorize': async () => {
      const client = app()
      const url = client.authorizeUrl(
        await client.requestUri({ login_hint: (await sovereign({ password: undefined })).handle }),
      )
      return () => request(url)
    },
    'POST /oauth/authorize/approve': async () => {
      const account = await sovereign({ password: undefined })
      const consent = await openConsent(app(), { login_hint: account.handle })
      return () => at('/oauth/authorize/approve', { json: decisionOf(pds, account, consent) })
    },
    'POST /oauth/authorize/complete': async () => {
      const account = await sovereign({ password: undefined })
      const consent = await openConsent(app(), { login_hint: account.handle })
      await at('/oauth/authorize/approve', { json: decisionOf(pds, account, consent) })
      return () => form('/oauth/authorize/complete', { request_id: consent.requestId })
    },

    // Pages
    'POST /account/sign-in': async () => {
      const { handle } = await person()
      return () => form('/account/sign-in', { identifier: handle, password: PASSWORD })
    },
    'POST /account/sign-in/wallet': async () => () => form('/account/sign-in/wallet', {}),
    'POST /account/sign-in/wallet/complete': async () => {
      const { complete } = await approvedSignIn(await sovereign({ password: undefined }))
      return complete
    },
    'POST /account/sign-up': async () => {
      const name = newName()
      return () => form('/account/sign-up', { handle: name, email: `${name}@example.com`, password: PASSWORD })
    },
    'POST /account/appeal': async () => {
      const { code } = await warnedCase()
      return () => form('/account/appeal', { code, text: 'not I' })
    },
    'POST /account/reset-password': async () => {
      const { email } = await person()
      return () => form('/account/reset-password', { email })
    },
    'POST /account/reset-password/code': async () => {
      const { email } = await person()
      await xrpc(pds, 'com.atproto.server.requestPasswordReset', { json: { email } })
      const code = await lastCode(pds, email)
      return () => form('/account/reset-password/code', { code, password: 'another password' })
    },
    'POST /account/sign-out': async () => {
      const { send } = await onPage()
      return () => send('sign-out')
    },
    'POST /account/pushes': async () => {
      const { account, deviceUuid } = await registeredDevice()
      const { send } = await onPage(account)
      return () => send('pushes', { id: deviceUuid })
    },
    'POST /account/apps': async () => {
      const { account } = await signedInApp()
      const { browser, send } = await onPage(account)
      const id = await idOn(browser, 'apps')
      return () => send('apps', { id })
    },
    'POST /account/agents': async () => {
      const account = await person()
      const agent = await establishAgent(pds, account)
      const { send } = await onPage(account)
      return () => send('agents', { id: agent.id })
    },
    'POST /account/sessions': async () => {
      const { account, send } = await onPage()
      return () => send('sessions', { id: sessionIdOf(account) })
    },
    'POST /account/browsers': async () => {
      const { account, send } = await onPage()
      await onPage(account)
      return () => send('browsers')
    },
    'POST /account/wallet-sessions': async () => {
      const { account } = await withWallet()
      const { browser, send } = await onPage(account)
      const id = await idOn(browser, 'wallet-sessions')
      return () => send('wallet-sessions', { id })
    },
    'POST /account/wallet/requests': async () => {
      const account = await sovereign({ password: undefined })
      const { browser, complete } = await approvedSignIn(account)
      await complete()
      const { send } = await onPage(account, browser)
      await openConsent(app(), { login_hint: account.did })
      const id = await idOn(browser, 'wallet/requests')
      return () => send('wallet/requests', { id })
    },
    'POST /account/wallet/transfer': async () => {
      const { account } = await transfer()
      const { send } = await onPage(account)
      return () => send('wallet/transfer')
    },
    'POST /account/wallet/devices': async () => {
      const { account, accept } = await transfer()
      const { body } = await accept()
      const { send } = await onPage(account)
      return () => send('wallet/devices', { id: body.deviceId })
    },
    'POST /account/app-passwords': async () => {
      const { send } = await onPage()
      return () => send('app-passwords', { name: 'phone' })
    },
    'POST /account/app-passwords/revoke': async () => {
      const { account, send } = await onPage()
      await account.call('com.atproto.server.createAppPassword', { json: { name: 'phone' } })
      return () => send('app-passwords/revoke', { name: 'phone' })
    },
    'POST /account/handle/domain': async () => {
      const { account, send } = await onPage()
      const handle = `${newName()}.example.com`
      pds.dns.setHandle(handle, account.did)
      return () => send('handle/domain', { handle })
    },
    'POST /account/handle': async () => {
      const { account, send } = await onPage()
      return () => send('handle', { handle: `page-${account.handle}` })
    },
    'POST /account/handles': async () => {
      const { account, send } = await onPage()
      return () => send('handles', { handle: `more-${account.handle}` })
    },
    'POST /account/handles/remove': async () => {
      const { account, send } = await onPage()
      const handle = `more-${account.handle}`
      await send('handles', { handle })
      return () => send('handles/remove', { handle })
    },
    'POST /account/deactivate': async () => {
      const { send } = await onPage()
      return () => send('deactivate')
    },
    'POST /account/delete/code': async () => {
      const { send } = await onPage()
      return () => send('delete/code')
    },
    'POST /account/delete': async () => {
      const { account, send } = await onPage()
      const code = await mailed(account, 'com.atproto.server.requestAccountDelete')
      return () => send('delete', { current: PASSWORD, code })
    },
    'POST /account/identity/own-key/begin': async () => {
      const { send } = await onPage()
      return () => send('identity/own-key/begin')
    },
    'POST /account/identity/own-key': async () => {
      const { account, send } = await onPage()
      const code = await mailed(account, 'com.atproto.identity.requestPlcOperationSignature')
      return () => send('identity/own-key', { wallet_key: deviceKey().did, code })
    },
    'POST /v1/rotation-keys': async () => {
      const account = await person()
      const code = await mailed(account, 'com.atproto.identity.requestPlcOperationSignature')
      const input = { publicKey: deviceKey().did, code }
      return () => at('/v1/rotation-keys', { json: input, headers: bearer(account.accessJwt) })
    },
    'POST /account/email/code': async () => {
      const { send } = await onPage()
      return () => send('email/code')
    },
    'POST /account/email/confirm': async () => {
      const { account, send } = await onPage()
      const code = await mailed(account, 'com.atproto.server.requestEmailConfirmation')
      return () => send('email/confirm', { email: account.email, code })
    },
    'POST /account/email': async () => {
      const { account, send } = await onPage()
      return () => send('email', { current: PASSWORD, email: `page.${account.handle}@example.com` })
    },
    'POST /account/password': async () => {
      const { send } = await onPage()
      return () => send('password', { current: PASSWORD, next: 'another password' })
    },
    'POST /account/factors': async () => {
      const { send } = await onPage()
      return () => send('factors', { change: 'add-app', password: PASSWORD })
    },
    'POST /account/reactivate': async () => {
      const { account, send } = await onPage()
      await account.call('com.atproto.server.deactivateAccount', { json: {} })
      return () => send('reactivate')
    },
    'POST /account/identity/escrow/start': async () => {
      const { send } = await onPage(await withShare())
      return () => send('identity/escrow/start')
    },
    'POST /account/identity/escrow/cancel': async () => {
      const account = await withShare()
      await release(pds, account.did, await newRecoveryCode(pds, account))
      const { send } = await onPage(account)
      return () => send('identity/escrow/cancel')
    },
    'POST /account/identity/escrow/delete': async () => {
      const { send } = await onPage(await withShare())
      return () => send('identity/escrow/delete')
    },
    'POST /account/identity/hosting': async () => {
      const { send } = await onPage(await webHolder())
      return () => send('identity/hosting', { enabled: 'yes' })
    },
    'POST /account/recovery': async () => {
      const { did } = await withShare()
      return () => form('/account/recovery', { identifier: did })
    },
    'POST /account/recovery/share': async () => {
      const account = await withShare()
      const code = await newRecoveryCode(pds, account)
      return () => form('/account/recovery/share', { identifier: account.did, code })
    },
    'POST /account/archive': async () => {
      const { send } = await onPage()
      return () => send('archive')
    },
    'POST /account/archive/kept': async () => {
      const { browser, send } = await onPage()
      await send('archive/schedule', { every: 'weekly' })
      await pds.runSweep('account-archives')
      const { body } = await browser.open('/account')
      const name = /name="name" value="([^"]+\.zip)"/.exec(body)![1]!
      return () => send('archive/kept', { name })
    },
    'POST /account/archive/schedule': async () => {
      const { send } = await onPage()
      return () => send('archive/schedule', { every: 'weekly' })
    },
    'POST /account/move-here': async () => {
      const { did, password } = await elsewhere()
      return () => form('/account/move-here', { identifier: did, password })
    },
    'POST /account/move-here/begin': async () => {
      const fields = await planned()
      return () => form('/account/move-here/begin', fields)
    },
    'POST /account/move-here/backup': async () => {
      const { wish } = await keyHolder()
      return () => form('/account/move-here/backup', { ...wish, wallet_key: wish.recoveryKey })
    },
    'POST /account/move-here/backup/begin': async () => {
      const { json } = await signedOffer()
      const { recoveryKey, operation, ...fields } = json
      const signed = { wallet_key: recoveryKey, operation: JSON.stringify(operation) }
      return () => form('/account/move-here/backup/begin', { ...fields, ...signed })
    },
    'POST /account/move': async () => {
      const { account, code, agreement } = await moving()
      const { send } = await onPage(account)
      return () => send('move', { act: 'code', code, agreement: agreement! })
    },
    'POST /account/move-away': async () => {
      const { send } = await onPage(await gone())
      return () => send('move-away', { act: 'delete' })
    },
    'POST /account/archive/import': async () => {
      const { account, archive } = await archived()
      const { upload } = await onPage(account)
      return () => upload('archive/import', archive)
    },
    'POST /account/move/archive': async () => {
      const { from, handle } = await awaitedArchive()
      const body = await repoOf(old, from)
      const { upload } = await onPage({ ...from, handle })
      return () => upload('move/archive', body)
    },

    // Archives and moves
    'POST /v1/account/archive': async () => {
      const { account, archive } = await archived()
      return () => restore('/v1/account/archive', archive, account.accessJwt)
    },
    'POST /v1/account/archive (large)': async () => {
      const { account, archive } = await archived(picture)
      return () => restore('/v1/account/archive', archive, account.accessJwt)
    },
    'POST /v1/admin/accounts/:did/archive': async () => {
      const { account, archive } = await archived()
      return () => restore(`/v1/admin/accounts/${account.did}/archive`, archive, ADMIN_TOKEN)
    },
    'POST /v1/move-in/plan': async () => {
      const from = await elsewhere()
      return () => planMove(pds, from)
    },
    'POST /v1/move-in/offer': async () => {
      const { wish } = await keyHolder()
      return () => offer(wish)
    },
    'POST /v1/move-in': async () => {
      const json = await planned()
      return () => at('/v1/move-in', { json })
    },
    'POST /v1/move-in (with a key)': async () => {
      const { json } = await signedOffer()
      return () => at('/v1/move-in', { json })
    },
    'POST /v1/move-in/answer': async () => {
      const { account, code, agreement } = await moving()
      return () => at('/v1/move-in/answer', { json: { code, agreement }, headers: bearer(account.accessJwt) })
    },
    'POST /v1/move-in/archive': async () => {
      const { from, token } = await awaitedArchive()
      const body = await repoOf(old, from)
      return () => at('/v1/move-in/archive', { body, headers: { ...CAR, ...token } })
    },
    'DELETE /v1/move-in': async () => {
      const { token } = await awaitedArchive()
      return () => at('/v1/move-in', { method: 'DELETE', headers: token })
    },
    'POST /v1/move-out/leave': async () => {
      const { accessJwt } = await gone()
      return () => at('/v1/move-out/leave', { json: { deleteAfterDays: 30 }, headers: bearer(accessJwt) })
    },

    // Agents
    'POST /agent/identity': async () => () => registerAgent(pds, { type: 'anonymous' }),
    'POST /agent/identity (vouched for)': async () => {
      const { sub } = await vouchedFor()
      return () => presentIdentity(pds, identityAssertion(pds, issuer, { claims: { sub } }))
    },
    'POST /agent/identity/claim': async () => {
      const { body } = await registerAgent(pds, { type: 'anonymous' })
      return () => openAgentClaim(pds, body.claim_token)
    },
    'POST /agent/identity/claim/confirm': async () => {
      const account = await person()
      const { userCode } = await askedClaim()
      return () => confirmAgent(pds, account, userCode)
    },
    'POST /agent/claim': async () => {
      const { handle } = await person()
      const { userCode } = await askedClaim()
      return () =>
        form('/agent/claim', { step: 'identify', user_code: userCode, identifier: handle, password: PASSWORD })
    },
    'POST /agent/claim (decision)': async () => {
      const { handle } = await person()
      const { userCode } = await askedClaim()
      const { body } = await form('/agent/claim', {
        step: 'identify',
        user_code: userCode,
        identifier: handle,
        password: PASSWORD,
      })
      return () => form('/agent/claim', { ...hiddenFields(body), step: 'decide', decision: 'approve' })
    },
    'POST /agent/event/notify': async () => {
      const { sub } = await vouchedFor()
      return () => notifyEvent(pds, revocation(pds, issuer, { claims: { sub } }))
    },
    'POST /account/sharing/invite': async () => {
      const { send } = await onPage()
      const { handle } = await person()
      return () => send('sharing/invite', { delegate: handle })
    },
    'POST /account/sharing/end': async () => {
      const { account, send } = await onPage()
      const id = await share(pds, account, await person())
      return () => send('sharing/end', { id })
    },
    'POST /account/sharing/accept': async () => {
      const { account, send } = await onPage()
      const id = await invite(pds, await person(), account)
      return () => send('sharing/accept', { id })
    },
    'POST /account/sharing/leave': async () => {
      const { account, send } = await onPage()
      const id = await share(pds, await person(), account)
      return () => send('sharing/leave', { id })
    },
    'POST /v1/delegates': async () => {
      const [holder, delegate] = [await person(), await person()]
      return () => ownerCall(pds, holder, 'delegates', { delegate: delegate.handle })
    },
    'POST /v1/delegates/:id/end': async () => {
      const holder = await person()
      const id = await share(pds, holder, await person())
      return () => ownerCall(pds, holder, `delegates/${id}/end`, {})
    },
    'POST /v1/shared-accounts/:id/accept': async () => {
      const delegate = await person()
      const id = await invite(pds, await person(), delegate)
      return () => ownerCall(pds, delegate, `shared-accounts/${id}/accept`, {})
    },
    'POST /v1/shared-accounts/:id/leave': async () => {
      const delegate = await person()
      const id = await share(pds, await person(), delegate)
      return () => ownerCall(pds, delegate, `shared-accounts/${id}/leave`, {})
    },
    'POST /v1/admin/delegations/:id/end': async () => {
      const id = await share(pds, await person(), await person())
      return () => operate(`/v1/admin/delegations/${id}/end`)
    },
    'POST /v1/agents/:registrationId/revoke': async () => {
      const account = await person()
      const { registrationId } = await confirmedAgent(pds, account)
      return () => at(`/v1/agents/${registrationId}/revoke`, { headers: bearer(account.accessJwt) })
    },
    'POST /v1/admin/agents/revoke': async () => {
      const { registrationId } = await confirmedAgent(pds, await person())
      return () => operate('/v1/admin/agents/revoke', { registrationId })
    },
    'POST /agent/child': async () => (await childOf()).make,
    'POST /agent/child/revoke': async () => {
      const { make, token } = await childOf()
      const { did } = (await make()).body
      return () => at('/agent/child/revoke', { json: { did }, headers: token })
    },
    'POST /agent/child/delete': async () => {
      const { make, token } = await childOf()
      const { did } = (await make()).body
      return () => at('/agent/child/delete', { json: { did }, headers: token })
    },

    // Wallets
    'POST /v1/app-passwords': async () => {
      const { accessJwt } = await person()
      return () => at('/v1/app-passwords', { json: { name: 'phone', presets: ['read'] }, headers: bearer(accessJwt) })
    },
    'POST /v1/app-passwords/revoke': async () => {
      const account = await person()
      await account.call('com.atproto.server.createAppPassword', { json: { name: 'phone' } })
      return () => at('/v1/app-passwords/revoke', { json: { name: 'phone' }, headers: bearer(account.accessJwt) })
    },
    'POST /v1/handles': async () => {
      const { account, token } = await withWallet()
      return () =>
        at('/v1/handles', { json: { accountId: account.did, handle: `more-${account.handle}` }, headers: token })
    },
    'DELETE /v1/handles/:handle': async () => {
      const { account, token } = await withWallet()
      const handle = `more-${account.handle}`
      await at('/v1/handles', { json: { accountId: account.did, handle }, headers: token })
      return () => at(`/v1/handles/${handle}`, { method: 'DELETE', headers: token })
    },
    'POST /v1/sessions/sovereign': async () => {
      const account = await sovereign()
      return () => askSession(pds, sessionRequest(pds, account))
    },
    'POST /v1/did-web/hosting': async () => {
      const { accessJwt } = await webHolder()
      return () => at('/v1/did-web/hosting', { json: { enabled: true }, headers: bearer(accessJwt) })
    },
    'POST /v1/did-web/document': async () => {
      const { accessJwt, document } = await webHolder()
      await at('/v1/did-web/hosting', { json: { enabled: true }, headers: bearer(accessJwt) })
      return () =>
        at('/v1/did-web/document', { json: { document: { ...document, note: 'kept' } }, headers: bearer(accessJwt) })
    },
    'POST /v1/transfer/initiate': async () => {
      const { token } = await withWallet()
      return () => at('/v1/transfer/initiate', { headers: token })
    },
    'POST /v1/transfer/accept': async () => (await transfer()).accept,
    'POST /v1/transfer/complete': async () => {
      const { token, transferId, accept } = await transfer()
      await accept()
      return () => at('/v1/transfer/complete', { json: { transferId }, headers: token })
    },
    'POST /v1/admin/transfers/:id/cancel': async () => {
      const { transferId } = await transfer()
      return () => operate(`/v1/admin/transfers/${transferId}/cancel`)
    },
    'POST /v1/notifications/register': async () => {
      const { accessJwt } = await person()
      const json = registration()
      return () => at('/v1/notifications/register', { json, headers: bearer(accessJwt) })
    },
    'DELETE /v1/notifications/register/:deviceUuid': async () => {
      const { account, deviceUuid } = await registeredDevice()
      return () =>
        at(`/v1/notifications/register/${encodeURIComponent(deviceUuid)}`, {
          method: 'DELETE',
          headers: bearer(account.accessJwt),
        })
    },
    'POST /v1/admin/notifications/register': async () => {
      const device = await OperatorDevice.paired(pds)
      const { deviceUuid: _, ...json } = registration()
      return () => device.request('/v1/admin/notifications/register', { json })
    },
    'POST /v1/admin/notifications/test': async () => {
      const { account } = await registeredDevice()
      return () => operate('/v1/admin/notifications/test', { did: account.did })
    },
    'POST /v1/admin/notifications/sender-keys/rotate': async () => () =>
      operate('/v1/admin/notifications/sender-keys/rotate'),
    'POST /v1/admin/notifications/sender-keys/:kid/retire': async () => {
      const kid = await senderKey()
      await senderKey()
      return () => operate(`/v1/admin/notifications/sender-keys/${kid}/retire`)
    },
    'POST /v1/admin/notifications/sender-keys/:kid/revoke': async () => {
      const kid = await senderKey()
      return () => operate(`/v1/admin/notifications/sender-keys/${kid}/revoke`)
    },
    'POST /v1/repo-keys/rotation': async () => {
      const { accessJwt } = await sovereign()
      return () => at('/v1/repo-keys/rotation', { headers: bearer(accessJwt) })
    },
    'POST /v1/repo-keys/rotation/complete': async () => {
      const { account, operation } = await rotation()
      return () => at('/v1/repo-keys/rotation/complete', { json: { operation }, headers: bearer(account.accessJwt) })
    },
    'PUT /v1/recovery/escrow-share': async () => {
      const { accessJwt } = await sovereign()
      return () => putShare(pds, accessJwt, newShare())
    },
    'DELETE /v1/recovery/escrow-share': async () => {
      const { accessJwt } = await withShare()
      return () => at('/v1/recovery/escrow-share', { method: 'DELETE', headers: bearer(accessJwt) })
    },
    'POST /v1/recovery/release/cancel': async () => {
      const account = await withShare()
      await release(pds, account.did, await newRecoveryCode(pds, account))
      return () => at('/v1/recovery/release/cancel', { headers: bearer(account.accessJwt) })
    },
    'POST /v1/recovery/initiate': async () => {
      const { did } = await withShare()
      return () => at('/v1/recovery/initiate', { json: { identifier: did } })
    },
    'POST /v1/recovery/release': async () => {
      const account = await withShare()
      const otp = await newRecoveryCode(pds, account)
      return () => release(pds, account.did, otp)
    },

    // Accounts in the making
    'POST /v1/accounts': async () => {
      const name = newName()
      return () => operate('/v1/accounts', { email: `${name}@example.com`, handle: `${name}.test`, tier: 'free' })
    },
    'POST /v1/accounts/mobile': async () => {
      const wallet = { ...newWallet(newName()), code: await claimCode(pds) }
      return () => mobile(pds, wallet)
    },
    'POST /v1/devices': async () => {
      const name = newName()
      const { body } = await operate('/v1/accounts', {
        email: `${name}@example.com`,
        handle: `${name}.test`,
        tier: 'free',
      })
      const { devicePublicKey } = newWallet(name)
      return () => at('/v1/devices', { json: { claimCode: body.claimCode, devicePublicKey, platform: 'ios' } })
    },
    'GET /v1/repo-signing-key': async () => {
      const wallet = await begin(pds, newName())
      return () => signingKeyFor(pds, wallet)
    },
    'POST /v1/dids': async () => {
      const wallet = await begin(pds, newName())
      const json = await prepared(pds, wallet)
      return () => sendDid(pds, wallet, json)
    },
    'POST /v1/accounts/sessions': async () => {
      const { email } = await person()
      return () => at('/v1/accounts/sessions', { json: { email, password: PASSWORD } })
    },
    'POST /v1/pds/keys': async () => () => operate('/v1/pds/keys', { algorithm: 'p256' }),

    // Operators
    'POST /v1/admin/accounts/:did/email': async () => {
      const { did, handle } = await person()
      return () => operate(`/v1/admin/accounts/${did}/email`, { email: `repaired.${handle}@example.com` })
    },
    'POST /v1/admin/accounts/:did/reset-token': async () => {
      const { did } = await person()
      return () => operate(`/v1/admin/accounts/${did}/reset-token`)
    },
    'POST /v1/admin/accounts/:did/reset-mail': async () => {
      const { did } = await person()
      return () => operate(`/v1/admin/accounts/${did}/reset-mail`)
    },
    'POST /v1/admin/waitlist/invite': async () => {
      const email = `${newName()}@example.com`
      await at('/waitlist', { json: { email } })
      return () => operate('/v1/admin/waitlist/invite', { email })
    },
    'POST /v1/admin/waitlist/remove': async () => {
      const email = `${newName()}@example.com`
      await at('/waitlist', { json: { email } })
      return () => operate('/v1/admin/waitlist/remove', { email })
    },
    'POST /v1/admin/configuration': async () => () =>
      operate('/v1/admin/configuration', { name: 'invite_code_required', value: 'false' }),
    'POST /v1/admin/accounts/:did/access/end': async () => {
      const { did } = await person()
      const { access } = (await at(`/v1/admin/accounts/${did}/access`, { method: 'GET', headers: operator })).body
      return () => operate(`/v1/admin/accounts/${did}/access/end`, { id: access[0].id })
    },
    'POST /v1/admin/accounts/:did/reset-factors': async () => {
      const { did } = await person()
      return () => operate(`/v1/admin/accounts/${did}/reset-factors`)
    },
    'POST /v1/admin/accounts/:did/revoke-credentials': async () => {
      const { did } = await person()
      return () => operate(`/v1/admin/accounts/${did}/revoke-credentials`)
    },
    'POST /v1/admin/operators': async () => {
      const { did } = await person()
      return () => operate('/v1/admin/operators', { account: did, role: 'moderator' })
    },
    'POST /v1/admin/sessions': async () => {
      const { did } = await roleHolder(pds, newName(), 'moderator')
      return () => operatorSignIn(pds, did)
    },
    'POST /v1/admin/sessions/prove': async () => {
      const holder = await roleHolder(pds, newName(), 'moderator')
      return () => holder.operate('/v1/admin/sessions/prove', { json: { password: holder.password } })
    },
    'POST /admin/sign-in': async () => {
      const { did } = await roleHolder(pds, newName(), 'moderator')
      return () => new ConsoleBrowser(pds).signIn(did)
    },
    'POST /admin/sign-out': async () => {
      const browser = await signedInOperator()
      const console_token = await browser.formToken()
      return () => browser.send('/admin/sign-out', { console_token })
    },
    'POST /admin/act': async () => {
      const browser = await signedInOperator()
      const { did } = await person()
      const fields = { act: 'takedown', did, reason: 'spam', console_token: await browser.formToken() }
      return () => browser.send('/admin/act', fields)
    },
    'POST /v1/admin/sessions/:id/end': async () => {
      const { token } = await roleHolder(pds, newName(), 'moderator')
      const { sessions } = (await operateAs(pds, token, '/v1/admin/sessions')).body
      return () => operate(`/v1/admin/sessions/${sessions[0].id}/end`)
    },
    'POST /v1/admin/accounts/:did/quota': async () => {
      const { did } = await person()
      return () => operate(`/v1/admin/accounts/${did}/quota`, { records: 1000 })
    },
    'POST /v1/admin/blobs/quarantine': async () => {
      const { did, cid } = await ownedBlob()
      return () => operate('/v1/admin/blobs/quarantine', { did, cid, secs: 3600 })
    },
    'POST /v1/admin/blobs/release': async () => {
      const { did, cid } = await ownedBlob()
      await operate('/v1/admin/blobs/quarantine', { did, cid, secs: 3600 })
      return () => operate('/v1/admin/blobs/release', { did, cid })
    },
    'POST /v1/admin/sign-ups/undo': async () => {
      const { did } = await person()
      const now = pds.clock.now()
      const [from, until] = [now - 60_000, now + 60_000].map((at) => new Date(at).toISOString())
      return () => operate('/v1/admin/sign-ups/undo', { from, until, act: 'takedown', dids: [did] })
    },
    'POST /v1/admin/cases': async () => {
      const { did } = await person()
      return () => operate('/v1/admin/cases', { subject: did, reason: 'seen' })
    },
    'POST /v1/admin/cases/:id/notes': async () => {
      const { id } = await openedCase()
      return () => operate(`/v1/admin/cases/${id}/notes`, { text: 'a note' })
    },
    'POST /v1/admin/cases/:id/deadline': async () => {
      const { id } = await openedCase()
      return () => operate(`/v1/admin/cases/${id}/deadline`, { inSecs: 60 })
    },
    'POST /v1/admin/cases/:id/decision': async () => {
      const { id } = await openedCase()
      return () => operate(`/v1/admin/cases/${id}/decision`, { act: 'warn', reason: 'a reason' })
    },
    'POST /v1/admin/cases/:id/answer': async () => {
      const { id, code } = await warnedCase()
      await at('/v1/decisions/appeal', { json: { code, text: 'not I' } })
      return () => operate(`/v1/admin/cases/${id}/answer`, { outcome: 'upheld', reason: 'a reason' })
    },
    'POST /v1/decisions/appeal': async () => {
      const { code } = await warnedCase()
      return () => at('/v1/decisions/appeal', { json: { code, text: 'not I' } })
    },
    'POST /v1/abuse-notices': async () => {
      const { did } = await person()
      const token = authorityToken({ pds, web })
      const subjects = [{ accountDid: did }]
      const json = { noticeId: 1, authority: NOTICE_AUTHORITY, subjects, abuseType: 'spam' }
      return () => at('/v1/abuse-notices', { json, headers: bearer(token) })
    },
    'POST /v1/admin/quota': async () => () => operate('/v1/admin/quota', { records: 0 }),
    'POST /v1/admin/alerts/test': async () => () => operate('/v1/admin/alerts/test'),
    'POST /v1/admin/host-rename': async () => () => operate('/v1/admin/host-rename', { url: pds.url }),
    'POST /v1/accounts/claim-codes': async () => () => operate('/v1/accounts/claim-codes', { count: 1 }),
    'POST /v1/accounts/claim-codes/revoke': async () => {
      const code = await claimCode(pds)
      return () => operate('/v1/accounts/claim-codes/revoke', { code })
    },
    'POST /v1/admin/sweeps/:name/run': async () => () => operate('/v1/admin/sweeps/name-claims/run'),
    'POST /v1/admin/pairing-codes': async () => () => operate('/v1/admin/pairing-codes'),
    'POST /v1/admin/devices': async () => {
      const { body } = await operate('/v1/admin/pairing-codes')
      const device = new OperatorDevice(pds)
      return () => device.register(body.pairingCode)
    },
    'POST /v1/admin/devices/:id/revoke': async () => {
      const device = await OperatorDevice.paired(pds)
      return () => operate(`/v1/admin/devices/${device.id}/revoke`)
    },
    'GET /v1/admin/devices (signed)': async () => {
      const device = await OperatorDevice.paired(pds)
      return () => device.request('/v1/admin/devices')
    },
  }
}
