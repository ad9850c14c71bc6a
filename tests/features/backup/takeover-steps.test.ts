/**
 * What must happen once, or be told once, when another machine takes over in the middle of it. The machine that is
 * replaced lives on: it waits for an answer from outside, and gets it after the takeover.
 */
import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startApp, type App } from '../../../src/app.ts'
import { Secret } from '../../../src/base/secret.ts'
import { features } from '../../../src/features.ts'
import { Following } from '../../../src/features/operations/backup/backup.ts'
import type { Mail } from '../../../src/platform/network/mailer.ts'
import { testLog } from '../../support/log.ts'
import { createAccount, PASSWORD, type TestAccount } from '../../support/clients/account.ts'
import { basic, request } from '../../support/clients/http.ts'
import { answer, begin as beginMove, moveOf } from '../../support/clients/mover.ts'
import { Phone } from '../../support/clients/phone.ts'
import {
  initiate,
  newRecoveryCode,
  newShare,
  putShare,
  recoveryCodes,
  REFUSED,
  release,
} from '../../support/clients/recovery.ts'
import { complete, namedKey, publishing, stagedKey, verifiedRecords } from '../../support/clients/rotating.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { sovereignAccount, walletSession } from '../../support/clients/wallet.ts'
import { startLyingHost } from '../../support/faults/lying-host.ts'
import { ADMIN_TOKEN, testConfig, MASTER_KEY, type ConfigOverrides } from '../../support/servers/config.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { startPds, freePort, type TestPds } from '../../support/servers/pds.ts'
import { PushRelay } from '../../support/servers/push-relay.ts'
import { startPlcServer } from '../../support/servers/plc-server.ts'
import { startUpstream } from '../../support/servers/upstream.ts'
import { until } from '../../support/until.ts'

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-takeover-steps-'))
afterAll(() => rmSync(scratch, { recursive: true }))
let folders = 0
const newFolder = () => join(scratch, String(++folders))

/** By kind of durable step: what else shows what a takeover does to it, or why nothing has to. */
const elsewhere: Record<string, string> = {
  mail: 'system/durability/takeover-mail.test.ts',
  push: 'system/durability/takeover-push.test.ts',
  crawl: 'asks a crawler for nothing but a look, as the server that starts does anyway',
  'first-certificate':
    'has no effect but events, in the transaction that ends the step: one that the other machine has made is in the chain',
  'host-rename':
    'notes each account in a row, and a machine that continues it is like one that starts again: rename-host/rename-kill.test.ts',
}

/** The outside: a directory and a receiver of webhooks, both of which take what they are sent and may answer later. */
async function startOutside() {
  const directory = await startPlcServer()
  const upstream = startUpstream()
  let held: PromiseWithResolvers<void> | null = null
  const others = new AsyncDisposableStack()
  const outside = {
    directory,
    /** Others who are gone with it. */
    others,
    relay: null as PushRelay | null,
    /** Resolves when what comes is answered; null if it is at once. */
    get held() {
      return held?.promise ?? null
    },
    /** Answer nothing from now on. */
    hold: () => void (held = Promise.withResolvers()),
    /** Answer what comes from now on. Returns what answers the rest. */
    answerOthers() {
      const letGo = held?.resolve
      held = null
      return () => letGo?.()
    },
    /** The directory has taken so many operations. */
    operations: 0,
    posts: [] as { id: string; body: string }[],
    config: {
      plcDirectoryUrl: upstream.url,
      alerts: {
        webhookUrl: `${upstream.url}/hook`,
        webhookSecret: new Secret(`whsec_${Buffer.alloc(32, 7).toString('base64')}`),
      },
    } satisfies ConfigOverrides,
    async [Symbol.asyncDispose]() {
      await others.disposeAsync()
      await upstream[Symbol.asyncDispose]()
      await directory[Symbol.asyncDispose]()
    },
  }
  upstream.answer('', async (asked, { path }) => {
    if (path === '/hook') {
      outside.posts.push({ id: asked.headers.get('webhook-id')!, body: await asked.text() })
      await held?.promise
      return new Response()
    }
    const body = asked.method === 'POST' ? await asked.text() : null
    const answer = await fetch(directory.url + path, {
      method: asked.method,
      headers: { 'content-type': 'application/json' },
      body,
    })
    const text = await answer.text()
    if (asked.method === 'POST') {
      outside.operations++
      await held?.promise
    }
    return new Response(text, { status: answer.status, headers: { 'content-type': 'application/json' } })
  })
  return outside
}

