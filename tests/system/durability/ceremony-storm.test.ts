/**
 * `kill -9` in the middle of a storm of ceremonies, on a line to the directory that loses questions and answers.
 * CEREMONY_KILLS says how often. Whoever was cut off repeats what it sent and has one account, which is the identity
 * that it made, and nothing is left of the rest.
 */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  claimCode,
  didRequest,
  mobile,
  newWallet,
  operate,
  sendDid,
  signingKeyFor,
  type PendingWallet,
} from '../../support/clients/ceremony.ts'
import { startFaultyLine, type Fate, type FaultyLine } from '../../support/faults/faulty-line.ts'
import { PASSWORD } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { freePort } from '../../support/ports.ts'
import { startPlcServer } from '../../support/servers/plc-server.ts'
import { startProgram, type RunningServer } from '../../support/servers/program.ts'

const KILLS = Number(process.env['CEREMONY_KILLS'] ?? 10)
const WALLETS_PER_ROUND = 5
const MAX_MILLIS_PER_KILL = 15_000
/** A kill comes when so many requests of wallets have been sent and operations have reached the line. */
const stepsBeforeKill = (round: number) => 1 + ((round * 7) % (WALLETS_PER_ROUND * 4))

const fates: readonly Fate[] = ['answered', 'answer lost', 'answered', 'question lost']

/** Returns what starts a server in this folder, always at the same address. */
async function starterIn(folder: string, plcUrl: string): Promise<() => Promise<RunningServer>> {
  const port = await freePort()
  const url = `http://localhost:${port}`
  const env = {
    PORT: String(port),
    SERVICE_PUBLIC_URL: url,
    SERVICE_RATE_LIMIT_ENABLED: 'false',
    SERVICE_PLC_DIRECTORY_URL: plcUrl,
    SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
    SERVICE_SIGNING_KEY_MASTER_KEY: '07'.repeat(32),
  }
  return async () => Object.assign(await startProgram(['dev'], env, folder), { url })
}

/** What a wallet has stored before it sends it. */
type Persistent = PendingWallet & { json: ReturnType<typeof didRequest> | null }

test(
  `after ${KILLS} kills every wallet has one account, of the identity that it made`,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-ceremonies-'))
    await using directory = await startPlcServer()
    await using line = await startFaultyLine(directory.url)
    const start = await starterIn(folder, line.url)
    try {
      let count = 0
      for (let round = 0; round < KILLS; round++) {
        const wallets: Persistent[] = []
        {
          await using server = await start()
          for (let i = 0; i < WALLETS_PER_ROUND; i++)
            wallets.push({ ...newWallet(`round${round}-${i}`), code: await claimCode(server), json: null })
          await stormAndKill(server, line, wallets, round)
        }
        await using server = await start()
        for (const wallet of wallets) await finish(server, directory.url, wallet)
        count += wallets.length
        expect((await operate(server, '/v1/admin/ceremonies')).body.ceremonies).toEqual([])
        const { body } = await request(`${server.url}/xrpc/com.atproto.sync.listRepos?limit=1000`)
        expect(body.repos).toHaveLength(count)
        expect(server.output()).not.toMatch(/ ERROR /)
      }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
  KILLS * MAX_MILLIS_PER_KILL,
)

test('a server that is killed once the directory has the identity, before it knows, goes on with that identity', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-ceremonies-'))
  await using directory = await startPlcServer()
  await using line = await startFaultyLine(directory.url)
  const start = await starterIn(folder, line.url)
  try {
    const wallet: Persistent = { ...newWallet('alice'), json: null }
    {
      await using server = await start()
      wallet.code = await claimCode(server)
      wallet.token = (await mobile(server, wallet)).body.sessionToken
      wallet.json = didRequest(server, wallet, (await signingKeyFor(server, wallet)).body.keyId)
      line.fate = ({ method }) => {
        if (method === 'POST') return 'answer lost'
        // It asks what became of its operation.
        server.signal('SIGKILL')
        return 'question lost'
      }
      await Promise.allSettled([sendDid(server, wallet, wallet.json)])
      await server.exited
      line.fate = () => 'answered'
    }
    await using server = await start()
    expect((await operate(server, '/v1/admin/ceremonies')).body.ceremonies).toMatchObject([
      { state: 'did_stored', handle: wallet.handle },
    ])
    // The session is still good.
    expect(await sendDid(server, wallet, wallet.json)).toMatchObject({ status: 200 })
    expect(line.arrived.filter(({ method }) => method === 'POST')).toHaveLength(2)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})

/** Every wallet goes through its ceremony at once, as far as it gets. */
async function stormAndKill(
  server: RunningServer,
  line: FaultyLine,
  wallets: Persistent[],
  round: number,
): Promise<void> {
  const reached = Promise.withResolvers<void>()
  let steps = 0
  const step = () => {
    if (++steps === stepsBeforeKill(round)) reached.resolve()
  }
  line.fate = ({ method }) => {
    if (method !== 'POST') return 'answered'
    step()
    return fates[steps % fates.length]!
  }
  const storm = wallets.map(async (wallet) => {
    step()
    wallet.token = (await mobile(server, wallet)).body.sessionToken
    step()
    wallet.json = didRequest(server, wallet, (await signingKeyFor(server, wallet)).body.keyId)
    step()
    await sendDid(server, wallet, wallet.json)
  })
  await Promise.race([reached.promise, Promise.allSettled(storm)])
  server.signal('SIGKILL')
  await Promise.all([Promise.allSettled(storm), server.exited])
  line.fate = () => 'answered'
}

/** Repeats what was cut off, from the first step. */
async function finish(server: RunningServer, directory: string, wallet: Persistent): Promise<void> {
  const logIn = () =>
    request(`${server.url}/v1/accounts/sessions`, {
      json: { email: wallet.email, password: PASSWORD },
      keepalive: false,
    })
  const begun = await mobile(server, wallet)
  if (begun.status === 201) {
    wallet.token = begun.body.sessionToken
    const { body } = await signingKeyFor(server, wallet)
    wallet.json ??= didRequest(server, wallet, body.keyId)
    expect(wallet.json.signedCreationOp.verificationMethods['atproto']).toBe(body.keyId)
    expect(await sendDid(server, wallet, wallet.json)).toMatchObject({ status: 200 })
  } else expect(begun).toMatchObject({ status: 409, body: { error: { code: 'ACCOUNT_EXISTS' } } })
  const { status, body } = await logIn()
  expect(status).toBe(200)
  expect((await request(`${directory}/${body.did}/log/last`)).body).toEqual(wallet.json!.signedCreationOp)
  expect((await request(`${server.url}/xrpc/com.atproto.repo.describeRepo?repo=${body.did}`)).status).toBe(200)
}
