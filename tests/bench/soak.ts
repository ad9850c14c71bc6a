/**
 * Whether a server that is used for a long time grows: the memory of the executable by part, at every minute. Linux
 * only.
 *
 *     bun tests/bench/soak.ts [minutes, 30] [requests each second, 40]
 *
 * 40 people read and write, five programs subscribe to the firehose, somebody exports a repository and somebody
 * uploads a picture every second, and somebody signs in every ten seconds. What is written replaces what is there.
 * Ends with how far the memory is from level: the slope of a straight line through the minutes after the tenth, and
 * what lies between the least and the most of them.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { measured, noUsage, signUp, useOnce } from '../support/clients/busy-people.ts'
import { logIn } from '../support/clients/account.ts'
import { request } from '../support/clients/http.ts'
import { Random } from '../support/random.ts'
import { Subscriber } from '../support/clients/subscriber.ts'
import { freePort } from '../support/ports.ts'
import { PROGRAM, startProgram } from '../support/servers/program.ts'

const MINUTES = Number(process.argv[2] ?? 30)
const PER_SEC = Number(process.argv[3] ?? 40)
const PEOPLE = 40
const SUBSCRIBERS = 5
const PICTURE_BYTES = 200_000
const SIGN_IN_SECS = 10
const WARM_MINUTES = 10

/** Parts of the memory of a process, in MiB. */
type Parts = Record<(typeof partNames)[number], number>
const partNames = ['all', 'executable', 'libraries', 'heaps', 'compiled code', 'database files'] as const

function partsOf(pid: number): Parts {
  const parts: Parts = { all: 0, executable: 0, libraries: 0, heaps: 0, 'compiled code': 0, 'database files': 0 }
  for (const block of readFileSync(`/proc/${pid}/smaps`, 'utf8').split(/^(?=[\da-f]+-[\da-f]+ )/m)) {
    const kib = (name: string) => Number(new RegExp(`^${name}: +(\\d+) kB$`, 'm').exec(block)?.[1] ?? 0)
    const [, protection = '', name = ''] = /^\S+ (\S+) \S+ \S+ \d+ *(.*)$/m.exec(block) ?? []
    const add = (part: keyof Parts, kibibytes: number) => (parts[part] += kibibytes / 1024)
    const anonymous = kib('Anonymous')
    add('all', kib('Rss'))
    add(protection.startsWith('rwx') ? 'compiled code' : 'heaps', anonymous)
    const file = kib('Rss') - anonymous
    if (/\.db(?:-shm|-wal)?$/.test(name)) add('database files', file)
    else add(name.startsWith(PROGRAM[0]!) ? 'executable' : 'libraries', file)
  }
  return parts
}

/** How much a line through the values rises with each of them. */
function slopeOf(values: readonly number[]): number {
  const middle = (values.length - 1) / 2
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  const [up, across] = values.reduce(
    ([above, below], value, index) => [above + (index - middle) * (value - mean), below + (index - middle) ** 2],
    [0, 0],
  )
  return up / across
}

const folder = mkdtempSync(join(tmpdir(), 'holdfast-soak-'))
const env = {
  SERVICE_PORT: String(await freePort()),
  SERVICE_DATA_DIR: join(folder, 'data'),
  SERVICE_RATE_LIMIT_ENABLED: 'false',
}
const server = await startProgram(['dev'], env, folder)
const subscribers: Subscriber[] = []
try {
  const people = await signUp(server, PEOPLE)
  for (let made = 0; made < SUBSCRIBERS; made++) subscribers.push(await Subscriber.open(server.url))
  const random = new Random(1)
  const usage = noUsage()
  const started = performance.now()
  const seconds = () => (performance.now() - started) / 1000
  const picture = new Uint8Array(PICTURE_BYTES)

  const everySecond = async (second: number): Promise<void> => {
    const someone = () => random.of(people)
    const { did } = someone()
    picture.set(new TextEncoder().encode(String(second)))
    await Promise.all([
      measured(usage, () => request(`${server.url}/xrpc/com.atproto.sync.getRepo?did=${did}`)),
      measured(usage, () =>
        someone().call('com.atproto.repo.uploadBlob', {
          method: 'POST',
          body: picture,
          headers: { 'content-type': 'image/jpeg' },
        }),
      ),
    ])
    // An access token ends after a while, and who signs in gets another.
    if (second % SIGN_IN_SECS > 0) return
    const place = Math.floor(second / SIGN_IN_SECS) % people.length
    const former = people[place]!
    people[place] = await logIn(server, former, former.password)
    for (const subscriber of subscribers) subscriber.messages.length = 0
  }

  console.log(`| Minute | Requests | ${partNames.join(' | ')} |\n| ---: | ---: |${' ---: |'.repeat(partNames.length)}`)
  const minutes: Parts[] = []
  const report = () => {
    const parts = partsOf(server.pid)
    if (minutes.length > 0 || seconds() >= 60) minutes.push(parts)
    console.log(
      `| ${minutes.length} | ${usage.millis.length} | ${partNames.map((name) => parts[name].toFixed(1)).join(' | ')} |`,
    )
  }
  report()
  for (let second = 1; second <= MINUTES * 60; second++) {
    const used = Array.from({ length: PER_SEC }, async (_, turn) => {
      await Bun.sleep((turn * 1000) / PER_SEC)
      await useOnce(people, random, usage)
    })
    await Promise.all([...used, everySecond(second)])
    await Bun.sleep(Math.max(0, (second - seconds()) * 1000))
    if (second % 60 === 0) report()
  }

  const late = minutes.slice(WARM_MINUTES)
  if (late.length > 1)
    for (const name of partNames) {
      const values = late.map((parts) => parts[name])
      const [least, most] = [Math.min(...values), Math.max(...values)]
      console.log(
        `${name}: after minute ${WARM_MINUTES} from ${least.toFixed(1)} to ${most.toFixed(1)} MiB, ${(slopeOf(values) * 1024).toFixed(0)} KiB a minute`,
      )
    }
  for (const [fault, times] of usage.faults) console.log(`${times} times: ${fault}`)
} finally {
  for (const subscriber of subscribers) subscriber.close()
  await server[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
}
