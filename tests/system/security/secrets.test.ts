/**
 * Everything that people, apps, services and operators do, with the log at its most talkative: no secret is in it, nor
 * in metrics and traces.
 */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLog } from '../../../src/platform/running/log.ts'
import { Secret } from '../../../src/base/secret.ts'
import { createAccount, logIn, PASSWORD } from '../../support/clients/account.ts'
import { begin, claimCode, mobile, newWallet, prepared, sendDid } from '../../support/clients/ceremony.ts'
import { startCollector } from '../../support/servers/collector.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { OAuthClient } from '../../support/clients/oauth-client.ts'
import { lineFault } from '../../support/log.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorldOnFile } from '../../support/file-world.ts'

const NEW_PASSWORD = 'battery horse correct staple'
const MASTER_KEY = 'c0ffee'.padEnd(64, '7')
const MIRROR_SECRET = 'mirror-secret-access-key'

const lines: string[] = []
/** What must not be seen, by what it is. */
const secrets = new Map<string, string>()
const keep = (name: string, secret: unknown): string => {
  expect([name, typeof secret]).toEqual([name, 'string'])
  secrets.set(name, secret as string)
  return secret as string
}
const keepTokens = (name: string, { accessJwt, refreshJwt }: { accessJwt: string; refreshJwt: string }) => {
  keep(`access token of ${name}`, accessJwt)
  keep(`refresh token of ${name}`, refreshJwt)
}
const mailedCode = (purpose: string) =>
  keep(`code to ${purpose}`, pds.mails.flatMap(({ text }) => text.match(/^[A-Z2-7]{5}-[A-Z2-7]{5}$/m) ?? []).at(-1))

const collector = setUp(startCollector)
const { pds } = useWorldOnFile({
  config: () => ({
    rateLimit: { enabled: false },
    inviteCodeRequired: true,
    waitlist: { enabled: true },
    telemetry: { enabled: true, otlpEndpoint: collector.url },
    signingKeyMasterKey: new Secret(Uint8Array.fromHex(MASTER_KEY)),
    // Nobody answers there, so that its faults are told too.
    blobMirror: {
      bucket: 'copies',
      endpoint: 'http://127.0.0.1:1',
      accessKeyId: 'mirror-key-id',
      secretAccessKey: new Secret(MIRROR_SECRET),
      forcePathStyle: true,
    },
  }),
  options: {
    log: createLog({ format: 'json', level: 'debug', now: Date.now, write: (line) => lines.push(line) }),
  },
})