type Outside = Awaited<ReturnType<typeof startOutside>>

interface Case {
  name: string
  /** The kinds of the steps that are under way, or wait. */
  steps?: string[]
  config?: ConfigOverrides | ((outside: Outside) => Promise<ConfigOverrides>)
  /** Resolves when it is under way, with what the next machine has to show, which has sent these mails. */
  begin(pds: TestPds, alice: TestAccount, outside: Outside): Promise<(next: App, mails: Mail[]) => Promise<void>>
}

const at = (app: Pick<App, 'port'>, path: string) => `http://localhost:${app.port}${path}`
const xrpc = ({ port }: Pick<App, 'port'>, method: string, json?: object, headers: Record<string, string> = {}) =>
  request(`http://localhost:${port}/xrpc/com.atproto.${method}`, { headers, ...(json && { json }) })

/** The types of the events of an account, until one after all of them. */
async function eventsOf(next: App, did: string): Promise<string[]> {
  const { body: last } = await xrpc(next, 'server.createAccount', {
    handle: 'zoe.test',
    email: 'zoe@example.com',
    password: PASSWORD,
  })
  const subscriber = new Subscriber(at(next, ''), '?cursor=0')
  const messages = await subscriber.untilSeen((seen) => seen.some(({ body }) => body['did'] === last.did))
  subscriber.close()
  return messages.filter(({ body }) => (body['did'] ?? body['repo']) === did).map(({ type }) => type)
}

const isIdle = async (next: App) => (await next.ctx.steps.summaries()).every(({ waiting }) => waiting === 0)

const codeIn = ({ mails }: Pick<TestPds, 'mails'>): string => /\b[A-Z2-7]{5}-[A-Z2-7]{5}\b/.exec(mails.at(-1)!.text)![0]

async function invite(pds: TestPds): Promise<string> {
  const headers = basic('admin', ADMIN_TOKEN)
  return (await xrpc(pds.ctx.config, 'server.createInviteCode', { useCount: 1 }, headers)).body.code
}

/** What is asked for twice: it is done for the first time, and waits for the second as the machine is replaced. */
async function askTwice(pds: TestPds, ask: () => Promise<unknown>, isDone: () => boolean): Promise<void> {
  await ask()
  await pds.runSteps()
  await until(isDone)
  await pds.ctx.steps.stop()
  await ask()
}

/** The mails of the machines to this address that have such a text. */
const mailed = (mails: readonly Mail[], to: string, text: string | RegExp): Mail[] =>
  mails.filter((mail) => mail.to === to && mail.text.match(text) !== null)

