/**
 * Two machines and a bucket: whichever serves is killed, frozen, or cut off from the bucket in the middle of a storm of
 * writes, and the other one takes over. The bucket is slow, lists late, and reports errors after it has stored things.
 * TAKEOVERS says how often.
 */
import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { request } from '../../support/clients/http.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { lie } from '../../support/faults/lying-bucket.ts'
import { startTcpLine, type TcpLine } from '../../support/faults/tcp-line.ts'
import { freePort } from '../../support/ports.ts'
import { startBucket, type BucketHost } from '../../support/servers/bucket-host.ts'
import { beginProgram, runProgram, type StartingServer } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'
import { checkEventLog, checkRecords, checkRepositories } from './storm-checks.ts'
import { StormAccount } from './storm.ts'

const TAKEOVERS = Number(process.env['TAKEOVERS'] ?? 5)
const WRITERS = 3
const TAKEOVER_SECS = 3
/** Far above what one takes. */
const MAX_MILLIS_PER_TAKEOVER = 60_000
/** Of the whole storm, so that accounts remain few. */
const MAX_ACCOUNTS = 4

const faults = ['kill', 'freeze', 'cut off', 'silence', 'promote'] as const

class Machine {
  server: StartingServer | null = null

  private constructor(
    readonly url: string,
    readonly folder: string,
    readonly line: TcpLine,
    readonly env: Record<string, string>,
  ) {}

  static async make(scratch: string, name: string, { mirror }: BucketHost, shared: Record<string, string>) {
    const folder = join(scratch, name)
    mkdirSync(folder)
    const line = await startTcpLine(mirror.endpoint)
    const port = await freePort()
    return new Machine(`http://localhost:${port}`, folder, line, {
      ...shared,
      PORT: String(port),
      SERVICE_NODE_NAME: name,
      SERVICE_RATE_LIMIT_ENABLED: 'false',
      SERVICE_BACKUP_CONTINUOUS: `s3://${mirror.bucket}/storm`,
      SERVICE_BACKUP_CONTINUOUS_PROMISE: 'sync',
      SERVICE_BACKUP_CONTINUOUS_LAG_MS: '100',
      SERVICE_BACKUP_TAKEOVER_SECS: String(TAKEOVER_SECS),
      SERVICE_BLOB_MIRROR_ENDPOINT: line.url,
      SERVICE_BLOB_MIRROR_ACCESS_KEY_ID: mirror.accessKeyId,
      SERVICE_BLOB_MIRROR_SECRET_ACCESS_KEY: mirror.secretAccessKey.reveal(),
      SERVICE_BLOB_MIRROR_FORCE_PATH_STYLE: 'true',
    })
  }

  begin(command: 'dev' | 'follow'): void {
    this.server = beginProgram(command === 'dev' ? ['dev'] : ['follow', '--dev'], this.env, this.folder)
    // It may end before it listens.
    this.server.listening.catch(() => undefined)
  }

  /** What it says of itself; nothing if it does not answer. */
  async state() {
    try {
      return (await request(`${this.url}/readyz`)).body
    } catch {
      return {}
    }
  }

  async hasCopy(): Promise<boolean> {
    const { role, behindMillis, fault } = await this.state()
    return role === 'follower' && behindMillis !== null && behindMillis < 1000 && fault === null
  }

  async end(): Promise<void> {
    await this.server?.[Symbol.asyncDispose]()
    await this.line[Symbol.asyncDispose]()
  }
}

test(
  `nothing that was acknowledged is lost in ${TAKEOVERS} takeovers, and no number is given twice`,
  async () => {
    const scratch = mkdtempSync(join(tmpdir(), 'holdfast-second-'))
    await using bucket = await startBucket()
    lie(bucket)
    const shared = { SERVICE_PUBLIC_URL: `http://localhost:${await freePort()}` }
    let [serving, other] = [
      await Machine.make(scratch, 'one', bucket, shared),
      await Machine.make(scratch, 'two', bucket, shared),
    ]
    /** What subscribers were sent under each number. */
    const told = new Map<number, string>()
    const longest: number[] = []
    try {
      serving.begin('dev')
      await until(async () => (await serving.state()).continuousBackup?.promise === 'sync')
      const accounts: StormAccount[] = []
      for (let round = 0; round < TAKEOVERS; round++) {
        if (other.server === null) other.begin('follow')
        if (accounts.length < MAX_ACCOUNTS) accounts.push(await StormAccount.create(serving.url, `storm${round}`))
        for (const account of accounts) account.isPatient = true
        await until(() => other.hasCopy())

        let isOver = false
        const storm = Promise.all(
          accounts.flatMap((account) =>
            Array.from({ length: WRITERS }, (_, writer) => account.writeUntilGone(serving.url, writer, () => isOver)),
          ),
        )
        const relay = new Subscriber(serving.url, '?cursor=0')
        relay.opened.catch(() => undefined)
        const commits = () => accounts.reduce((sum, account) => sum + account.commits.length, 0)
        const before = commits()
        await until(() => commits() - before > 20 + ((round * 37) % 60), { maxPauseMillis: 1 })

        const fault = faults[round % faults.length]!
        const former = serving.server!
        const since = performance.now()
        if (fault === 'kill') former.signal('SIGKILL')
        if (fault === 'freeze') former.signal('SIGSTOP')
        if (fault === 'cut off') serving.line.state = 'cut'
        if (fault === 'silence') serving.line.state = 'silent'
        if (fault === 'promote') {
          const env = { ...other.env, SERVICE_DATA_DIR: join(other.folder, 'data') }
          expect(await runProgram(['promote', '--dev'], env)).toMatchObject({ code: 0 })
        }
        await other.server!.listening
        const successor = await StormAccount.create(other.url, `after${round}`)
        longest.push(performance.now() - since)

        isOver = true
        if (fault === 'freeze') former.signal('SIGCONT')
        serving.line.state = 'open'
        // It notices, and stops by itself.
        await Promise.all([storm, former.exited])
        relay.close()
        for (const { body, bytes } of relay.messages) {
          const digest = new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
          expect(told.get(body.seq) ?? digest).toBe(digest)
          told.set(body.seq, digest)
        }
        serving.server = null
        ;[serving, other] = [other, serving]
        await checkRecords(serving, [...accounts, successor])
        await checkRepositories(serving, accounts)
      }
      await checkEventLog(serving, accounts)
      const all = new Subscriber(serving.url, '?cursor=0')
      await all.untilSeen((messages) => (messages.at(-1)?.body.seq ?? 0) >= Math.max(...told.keys()))
      all.close()
      const final = new Map(
        all.messages.map(({ body, bytes }) => [body.seq, new Bun.CryptoHasher('sha256').update(bytes).digest('hex')]),
      )
      expect(Array.from(told).filter(([seq, digest]) => final.get(seq) !== digest)).toEqual([])
      if (process.env['TAKEOVERS'] !== undefined) console.log(longest.map(Math.round))
    } finally {
      await serving.end()
      await other.end()
      rmSync(scratch, { recursive: true, force: true })
    }
  },
  TAKEOVERS * MAX_MILLIS_PER_TAKEOVER,
)
