/** A server on a free port with a folder of its own, and what a test needs around it. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startApp, type App, type Overrides } from '../../../src/app.ts'
import type { BucketHost } from './bucket-host.ts'
import { ADMIN_TOKEN, testConfig, type ConfigOverrides } from './config.ts'
import type { Context } from '../../../src/platform/context.ts'
import type { Mail, Mailer } from '../../../src/platform/network/mailer.ts'
import type { Argon2Cost } from '../../../src/platform/secrets/argon2.ts'
import { Secret } from '../../../src/base/secret.ts'
import type { SweepReport } from '../../../src/platform/running/sweep-state.ts'
import { TestClock } from '../clock.ts'
import { fakeDns, type FakeDns } from './dns.ts'
import { testLog, type LogLine } from '../log.ts'
import { freePort } from '../ports.ts'
import { placeDatabase } from './sqlite.ts'
import { verbsOn, type Verbs } from '../verbs.ts'

export interface TestPds extends AsyncDisposable, Verbs {
  /** Where to send requests; also the public address, if the test configures no other. */
  readonly url: string
  readonly dataDir: string
  readonly clock: TestClock
  /** What names mean to the server; it knows `localhost` and what a test adds. */
  readonly dns: FakeDns
  readonly ctx: Context
  /** The bucket of blobs, if the suite runs with one. */
  readonly bucket: BucketHost | null
  /** Mail that was sent, oldest first. */
  readonly mails: Mail[]
  /** What the log says, oldest first; the lines of requests too. */
  readonly log: readonly LogLine[]
  runSweep(name: string): Promise<SweepReport>
  /** Do what is due, and wait for it. */
  runSteps(): Promise<void>
  /** Stop and start again on the same folder and port. */
  restart(config?: ConfigOverrides): Promise<void>
  stop(): Promise<void>
}

/** A sign-up without the tens of milliseconds of a password that resists guessing. */
const cheapPasswords: Argon2Cost = { memoryKib: 64, passes: 1 }

type Start = (folder: string, more: Overrides) => Promise<App>

/** `publicUrl`: the address of the service, if requests are not sent there. */
export type ServerOptions = Overrides & { publicUrl?: string }

/** What the server stands on. */
interface Ground {
  /** A bucket for its blobs, which goes with it. */
  bucket?: BucketHost | null
  /** Starts it in a folder; twice, if it is two nodes. */
  assemble?: (start: Start, folder: string) => Promise<App>
}

/** A database that the configuration names stays; that of no other name is a file in the folder. */
export async function startServerOn(
  { bucket = null, assemble = (start, folder) => start(folder, {}) }: Ground,
  config: ConfigOverrides,
  options: ServerOptions,
): Promise<TestPds> {
  const dataDir = mkdtempSync(join(tmpdir(), 'holdfast-test-'))
  const port = await freePort()
  const clock = options.clock instanceof TestClock ? options.clock : new TestClock()
  const dns = fakeDns()
  const mails: Mail[] = []
  const { log, lines, verify } = testLog(() => clock.now())
  const mailer: Mailer = {
    async send(mail) {
      mails.push(mail)
    },
    check: async () => null,
  }
  const url = `http://localhost:${port}`
  const { publicUrl = url, ...overrides } = options
  if (config.databaseUrl === undefined) await placeDatabase(join(dataDir, 'holdfast.db'))
  const start = (changes: ConfigOverrides) =>
    assemble(
      (folder, more) =>
        startApp(
          testConfig(
            { dataDir: folder, port, publicUrl },
            {
              adminToken: new Secret(ADMIN_TOKEN),
              ...config,
              ...changes,
              ...(bucket && { blobs: { ...bucket.primary, ...config.blobs, ...changes.blobs } }),
            },
          ),
          {
            clock,
            passed: clock.passed,
            mailer,
            resolver: dns,
            log,
            strictTransactions: true,
            stopGraceMillis: 2000,
            passwordCost: cheapPasswords,
            busyShare: 1,
            ...overrides,
            ...more,
          },
        ),
      dataDir,
    )
  let app: App | null = await start({})

  const stop = async () => {
    await app?.stop()
    app = null
  }
  const context = (): Context => {
    if (!app) throw new Error('the server is stopped')
    return app.ctx
  }
  return {
    ...verbsOn(() => context().db),
    url,
    dataDir,
    clock,
    dns,
    mails,
    bucket,
    log: lines,
    get ctx() {
      return context()
    },
    runSweep: (name) => app!.ctx.sweeps.run(name),
    runSteps: () => app!.ctx.steps.workOff(),
    async restart(changes = {}) {
      await stop()
      app = await start(changes)
    },
    stop,
    async [Symbol.asyncDispose]() {
      await stop()
      await bucket?.[Symbol.asyncDispose]()
      rmSync(dataDir, { recursive: true, force: true })
      verify()
    },
  }
}