const cases: Case[] = [
  {
    name: 'a notice that waits is mailed once, and one that was mailed is not',
    steps: ['notice'],
    async begin(pds, alice) {
      let count = 0
      const ask = () => alice.call('com.atproto.server.createAppPassword', { json: { name: `app ${++count}` } })
      const notices = (mails: readonly Mail[]) => mailed(mails, alice.email, 'If it was not you')
      const before = notices(pds.mails).length
      await askTwice(pds, ask, () => notices(pds.mails).length === before + 1)
      return async (next, mails) => {
        await until(() => isIdle(next))
        expect(notices(mails)).toHaveLength(1)
        expect(notices(pds.mails)).toHaveLength(before + 1)
      }
    },
  },
  {
    name: 'a code for a new password that waits is mailed once, and is good once',
    steps: ['password-reset'],
    async begin(pds, alice) {
      const json = { email: alice.email }
      const ask = () => xrpc(pds.ctx.config, 'server.requestPasswordReset', json)
      const codes = (mails: readonly Mail[]) => mailed(mails, alice.email, /\b[A-Z2-7]{5}-[A-Z2-7]{5}\b/)
      await askTwice(pds, ask, () => codes(pds.mails).length === 1)
      return async (next, mails) => {
        await until(() => isIdle(next))
        expect(codes(mails)).toHaveLength(1)
        expect(codes(pds.mails)).toHaveLength(1)
        const input = { token: codeIn({ mails: codes(mails) }), password: 'another password' }
        expect((await xrpc(next, 'server.resetPassword', input)).status).toBe(200)
        expect((await xrpc(next, 'server.resetPassword', input)).body.error).toBe('InvalidToken')
      }
    },
  },
  {
    name: 'a recovery code that waits is mailed once, and opens a release',
    steps: ['recovery-request'],
    async begin(pds, alice) {
      await putShare(pds, await walletSession(pds, alice.did), newShare())
      const codes = (mails: readonly Mail[]) => mailed(mails, alice.email, 'Recovery code:')
      await askTwice(
        pds,
        () => initiate(pds, alice.did),
        () => codes(pds.mails).length === 1,
      )
      return async (next, mails) => {
        await until(() => isIdle(next))
        expect(codes(mails)).toHaveLength(1)
        expect(codes(pds.mails)).toHaveLength(1)
        const [code] = await recoveryCodes({ mails, runSteps: () => next.ctx.steps.workOff() }, alice.email)
        expect((await release({ url: at(next, '') }, alice.did, code)).body.status).toBe('pending')
      }
    },
  },
  {
    name: 'a key of a repository that the directory has taken is the one that signs',
    steps: ['settle-signing-key'],
    async begin(pds, _, { directory, ...outside }) {
      const { device, ...account } = await sovereignAccount(pds, 'bob')
      const wallet = { pds, directory, account, device }
      const staged = await stagedKey(wallet)
      const operation = await publishing(wallet, staged)
      outside.hold()
      void complete(wallet, operation)
      await until(async () => (await namedKey(wallet)) === staged)
      return async (next) => {
        pds.clock.advance({ secs: 5 })
        await next.ctx.steps.workOff()
        await until(() => isIdle(next))
        expect(await next.ctx.plc.auditLog(account.did as never)).toHaveLength(2)
        const input = { repo: account.did, collection: 'org.example.note', record: { $type: 'org.example.note' } }
        const headers = { authorization: `Bearer ${account.accessJwt}` }
        expect((await xrpc(next, 'repo.createRecord', input, headers)).status).toBe(200)
        expect(await verifiedRecords({ ...wallet, pds: { url: at(next, '') } })).toBe(1)
      }
    },
  },
  {
    name: 'a device that the push relay has taken is asked for once more, and known once',
    steps: ['push-handle'],
    async config(outside) {
      outside.relay = outside.others.use(await PushRelay.start())
      return outside.relay.config
    },
    async begin(pds, alice, outside) {
      const relay = outside.relay!
      const [first, second] = [new Phone(pds, alice), new Phone(pds, alice)]
      const isKnown = ({ token }: Phone) => relay.handleOf(token) !== undefined
      expect((await first.register()).status).toBe(200)
      await until(() => isKnown(first))
      outside.hold()
      relay.held = outside.held
      expect((await second.register()).status).toBe(200)
      await until(() => isKnown(second))
      relay.held = null
      return async (next) => {
        await until(() => isIdle(next))
        expect(relay.devices.map(({ token }) => token).toSorted()).toEqual([first.token, second.token].toSorted())
      }
    },
  },
  {
    name: 'an account that moves in arrives once, with all that it had',
    steps: ['move-in'],
    async begin(pds, _, outside) {
      const { directory, others } = outside
      const host = others.use(startLyingHost())
      const old = others.use(
        await startPds({ plcDirectoryUrl: directory.url, rateLimit: { enabled: false } }, { publicUrl: host.url }),
      )
      host.to = old.url
      const from = await createAccount(old, 'anna')
      const record = { $type: 'org.example.note', text: 'from before' }
      await from.call('com.atproto.repo.createRecord', {
        json: { repo: from.did, collection: 'org.example.note', record },
      })
      const reached = Promise.withResolvers<void>()
      outside.hold()
      const { held } = outside
      host.lie = async (nsid) => {
        if (nsid !== 'app.bsky.actor.getPreferences') return null
        reached.resolve()
        await held
        return null
      }
      const moving = await beginMove(pds, from, 'anna-here')
      await reached.promise
      host.lie = () => null
      return async (next) => {
        const there = { url: at(next, '') }
        await until(async () => (await moveOf(there, moving)).needs === 'signature')
        const { agreement } = await moveOf(there, moving)
        const code = await lastCode(old, from.email)
        expect((await answer(there, moving, { code, agreement })).status).toBe(200)
        await until(async () => (await moveOf(there, moving)).stage === 'done')
        expect(await next.ctx.plc.auditLog(from.did as never)).toHaveLength(2)
        const { body } = await xrpc(next, `repo.listRecords?repo=${from.did}&collection=org.example.note`)
        expect(body.records.map(({ value }: { value: unknown }) => value)).toEqual([record])
        expect((await xrpc(old.ctx.config, `sync.getRepoStatus?did=${from.did}`)).body.active).toBe(false)
      }
    },
  },
  {
    name: 'a webhook is posted again under the same id, and one that was noted is not',
    steps: ['alert-webhook'],
    config: { alerts: { diskFreeBytes: Number.MAX_SAFE_INTEGER } },
    async begin(pds, _, outside) {
      await request(`${pds.url}/v1/admin/alerts/test`, {
        method: 'POST',
        headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
      })
      outside.hold()
      await pds.runSweep('alerts')
      await until(() => outside.posts.length === 2)
      return async (next) => {
        await until(() => outside.posts.length === 3)
        await until(() => isIdle(next))
        expect(outside.posts[2]).toEqual(outside.posts[1])
        expect(outside.posts).toHaveLength(3)
      }
    },
  },
  {
    name: 'an operation that the directory has taken is told to subscribers once',
    steps: ['told-operation'],
    async begin(pds, alice, outside) {
      const identity = (method: string, json?: object) =>
        alice.call(`com.atproto.identity.${method}`, { method: 'POST', ...(json && { json }) })
      await identity('requestPlcOperationSignature')
      await pds.runSteps()
      const { body } = await identity('signPlcOperation', {
        token: codeIn(pds),
        alsoKnownAs: [`at://${alice.handle}`, 'at://also.example.com'],
      })
      const before = outside.operations
      outside.hold()
      void identity('submitPlcOperation', { operation: body.operation })
      await until(() => outside.operations === before + 1)
      return async (next) => {
        pds.clock.advance({ secs: 5 })
        await next.ctx.steps.workOff()
        await until(() => isIdle(next))
        expect(await next.ctx.plc.auditLog(alice.did as never)).toHaveLength(2)
        expect((await eventsOf(next, alice.did)).filter((type) => type === '#identity')).toHaveLength(2)
      }
    },
  },
  {
    name: 'an account that was deleted stays deleted, its deletion is told once, and its code is spent',
    async begin(pds, alice) {
      await alice.call('com.atproto.server.requestAccountDelete', { method: 'POST' })
      await pds.runSteps()
      const input = { did: alice.did, password: alice.password, token: codeIn(pds) }
      expect((await xrpc(pds.ctx.config, 'server.deleteAccount', input)).status).toBe(200)
      return async (next) => {
        expect((await xrpc(next, `sync.getRepo?did=${alice.did}`)).status).toBe(400)
        expect((await xrpc(next, 'server.deleteAccount', input)).status).toBe(401)
        const types = await eventsOf(next, alice.did)
        expect(types.at(-1)).toBe('#account')
        expect(types.filter((type) => type === '#account')).toHaveLength(1)
      }
    },
  },
  {
    name: 'an invite is used once, and one that is left is good for one account',
    config: { inviteCodeRequired: true },
    async begin(pds) {
      const [spent, left] = [await invite(pds), await invite(pds)]
      await createAccount(pds, 'carol', { inviteCode: spent })
      return async (next) => {
        const signUp = (name: string, inviteCode: string) =>
          xrpc(next, 'server.createAccount', {
            handle: `${name}.test`,
            email: `${name}@example.com`,
            password: PASSWORD,
            inviteCode,
          })
        expect((await signUp('dave', spent)).body.error).toBe('InvalidInviteCode')
        expect((await signUp('dave', left)).status).toBe(200)
        expect((await signUp('erin', left)).body.error).toBe('InvalidInviteCode')
      }
    },
  },
  {
    name: 'a release from escrow that was opened is collected, and its code opens no other',
    async begin(pds, alice) {
      const share = newShare()
      await putShare(pds, await walletSession(pds, alice.did), share)
      const code = await newRecoveryCode(pds, alice)
      expect((await release(pds, alice.did, code)).body.status).toBe('pending')
      return async (next) => {
        const there = { url: at(next, '') }
        expect((await release(there, alice.did)).body.status).toBe('pending')
        pds.clock.advance({ secs: 86_401 })
        expect((await release(there, alice.did)).body).toEqual({ status: 'released', share })
        // It may be collected again for an hour.
        pds.clock.advance({ secs: 3601 })
        expect(await release(there, alice.did, code)).toMatchObject(REFUSED)
      }
    },
  },
]