const xrpc = (nsid: string, init?: Parameters<typeof request>[1]) => request(`${pds.url}/xrpc/${nsid}`, init)
const form = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
  request(`${pds.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: new URLSearchParams(fields).toString(),
  })

async function everything(): Promise<void> {
  keep('the admin token', ADMIN_TOKEN)
  keep('the password', PASSWORD)
  keep('the new password', NEW_PASSWORD)
  keep('the master key', MASTER_KEY)
  keep('the secret of the bucket', MIRROR_SECRET)

  const operator = basic('admin', ADMIN_TOKEN)
  const invite = await xrpc('com.atproto.server.createInviteCode', { json: { useCount: 1 }, headers: operator })
  const email = keep('the address', 'alice.secretive@example.com')
  const alice = await createAccount(pds, 'alice', { email, inviteCode: keep('the invite code', invite.body.code) })
  keepTokens('sign-up', alice)
  keepTokens('a login', await logIn(pds, alice, PASSWORD))
  await xrpc('com.atproto.server.createSession', {
    json: { identifier: email, password: keep('a wrong password', 'not the password at all') },
  })
  keepTokens(
    'a refresh',
    (await xrpc('com.atproto.server.refreshSession', { method: 'POST', headers: bearer(alice.refreshJwt) })).body,
  )

  const app = await alice.call('com.atproto.server.createAppPassword', { json: { name: 'app' } })
  keepTokens('an app', await logIn(pds, alice, keep('the app password', app.body.password)))
  const service = await alice.call(
    `com.atproto.server.getServiceAuth?${new URLSearchParams({ aud: pds.ctx.config.serverDid, lxm: 'com.atproto.repo.uploadBlob' })}`,
  )
  await xrpc('com.atproto.repo.uploadBlob', {
    method: 'POST',
    body: 'bytes',
    headers: { 'content-type': 'text/plain', ...bearer(keep('the service token', service.body.token)) },
  })
  await alice.call('com.atproto.repo.createRecord', {
    json: { repo: alice.did, collection: 'org.example.note', record: { text: 'words' } },
  })
  // Nobody answers there either.
  await alice.call('app.bsky.feed.getTimeline')
  await alice.call('com.atproto.moderation.createReport', {
    json: {
      reasonType: 'com.atproto.moderation.defs#reasonSpam',
      subject: { $type: 'com.atproto.admin.defs#repoRef', did: alice.did },
    },
  })

  await alice.call('com.atproto.server.requestEmailConfirmation', { method: 'POST' })
  expect(
    (await alice.call('com.atproto.server.confirmEmail', { json: { email, token: mailedCode('confirm') } })).status,
  ).toBe(200)
  await alice.call('com.atproto.identity.requestPlcOperationSignature', { method: 'POST' })
  expect(
    (await alice.call('com.atproto.identity.signPlcOperation', { json: { token: mailedCode('sign') } })).status,
  ).toBe(200)
  await alice.call('com.atproto.server.requestEmailUpdate', { method: 'POST' })
  expect(
    (
      await alice.call('com.atproto.server.updateEmail', {
        json: { email: keep('the new address', 'alice.moved@example.com'), token: mailedCode('move') },
      })
    ).status,
  ).toBe(200)

  const client = new OAuthClient(pds)
  const requestUri = keep('the request', await client.requestUri())
  const answer = await client.decide(requestUri, { identifier: alice.handle, password: PASSWORD })
  const code = keep('the OAuth code', new URL(answer.headers.get('location')!).searchParams.get('code'))
  const granted = (await client.redeem(code)).body
  keep('the OAuth access token', granted.access_token)
  await client.call(granted.access_token, 'com.atproto.server.getSession')
  keep('a proof', client.lastProof)
  keep('the verifier', client.verifier)
  const renewed = (await client.refresh(keep('the OAuth refresh token', granted.refresh_token))).body
  await client.revoke(keep('the second OAuth refresh token', renewed.refresh_token))

  const signedIn = await form('/account/sign-in', { identifier: alice.handle, password: PASSWORD })
  const cookie = signedIn.headers.get('set-cookie')!.split(';')[0]!
  keep('the cookie', cookie.split('=')[1])
  const page = await request(`${pds.url}/account`, { headers: { cookie } })
  const form_token = keep('the form token', /name="form_token" value="([^"]+)"/.exec(page.body)?.[1])
  expect(
    (
      await form(
        '/account/password',
        { account: alice.did, form_token, current: PASSWORD, next: NEW_PASSWORD },
        { cookie },
      )
    ).status,
  ).toBe(303)

  const pairing = await request(`${pds.url}/v1/admin/pairing-codes`, { json: {}, headers: bearer(ADMIN_TOKEN) })
  keep('the pairing code', pairing.body.pairingCode)
  await request(`${pds.url}/v1/admin/devices`, {
    json: {
      pairingCode: pairing.body.pairingCode,
      label: 'phone',
      publicKey: 'x',
      platform: 'ios',
      timestamp: 1,
      signature: 'wrong',
    },
  })
  const claims = await request(`${pds.url}/v1/accounts/claim-codes`, {
    json: { count: 1 },
    headers: bearer(ADMIN_TOKEN),
  })
  for (const [i, claim] of (JSON.stringify(claims.body).match(/[A-Z0-9]{4,}-[A-Z0-9-]{4,}/g) ?? []).entries())
    keep(`claim code ${i}`, claim)

  const wallet = {
    ...newWallet('wallet'),
    code: await claimCode(pds),
    email: keep('the address of a wallet', 'secretive.wallet@example.com'),
  }
  keep('the claim code of a wallet', wallet.code)
  const begun = await mobile(pds, wallet)
  keep('the token of a device', begun.body.deviceToken)
  const going = { ...wallet, token: keep('the session of an account in the making', begun.body.sessionToken) }
  const born = await sendDid(pds, going, {
    ...(await prepared(pds, going)),
    escrowShare: keep('the share', wallet.share),
  })
  keep('the session of a wallet', born.body.session_token)
  const signedInAgain = await request(`${pds.url}/v1/accounts/sessions`, {
    json: { email: wallet.email, password: PASSWORD },
  })
  keep('the session of a wallet with a password', signedInAgain.body.sessionToken)
  await begin(pds, 'unfinished')

  await request(`${pds.url}/waitlist`, { json: { email: keep('an address on the waitlist', 'waiting@example.com') } })
  await xrpc('com.atproto.admin.sendEmail', {
    json: {
      recipientDid: alice.did,
      senderDid: pds.ctx.config.serverDid,
      content: keep('what operators write', 'between you and me'),
    },
    headers: operator,
  })
  await request(`${pds.url}/v1/admin/accounts/${alice.did}/reset-token`, { json: {}, headers: bearer(ADMIN_TOKEN) })

  await xrpc('com.atproto.server.requestPasswordReset', { json: { email: 'alice.moved@example.com' } })
  for (const sweep of pds.ctx.sweeps.sweeps) await pds.runSweep(sweep.name).catch(() => undefined)
  const last = await logIn(pds, { handle: alice.handle, email }, NEW_PASSWORD)
  await last.call('com.atproto.server.requestAccountDelete', { method: 'POST' })
  expect(
    (
      await xrpc('com.atproto.server.deleteAccount', {
        json: { did: alice.did, password: NEW_PASSWORD, token: mailedCode('delete') },
      })
    ).status,
  ).toBe(200)
}

test('nothing of it is written down', async () => {
  await everything()
  const metrics = String((await request(`${pds.url}/metrics`)).body)
  const { dataDir } = pds
  await pds.stop()
  const database = readFileSync(join(dataDir, 'holdfast.db')).toString('latin1')
  await pds[Symbol.asyncDispose]()
  const traces = JSON.stringify(collector.spans)
  expect(secrets.size).toBeGreaterThan(30)
  expect(lines).not.toEqual([])
  expect(lines.map(lineFault)).toEqual(lines.map(() => null))
  expect(collector.spans.length).toBeGreaterThan(30)
  for (const [name, secret] of secrets) {
    const found = lines.filter((line) => line.includes(secret) || line.includes(encodeURIComponent(secret)))
    expect([name, found]).toEqual([name, []])
    expect([name, metrics.includes(secret), traces.includes(secret)]).toEqual([name, false, false])
  }
  // Addresses, invite and claim codes are shown to operators, so they are kept as they are; whoever reads the file gets
  // no further with the rest.
  const shown = /address|invite code|claim code|^the request$/
  for (const [name, secret] of secrets)
    if (!shown.test(name)) expect([name, database.includes(secret)]).toEqual([name, false])
})
