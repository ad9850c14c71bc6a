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
import { Following } from '../../../src/features/operations/backup/backup.ts'
import { testLog } from '../../support/log.ts'
import { createAccount, PASSWORD, type TestAccount } from '../../support/clients/account.ts'
import { basic, request } from '../../support/clients/http.ts'
import { newRecoveryCode, newShare, putShare, REFUSED, release } from '../../support/clients/recovery.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { walletSession } from '../../support/clients/wallet.ts'
import { ADMIN_TOKEN, testConfig, MASTER_KEY, type ConfigOverrides } from '../../support/servers/config.ts'
import { startPds, freePort, type TestPds } from '../../support/servers/pds.ts'
import { startPlcServer } from '../../support/servers/plc-server.ts'
import { startUpstream } from '../../support/servers/upstream.ts'
import { until } from '../../support/until.ts'

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-takeover-steps-'))
afterAll(() => rmSync(scratch, { recursive: true }))
let folders = 0
const newFolder = () => join(scratch, String(++folders))

/** The outside: a directory and a receiver of webhooks, both of which take what they are sent and may answer later. */
async function startOutside() {
  const directory = await startPlcServer()
  const upstream = startUpstream()
  let held: PromiseWithResolvers<void> | null = null
  const outside = {
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
  config?: ConfigOverrides
  /** Resolves when it is under way, with what the next machine has to show. */
  begin(pds: TestPds, alice: TestAccount, outside: Outside): Promise<(next: App) => Promise<void>>
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

const cases: Case[] = [
  {
    name: 'a webhook is posted again under the same id, and one that was noted is not',
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

test.each(cases)(
  'over a takeover, $name',
  async ({ config = {}, begin }) => {
    await using outside = await startOutside()
    const shared: ConfigOverrides = {
      ...outside.config,
      ...config,
      alerts: { ...outside.config.alerts, ...config.alerts },
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
    const mailer = { send: async () => {}, check: async () => null }
    const app = await startApp(testConfig(place, shared), { clock: pds.clock, log, mailer, resolver: pds.dns })
    try {
      letGo()
      // The first machine learns that it was replaced, whatever it was told from outside.
      await until(
        async () => (await alice.call('com.atproto.server.requestEmailConfirmation', { method: 'POST' })).status >= 400,
      )
      expect((await request(at(app, '/readyz'))).body).toMatchObject({ role: 'serving' })
      await check(app)
    } finally {
      await app.stop()
    }
  },
  60_000,
)
