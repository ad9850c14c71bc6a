/**
 * Two machines and a bucket: whichever serves is killed, frozen, or cut off from the bucket in the middle of a storm of
 * writes, and the other one takes over. The bucket is slow, lists late, and reports errors after it has stored things.
 * TAKEOVERS says how often; TAKEOVER_SEED chooses the faults, and the number of writes before each.
 */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { lie } from '../../support/faults/lying-bucket.ts'
import { freePort } from '../../support/ports.ts'
import { Random } from '../../support/random.ts'
import { startBucket } from '../../support/servers/bucket-host.ts'
import { runProgram } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'
import { faults, Machine } from './machines.ts'
import { checkEventLog, checkRecords, checkRepositories } from './storm-checks.ts'
import { StormAccount } from './storm.ts'

const TAKEOVERS = Number(process.env['TAKEOVERS'] ?? 5)
const SEED = Number(process.env['TAKEOVER_SEED'] ?? 1)
const WRITERS = 3
/** Far above what one takes. */
const MAX_MILLIS_PER_TAKEOVER = 60_000
/** Of the whole storm, so that accounts remain few. */
const MAX_ACCOUNTS = 4
const MIN_COMMITS = 20
const MAX_COMMITS = 80

const reasons = [...faults, 'promote'] as const

/** Each of the reasons for a takeover once, in an order drawn by lot, and all of them again. */
function* drawn(random: Random): Generator<(typeof reasons)[number]> {
  for (let left = [...reasons]; ; left = left.length > 0 ? left : [...reasons])
    yield* left.splice(random.below(left.length), 1)
}

test(
  `nothing that was acknowledged is lost in ${TAKEOVERS} takeovers, and no number is given twice`,
  async () => {
    const scratch = mkdtempSync(join(tmpdir(), 'holdfast-second-'))
    await using bucket = await startBucket()
    lie(bucket)
    const shared = { SERVICE_PUBLIC_URL: `http://localhost:${await freePort()}` }
    const random = new Random(SEED)
    const next = drawn(random)
    let [serving, other] = [
      await Machine.make(scratch, 'one', bucket, shared),
      await Machine.make(scratch, 'two', bucket, shared),
    ]
    /** What subscribers were sent under each number. */
    const told = new Map<number, string>()
    const longest: number[] = []
    try {
      serving.begin('dev')
      await until(() => serving.promises())
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
        const enough = before + MIN_COMMITS + random.below(MAX_COMMITS - MIN_COMMITS)
        await until(() => commits() > enough, { maxPauseMillis: 1 })

        const reason = next.next().value!
        const since = performance.now()
        if (reason !== 'promote') serving.strike(reason)
        else {
          const env = { ...other.env, SERVICE_DATA_DIR: join(other.folder, 'data') }
          expect(await runProgram(['promote', '--dev'], env)).toMatchObject({ code: 0 })
        }
        await other.server!.listening
        const successor = await StormAccount.create(other.url, `after${round}`)
        longest.push(performance.now() - since)

        isOver = true
        // It notices, and stops by itself.
        await Promise.all([storm, serving.recover()])
        relay.close()
        for (const { body, bytes } of relay.messages) {
          const digest = new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
          expect(told.get(body.seq) ?? digest).toBe(digest)
          told.set(body.seq, digest)
        }
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
      if (process.env['TAKEOVERS'] !== undefined) console.log(`seed ${SEED}:`, longest.map(Math.round))
    } catch (error) {
      for (const { server } of [serving, other]) console.error(server?.output())
      throw error
    } finally {
      await serving.end()
      await other.end()
      rmSync(scratch, { recursive: true, force: true })
    }
  },
  TAKEOVERS * MAX_MILLIS_PER_TAKEOVER,
)
