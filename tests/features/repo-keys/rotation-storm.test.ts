/**
 * Key rotations whose server is killed at any moment, while the wallet repeats its request as soon as the server is
 * back and meets the durable step half-way. ROTATION_KILLS says how often.
 */
import { expect, test } from 'bun:test'
import { randomInt } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Operation } from '../../../src/protocol/plc.ts'
import { createAccount } from '../../support/clients/account.ts'
import { startFaultyLine, type Fate } from '../../support/faults/faulty-line.ts'
import { request, type Answer } from '../../support/clients/http.ts'
import { freePort } from '../../support/ports.ts'
import { startPlcServer } from '../../support/servers/plc-server.ts'
import { startProgram } from '../../support/servers/program.ts'
import { deviceKey } from '../../support/clients/wallet.ts'
import {
  complete,
  namedKey,
  publishing,
  stagedKey,
  verifiedRecords,
  write,
  type Wallet,
} from '../../support/clients/rotating.ts'

const KILLS = Number(process.env['ROTATION_KILLS'] ?? 12)
const MILLIS_PER_KILL = 30_000
/** Tries of a wallet that is told to come back. */
const MAX_TRIES = 20

/** What becomes of the operation when the server is killed while it sends it. */
const moments = {
  'at any moment': null,
  'before the operation left': 'question lost',
  'while the operation was on its way': 'late',
  'after the directory took the operation': 'answer lost',
} as const
type Moment = keyof typeof moments

test(
  `a rotation is finished once, whenever the server is killed (${KILLS} times)`,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-rotations-'))
    await using directory = await startPlcServer()
    await using line = await startFaultyLine(directory.url)
    const env = {
      PORT: String(await freePort()),
      SERVICE_DATA_DIR: join(folder, 'data'),
      SERVICE_PLC_DIRECTORY_URL: line.url,
      SERVICE_SIGNING_KEY_MASTER_KEY: '07'.repeat(32),
      SERVICE_RATE_LIMIT_ENABLED: 'false',
    }
    const start = () => startProgram(['dev'], env, folder)
    let server = await start()
    const device = deviceKey()
    let wallet: Wallet = {
      pds: server,
      directory,
      account: await createAccount(server, 'alice', { recoveryKey: device.did }),
      device,
    }
    const logLength = async () =>
      (await request(`${directory.url}/${wallet.account.did}/log/audit`)).body.length as number
    const posts = () => line.arrived.filter(({ method }) => method === 'POST').length
    const counts: Record<string, number> = {}
    const count = (what: string) => (counts[what] = (counts[what] ?? 0) + 1)

    async function killedWhileCompleting(operation: Operation, moment: Moment): Promise<void> {
      const killed = Promise.withResolvers<void>()
      const sent = Promise.withResolvers<void>()
      const fate = moments[moment]
      line.fate = async ({ method }): Promise<Fate> => {
        await Bun.sleep(randomInt(10))
        if (fate === null || method !== 'POST') return 'answered'
        if (fate === 'answer lost') return (sent.resolve(), 'answer lost')
        sent.resolve()
        await killed.promise
        if (fate === 'question lost') return 'question lost'
        await Bun.sleep(randomInt(1000))
        return 'answered'
      }
      const completing = complete(wallet, operation).catch(() => null)
      await (fate === null ? Bun.sleep(randomInt(120)) : sent.promise)
      if (fate === 'answer lost') await Bun.sleep(randomInt(20))
      server.signal('SIGKILL')
      await server.exited
      killed.resolve()
      await completing
    }

    /** As wallets do, which come back when they are told to, or get no answer. */
    async function repeated(operation: Operation): Promise<Answer> {
      for (let tries = 1; ; tries++) {
        const answer = await complete(wallet, operation).catch(() => null)
        if (answer !== null) count(`${answer.status} ${answer.body?.error?.message ?? ''}`.trim())
        if (answer !== null && ![502, 503].includes(answer.status)) return answer
        if (tries === MAX_TRIES) throw new Error(`the rotation was not finished: ${JSON.stringify(answer?.body)}`)
        await Bun.sleep(200)
      }
    }

    try {
      for (let kill = 0; kill < KILLS; kill++) {
        const names = Object.keys(moments) as Moment[]
        const moment = names[kill % names.length]!
        line.fate = () => 'answered'
        const staged = await stagedKey(wallet)
        const operation = await publishing(wallet, staged)
        const [before, postsBefore] = [await logLength(), posts()]
        await killedWhileCompleting(operation, moment)
        line.fate = async (): Promise<Fate> => {
          await Bun.sleep(randomInt(40))
          return 'answered'
        }
        server = await start()
        wallet = { ...wallet, pds: server }
        const answers = await Promise.all([repeated(operation), ...(kill % 2 === 0 ? [repeated(operation)] : [])])
        for (const { status, body } of answers)
          expect({ moment, status, body }).toEqual({ moment, status: 200, body: { signingKey: staged } })
        const outcome = {
          moment,
          key: await namedKey(wallet),
          entries: (await logLength()) - before,
          posts: posts() - postsBefore,
        }
        expect(outcome).toEqual({ moment, key: staged, entries: 1, posts: 1 })
        expect((await write(wallet, `after ${kill}`)).status).toBe(200)
        expect(await verifiedRecords(wallet)).toBe(kill + 1)
      }
      console.log(`${KILLS} kills: ${JSON.stringify(counts)}`)
    } finally {
      server.signal('SIGKILL')
      await server.exited
      rmSync(folder, { recursive: true, force: true })
    }
  },
  MILLIS_PER_KILL * KILLS,
)
