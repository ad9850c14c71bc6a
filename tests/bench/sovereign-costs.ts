/**
 * What it costs the server to let in somebody who proves to hold a key of the identity, beside somebody who has a
 * password, and to have an app let in by a wallet: processor time of all threads of the server, which runs in a process
 * of its own, statements, and reads of the directory. The kinds take turns, so that all meet the same machine.
 *
 *   bun tests/bench/sovereign-costs.ts
 */
import type { DatabaseCounters } from '../../src/platform/database/database.ts'
import { systemResolver } from '../../src/platform/network/resolver.ts'
import { createLog } from '../../src/platform/running/log.ts'
import { PASSWORD, xrpc } from '../support/clients/account.ts'
import { startFaultyLine } from '../support/faults/faulty-line.ts'
import { OAuthClient } from '../support/clients/oauth-client.ts'
import { startPds } from '../support/servers/pds.ts'
import { startPlcServer } from '../support/servers/plc-server.ts'
import { decisionOf, openConsent, previewOf, sendDecision } from '../support/clients/wallet-consent.ts'
import { askSession, deviceKey, sessionRequest, sovereignAccount } from '../support/clients/wallet.ts'

const ROUNDS = 9
const PER_ROUND = 40
/** Before the first round, so that what is measured is compiled. */
const WARMING = 400

/** What is measured: `run`, with what `prepare` has made before. */
interface Kind<Prepared> {
  expected: number
  prepare(): Promise<Prepared>
  run(prepared: Prepared): Promise<{ status: number }>
}

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
    const reading: Reading = {
      url: pds.url,
      serverDid: pds.ctx.config.serverDid,
      cpuMicros: user + system,
      counters: { ...counters },
    }
    process.send!(reading)
  }
  process.on(
    'message',
    (word) => void (word === 'stop' ? pds[Symbol.asyncDispose]().then(() => process.exit()) : read()),
  )
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
  const [ann, kim] = await Promise.all([
    sovereignAccount({ url }, 'ann'),
    sovereignAccount({ url }, 'kim', {}, deviceKey('k256')),
  ])
  const [pat, quin] = await Promise.all([
    sovereignAccount({ url }, 'pat', { password: undefined }),
    sovereignAccount({ url }, 'quin', { password: undefined }, deviceKey('k256')),
  ])
  const forged = (by: typeof ann) =>
    askSession({ url }, { ...sessionRequest(wallet, by), nonce: sessionRequest(wallet, by).nonce })
  const open = ({ handle }: typeof ann) => openConsent(new OAuthClient({ url, clock: Date }), { login_hint: handle })
  const consent = (by: typeof ann): Kind<Awaited<ReturnType<typeof openConsent>>> => ({
    expected: 200,
    prepare: () => open(by),
    async run(waiting) {
      const preview = await previewOf({ url }, { request_id: waiting.requestId })
      return preview.status === 200 ? sendDecision({ url }, decisionOf(wallet, by, waiting)) : preview
    },
  })
  const plain = (expected: number, run: () => Promise<{ status: number }>): Kind<null> => ({
    expected,
    prepare: () => Promise.resolve(null),
    run,
  })
  const identifier = ann.did
  const kinds: Record<string, Kind<unknown>> = {
    'session with the password': plain(200, () =>
      xrpc({ url }, 'com.atproto.server.createSession', { json: { identifier, password: PASSWORD } }),
    ),
    'session with a key on P-256': plain(200, () => askSession({ url }, sessionRequest(wallet, ann))),
    'session with a key on secp256k1': plain(200, () => askSession({ url }, sessionRequest(wallet, kim))),
    'forged proof of a key on P-256': plain(401, () => forged(ann)),
    'forged proof of a key on secp256k1': plain(401, () => forged(kim)),
    'preview and approval with a key on P-256': consent(pat),
    'preview and approval with a key on secp256k1': consent(quin),
  }
  const cpuMicros: Record<string, number[]> = {}
  const counted: Record<string, string> = {}
  for (let round = 0; round <= ROUNDS; round++) {
    const count = round === 0 ? WARMING : PER_ROUND
    for (const [name, { expected, prepare, run }] of Object.entries(kinds)) {
      const prepared: unknown[] = []
      for (let i = 0; i < count; i++) prepared.push(await prepare())
      line.arrived.length = 0
      const before = await reading()
      for (const one of prepared) {
        const { status } = await run(one)
        if (status !== expected) throw new Error(`${name}: ${status}`)
      }
      const after = await reading()
      if (round === 0) continue
      ;(cpuMicros[name] ??= []).push((after.cpuMicros - before.cpuMicros) / count)
      const [of, by] = [before.counters, after.counters]
      counted[name] = [by.statements - of.statements, by.rows - of.rows, by.commits - of.commits, line.arrived.length]
        .map((total) => (total / count).toFixed(1))
        .join(' | ')
    }
  }
  server.send('stop')
  await server.exited
  const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!
  const whole = median(cpuMicros['session with the password']!)
  console.log('| | ms of processor time | of a password | statements | rows | flushes | reads of the directory |')
  console.log('| --- | ---: | ---: | ---: | ---: | ---: | ---: |')
  for (const [kind, costs] of Object.entries(cpuMicros)) {
    const cost = median(costs)
    console.log(`| ${kind} | ${(cost / 1000).toFixed(2)} | ${(cost / whole).toFixed(3)} | ${counted[kind]} |`)
  }
}
