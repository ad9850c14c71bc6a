/**
 * A small machine on a busy hour: 1,000 people are signed in, 100 of their requests are under way at once, 20 programs
 * subscribe to the firehose, pictures and films of 5 MB are uploaded, large repositories are exported, and a backup is
 * made meanwhile.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { startApp } from '../../src/app.ts'
import type { TestAccount } from './clients/account.ts'
import { measured, noUsage, signUp, useOnce, type Usage } from './clients/busy-people.ts'
import { request } from './clients/http.ts'
import { Subscriber } from './clients/subscriber.ts'
import { smallMachine } from './faults/small-machine.ts'
import { freePort } from './ports.ts'
import { memoryMiB } from './process-memory.ts'
import { Random } from './random.ts'
import { testConfig } from './servers/config.ts'
import { PROGRAM, runProgram, startProgram } from './servers/program.ts'
import { eventLoopTurns } from './until.ts'

export const MEMORY_BYTES = 512 * 1024 ** 2
const PEOPLE = 1000
const CONNECTIONS = 100
const SUBSCRIBERS = 20
const UPLOAD_BYTES = 5_000_000
const EXPORTS_AT_ONCE = 2
/** Of the repository that is exported, in commits of 200: 4 MB. */
const LARGE_COMMITS = 50
const RECORDS_A_COMMIT = 200
/** On a disk: files in memory would count as memory of the machine. */
const FOLDER = join(import.meta.dir, '../../node_modules/.cache/busy-machine')

export interface Outcome extends Usage {
  /** Why the memory had no limit, or null. */
  lacks: string | null
  kills: number
  /** The most that the server had resident, in MiB. */
  peakMiB: number
  subscribersLeft: number
  backup: { code: number; err: string }
  exports: number
}

/** `requests`: how many the people make. */
export async function busyHour(requests: number): Promise<Outcome> {
  mkdirSync(FOLDER, { recursive: true })
  const folder = mkdtempSync(join(FOLDER, 'machine-'))
  const dataDir = join(folder, 'data')
  const port = await freePort()
  const env = { SERVICE_PORT: String(port), SERVICE_DATA_DIR: dataDir, SERVICE_RATE_LIMIT_ENABLED: 'false' }
  await using machine = smallMachine(MEMORY_BYTES)
  const program = [...machine.wrapper, ...PROGRAM]
  try {
    const people = await signedUp(dataDir, port)
    await using server = await startProgram(['dev'], env, folder, { program })
    const subscribers = await Promise.all(
      Array.from({ length: SUBSCRIBERS }, async (_, index) => {
        const subscriber = new Subscriber(server.url, '', `198.51.100.${index}`)
        await subscriber.opened
        return subscriber
      }),
    )
    const usage = noUsage()
    const random = new Random(1)
    const turns = Array.from({ length: requests }).values()
    let isBusy = true
    const person = async () => {
      for (const _ of turns) await useOnce(people, random, usage)
    }
    // Beside the people, and not among what they wait for.
    const beside = noUsage()
    const exporter = async () => {
      while (isBusy)
        await measured(beside, () => request(`${server.url}/xrpc/com.atproto.sync.getRepo?did=${people[0]!.did}`))
    }
    const exporters = Array.from({ length: EXPORTS_AT_ONCE }, exporter)
    const uploader = async () => {
      const film = new Uint8Array(UPLOAD_BYTES)
      for (let made = 0; isBusy; made++) {
        film[0] = made
        await measured(beside, () => upload(random.of(people), film))
      }
    }
    const uploads = uploader()
    const backup = runProgram(['backup', join(folder, 'backup'), '--dev'], env, program)
    await Promise.all(Array.from({ length: CONNECTIONS }, person))
    const { code, err } = await backup
    isBusy = false
    await Promise.all([...exporters, uploads])
    for (const [fault, times] of beside.faults) usage.faults.set(fault, times)
    const closed = new Set<Subscriber>()
    for (const subscriber of subscribers) void subscriber.closed.then(() => closed.add(subscriber))
    await eventLoopTurns(1)
    for (const subscriber of subscribers) subscriber.close()
    return {
      ...usage,
      lacks: machine.lacks,
      kills: machine.kills(),
      peakMiB: memoryMiB(server.pid, 'VmHWM'),
      subscribersLeft: SUBSCRIBERS - closed.size,
      backup: { code, err },
      exports: beside.millis.length,
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const upload = (person: TestAccount, film: Uint8Array<ArrayBuffer>) =>
  person.call('com.atproto.repo.uploadBlob', {
    method: 'POST',
    body: film,
    headers: { 'content-type': 'video/mp4' },
  })

/** Accounts whose passwords cost nothing, the first with a large repository. */
async function signedUp(dataDir: string, port: number): Promise<TestAccount[]> {
  const publicUrl = `http://localhost:${port}`
  const config = { rateLimit: { enabled: false }, telemetry: { logLevel: 'error' as const } }
  const app = await startApp(testConfig({ dataDir, port, publicUrl }, config), {
    passwordCost: { memoryKib: 64, passes: 1 },
  })
  try {
    const people = await signUp(app, PEOPLE)
    const [{ did, call }] = people as [TestAccount]
    for (let commit = 0; commit < LARGE_COMMITS; commit++) {
      const writes = Array.from({ length: RECORDS_A_COMMIT }, (_, index) => ({
        $type: 'com.atproto.repo.applyWrites#create',
        collection: 'app.bsky.feed.post',
        value: {
          $type: 'app.bsky.feed.post',
          text: `${commit} ${index} `.padEnd(250, 'words '),
          createdAt: '2026-01-01T00:00:00.000Z',
        },
      }))
      const { status, body } = await call('com.atproto.repo.applyWrites', { json: { repo: did, writes } })
      if (status !== 200) throw new Error(`applyWrites answered ${status} ${JSON.stringify(body)}`)
    }
    return people
  } finally {
    await app.stop()
  }
}
