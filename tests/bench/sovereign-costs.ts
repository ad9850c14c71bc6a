/**
 * What it costs the server to let in somebody who proves to hold a key of the identity, beside somebody who has a
 * password: processor time of all threads of the server, which runs in a process of its own, statements, and reads of
 * the directory. The kinds take turns, so that all meet the same machine.
 *
 *   bun tests/bench/sovereign-costs.ts
 */
import type { DatabaseCounters } from '../../src/platform/database/database.ts'
import { systemResolver } from '../../src/platform/network/resolver.ts'
import { createLog } from '../../src/platform/running/log.ts'
import { PASSWORD, xrpc } from '../harness/account.ts'
import { startFaultyLine } from '../harness/faulty-line.ts'
import { startPds } from '../harness/pds.ts'
import { startPlcServer } from '../harness/plc-server.ts'
import { askSession, deviceKey, sessionRequest, sovereignAccount } from '../harness/wallet.ts'

const ROUNDS = 9
const SESSIONS_PER_ROUND = 40
/** Before the first round, so that what is measured is compiled. */
const WARMING_SESSIONS = 400

/** What the server tells when it is asked. */
interface Reading {
  url: string
  serverDid: string
  cpuMicros: number
  counters: DatabaseCounters
}

if (process.send === undefined) await measure()
else await serve(process.argv[2]!)

async function serve(plcDirectoryUrl: string): Promise<void> {
  const config = { plcDirectoryUrl, rateLimit: { enabled: false }, accounts: { passwordOptional: true } }
  // Those of the program: what tests have in their place costs more than what is measured.
  const log = createLog({ format: 'json', level: 'info', now: Date.now, write: () => {} })
  const pds = await startPds(config, { strictTransactions: false, log, resolver: systemResolver() })
  const read = async () => {
    await pds.ctx.background.settled()
    const { user, system } = process.cpuUsage()
    const { counters } = pds.ctx.db
    const reading: Reading = { url: pds.url, serverDid: pds.ctx.config.serverDid, cpuMicros: user + system, counters: { ...counters } }
    process.send!(reading)
  }
  process.on('message', (word) => void (word === 'stop' ? pds[Symbol.asyncDispose]().then(() => process.exit()) : read()))
  await read()
}

async function measure(): Promise<void> {
  await using plc = await startPlcServer()
  await using line = await startFaultyLine(plc.url)
  let told = Promise.withResolvers<Reading>()
  const server = Bun.spawn([process.execPath, import.meta.path, line.url], {
    stdio: ['ignore', 'inherit', 'inherit'],
    ipc: (reading: Reading) => told.resolve(reading),
  })
  const { url, serverDid } = await told.promise
  const reading = (): Promise<Reading> => {
    told = Promise.withResolvers()
    server.send('read')
    return told.promise
  }
  const wallet = { ctx: { config: { serverDid: serverDid as never } }, clock: Date }
  const [ann, kim] = [await sovereignAccount({ url }, 'ann'), await sovereignAccount({ url }, 'kim', {}, deviceKey('k256'))]
  const kinds: Record<string, () => Promise<{ status: number }>> = {
    'with the password': () => xrpc({ url }, 'com.atproto.server.createSession', { json: { identifier: ann.did, password: PASSWORD } }),
    'with a key on P-256': () => askSession({ url }, sessionRequest(wallet, ann)),
    'with a key on secp256k1': () => askSession({ url }, sessionRequest(wallet, kim)),
    'refused: not signed by the key, on P-256': () =>
      askSession({ url }, { ...sessionRequest(wallet, ann), nonce: sessionRequest(wallet, ann).nonce }),
    'refused: not signed by the key, on secp256k1': () =>
      askSession({ url }, { ...sessionRequest(wallet, kim), nonce: sessionRequest(wallet, kim).nonce }),
  }
  const cpuMicros: Record<string, number[]> = {}
  const counted: Record<string, string> = {}
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [kind, run] of Object.entries(kinds)) {
      line.arrived.length = 0
      const before = await reading()
      for (let i = 0; i < (round === 0 ? WARMING_SESSIONS : SESSIONS_PER_ROUND); i++) {
        const { status } = await run()
        if (status !== (kind.startsWith('refused') ? 401 : 200)) throw new Error(`${kind}: ${status}`)
      }
      const after = await reading()
      // The first round warms up.
      if (round === 0) continue
      const per = (count: number) => (count / SESSIONS_PER_ROUND).toFixed(1)
      ;(cpuMicros[kind] ??= []).push((after.cpuMicros - before.cpuMicros) / SESSIONS_PER_ROUND)
      const { statements, rows, commits } = after.counters
      const [of, by] = [before.counters, [statements, rows, commits] as const]
      counted[kind] = [by[0] - of.statements, by[1] - of.rows, by[2] - of.commits, line.arrived.length].map(per).join(' | ')
    }
  }
  server.send('stop')
  await server.exited
  const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!
  const whole = median(cpuMicros['with the password']!)
  console.log('| A session | ms of processor time | of a password | statements | rows | flushes | reads of the directory |')
  console.log('| --- | ---: | ---: | ---: | ---: | ---: | ---: |')
  for (const [kind, costs] of Object.entries(cpuMicros)) {
    const cost = median(costs)
    console.log(`| ${kind} | ${(cost / 1000).toFixed(2)} | ${(cost / whole).toFixed(3)} | ${counted[kind]} |`)
  }
}
