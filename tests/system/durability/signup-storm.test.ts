/**
 * `kill -9` in the middle of a storm of sign-ups and handle changes, on a line to the directory that loses answers.
 * SIGNUP_KILLS says how often. Whoever was cut off finishes at once, and the directory says what the server says.
 */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startFaultyLine, type FaultyLine } from '../../support/faults/faulty-line.ts'
import { bearer, request, type Answer } from '../../support/clients/http.ts'
import { freePort } from '../../support/ports.ts'
import { startPlcServer } from '../../support/servers/plc-server.ts'
import { type RunningServer, startProgram } from '../../support/servers/program.ts'

const KILLS = Number(process.env['SIGNUP_KILLS'] ?? 12)
const PEOPLE_PER_ROUND = 8
const RIVALS_PER_HANDLE = 2
const MAX_MILLIS_PER_KILL = 15_000
/** A kill comes after so many operations have reached the directory, or are about to. */
const operationsBeforeKill = (round: number) => 1 + ((round * 5) % 9)

interface Person {
  handle: string
  email: string
  password: string
}

const people = (round: number): Person[] =>
  Array.from({ length: PEOPLE_PER_ROUND }, (_, index) => ({
    // The last ones want what others want.
    handle: `round${round}-${index % (PEOPLE_PER_ROUND - RIVALS_PER_HANDLE)}.test`,
    email: `person${round}-${index}@example.com`,
    password: `password of ${round}-${index}`,
  }))

test(
  `after ${KILLS} kills everybody who was cut off signs up at once, and no handle belongs to two`,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-signups-'))
    await using directory = await startPlcServer()
    await using line = await startFaultyLine(directory.url)
    const env = {
      PORT: String(await freePort()),
      SERVICE_RATE_LIMIT_ENABLED: 'false',
      SERVICE_PLC_DIRECTORY_URL: line.url,
    }
    const start = () => startProgram(['dev'], env, folder)
    try {
      for (let round = 0; round < KILLS; round++) {
        const wanted = people(round)
        await using server = await start()
        await stormAndKill(server, line, wanted, operationsBeforeKill(round))
        await using next = await start()
        await finishAll(next, wanted)
      }
      await using server = await start()
      await checkDirectory(server, line)
      expect(server.output()).not.toMatch(/ ERROR /)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
  KILLS * MAX_MILLIS_PER_KILL,
)

/** On a connection of its own: one that is kept may lead to the server that was killed. */
const call = (server: RunningServer, method: string, json?: object, token?: string): Promise<Answer> =>
  request(`${server.url}/xrpc/com.atproto.${method}`, {
    keepalive: false,
    ...(json && { json }),
    ...(token === undefined ? {} : { headers: bearer(token) }),
  })
const signUp = (server: RunningServer, person: Person) => call(server, 'server.createAccount', person)
const logIn = (server: RunningServer, { email, password }: Person) =>
  call(server, 'server.createSession', { identifier: email, password })

/** Everybody signs up, and tries again to do so; who has an account changes its handle to what others want too. */
async function stormAndKill(
  server: RunningServer,
  line: FaultyLine,
  wanted: Person[],
  operations: number,
): Promise<void> {
  const reached = Promise.withResolvers<void>()
  let count = 0
  line.fate = ({ method }) => {
    if (method !== 'POST') return 'answered'
    count++
    if (count === operations) reached.resolve()
    return (['answered', 'answer lost', 'answered', 'question lost'] as const)[count % 4]!
  }
  const round = wanted[0]!.handle.split('-')[0]
  const storm = wanted.map(async (person, index) => {
    const { status, body } = await signUp(server, person)
    if (status === 200)
      await call(server, 'identity.updateHandle', { handle: `${round}-goal${index % 2}.test` }, body.accessJwt)
  })
  await Promise.race([reached.promise, Promise.allSettled(storm)])
  server.signal('SIGKILL')
  await Promise.all([Promise.allSettled(storm), server.exited])
  line.fate = () => 'answered'
}

/**
 * Who has no account gets one now, unless a rival has the handle. Who has one gets a handle, and has all that belongs
 * to it.
 */
async function finishAll(server: RunningServer, wanted: Person[]): Promise<void> {
  for (const person of wanted) {
    let session = await logIn(server, person)
    if (session.status !== 200) {
      const made = await signUp(server, person)
      const holder = await call(server, `identity.resolveHandle?handle=${person.handle}`)
      const hasRival = holder.status === 200 && holder.body.did !== made.body.did
      expect({ person, status: made.status, message: made.body.message }).toMatchObject(
        hasRival ? { status: 400, message: `Handle already taken: ${person.handle}` } : { status: 200 },
      )
      if (hasRival) continue
      session = await logIn(server, person)
    }
    const { did, accessJwt } = session.body
    expect(await call(server, `identity.resolveHandle?handle=${session.body.handle}`)).toMatchObject({ body: { did } })
    expect(await call(server, 'server.checkAccountStatus', undefined, accessJwt)).toMatchObject({
      status: 200,
      body: { activated: true, validDid: true },
    })
    const own = `${person.email.split('@')[0]}-own.test`
    expect(await call(server, 'identity.updateHandle', { handle: own }, accessJwt)).toMatchObject({ status: 200 })
  }
}

/** Every identity in the directory that names a handle of an account here is that account's. */
async function checkDirectory(server: RunningServer, line: FaultyLine): Promise<void> {
  for (const did of new Set(line.arrived.map(({ path }) => path.split('/')[1]!))) {
    const { body: last } = await request(`${line.url}/${did}/log/last`)
    const handle = last.alsoKnownAs?.[0]?.slice('at://'.length)
    if (handle === undefined) continue
    const { status, body } = await call(server, `identity.resolveHandle?handle=${handle}`)
    expect({ handle, holder: status === 200 ? body.did : did }).toEqual({ handle, holder: did })
  }
}