test('every kind of durable step is among them, or known elsewhere', () => {
  const kinds = features.flatMap(({ steps = [] }) => steps.map(({ name }) => name))
  const known = [...cases.flatMap(({ steps = [] }) => steps), ...Object.keys(elsewhere)]
  expect(known.toSorted()).toEqual(kinds.toSorted())
})

test.each(cases)(
  'over a takeover, $name',
  async ({ config = {}, begin }) => {
    await using outside = await startOutside()
    const own = typeof config === 'function' ? await config(outside) : config
    const shared: ConfigOverrides = {
      ...outside.config,
      ...own,
      alerts: { ...outside.config.alerts, ...own.alerts },
      signingKeyMasterKey: MASTER_KEY,
      adminToken: new Secret(ADMIN_TOKEN),
      rateLimit: { enabled: false },
      backup: { continuous: newFolder(), continuousPromise: 'sync' },
    }
    await using pds = await startPds(shared, { onFile: true })
    const alice = await createAccount(pds, 'alice', { inviteCode: await invite(pds) })
    await until(async () => (await request(`${pds.url}/readyz`)).body.continuousBackup?.promise === 'sync')
    const check = await begin(pds, alice, outside)

    const place = { dataDir: newFolder(), port: await freePort(), publicUrl: pds.url }
    const { log } = testLog(() => pds.clock.now())
    await new Following({ config: testConfig(place, shared), clock: pds.clock, log }).promote()
    const letGo = outside.answerOthers()
    const mails: Mail[] = []
    const mailer = { send: async (mail: Mail) => void mails.push(mail), check: async () => null }
    const app = await startApp(testConfig(place, shared), { clock: pds.clock, log, mailer, resolver: pds.dns })
    try {
      letGo()
      // The first machine learns that it was replaced, whatever it was told from outside.
      await until(
        async () => (await alice.call('com.atproto.server.requestEmailConfirmation', { method: 'POST' })).status >= 400,
      )
      expect((await request(at(app, '/readyz'))).body).toMatchObject({ role: 'serving' })
      await check(app, mails)
    } finally {
      await app.stop()
    }
  },
  60_000,
)
