/**
 * `kill -9` while accounts make children, at each phase and wherever it falls, on both databases. CHILD_KILLS says how
 * often. Whoever was cut off repeats the request and has one child, of the identity that it made, and nobody has
 * learned of it before it was finished.
 */
import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql, type Database } from '../../../src/platform/database/database.ts'
import { openDatabase } from '../../../src/platform/database/open-database.ts'
import { genesisDid } from '../../../src/protocol/plc.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { exchangeAgent } from '../../support/clients/agent.ts'
import { bring, type Bringing } from '../../support/clients/brought.ts'
import { startFaultyLine, type Fate, type FaultyLine } from '../../support/faults/faulty-line.ts'
import { bearer, request, type Answer } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { freePort } from '../../support/ports.ts'
import { startPlcServer } from '../../support/servers/plc-server.ts'
import { testDatabase } from '../../support/servers/postgres.ts'
import { startProgram, type RunningServer } from '../../support/servers/program.ts'
import { deviceKey } from '../../support/clients/wallet.ts'
import { eventLoopTurns } from '../../support/until.ts'

const KILLS = Number(process.env['CHILD_KILLS'] ?? 6)
const CHILDREN_PER_ROUND = 4
const MAX_MILLIS = 60_000 + KILLS * 15_000

type Named = Bringing & { name: string; did: string }

interface Place {
  line: FaultyLine
  directory: string
  /** Starts a server, always at the same address. */
  start(): Promise<RunningServer>
  /** Runs while no server does. */
  withDatabase<Result>(work: (db: Database) => Promise<Result>): Promise<Result>
}

const databases: Record<string, (folder: string) => Promise<{ databaseUrl: string; drop(): Promise<void> }>> = {
  SQLite: (folder) =>
    Promise.resolve({ databaseUrl: `sqlite://${join(folder, 'kills.db')}`, drop: () => Promise.resolve() }),
  PostgreSQL: () => testDatabase(),
}

async function inPlace(database: (typeof databases)[string], work: (place: Place) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-children-'))
  const { databaseUrl, drop } = await database(folder)
  try {
    await using directory = await startPlcServer()
    await using line = await startFaultyLine(directory.url)
    const port = await freePort()
    const url = `http://localhost:${port}`
    const env = {
      PORT: String(port),
      SERVICE_PUBLIC_URL: url,
      SERVICE_DATABASE_URL: databaseUrl,
      SERVICE_RATE_LIMIT_ENABLED: 'false',
      SERVICE_PLC_DIRECTORY_URL: line.url,
      SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
      SERVICE_SIGNING_KEY_MASTER_KEY: '07'.repeat(32),
      SERVICE_AGENT_AUTH_ANONYMOUS_ENABLED: 'true',
      SERVICE_ACCOUNTS_CHILD_DELETION_GRACE_SECS: '0',
    }
    await work({
      line,
      directory: directory.url,
      start: async () => Object.assign(await startProgram(['dev'], env, folder), { url }),
      async withDatabase(inside) {
        const db = await openDatabase({ databaseUrl })
        try {
          return await inside(db)
        } finally {
          await db.close()
        }
      },
    })
  } finally {
    await drop()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A wallet alone above the identity, and the name that its child is to have. */
async function bringNamed(server: RunningServer, name: string): Promise<Named> {
  const device = deviceKey()
  const brought = await bring(server, name, { rotationKeys: [device.did] }, device)
  return { ...brought, name, did: genesisDid(brought.plcOp) }
}

const make = ({ url }: RunningServer, { accessJwt }: TestAccount, { name, plcOp }: Named): Promise<Answer> =>
  request(`${url}/agent/child`, {
    json: { handle: `${name}.test`, plcOp },
    headers: bearer(accessJwt),
    keepalive: false,
  })
const list = async ({ url }: RunningServer, { accessJwt }: TestAccount): Promise<{ did: string }[]> =>
  (await request(`${url}/agent/child`, { headers: bearer(accessJwt), keepalive: false })).body.children

async function kill(server: RunningServer, ...running: Promise<unknown>[]): Promise<void> {
  server.signal('SIGKILL')
  await Promise.all([Promise.allSettled(running), server.exited])
}

/** Which phases are over, and what the network could have learned. */
const stateOf = (db: Database, { did }: Named) =>
  db
    .get<{ published: number | null; finished: number | null }>(
      sql`SELECT published_at AS published, finished_at AS finished FROM child_account WHERE did = ${did}`,
    )
    .then((row) =>
      row === null ? 'nothing' : row.finished !== null ? 'finished' : row.published !== null ? 'published' : 'begun',
    )

/** Those that a kill left without a number come last, as they will be numbered. */
const eventsOf = async (db: Database, { did }: Named): Promise<string[]> =>
  (
    await db.all<{ type: string }>(sql`
      SELECT type FROM (
        SELECT event_type AS type, 0 AS part, seq AS place FROM repo_seq WHERE did = ${did}
        UNION ALL SELECT event_type, 1, id FROM unnumbered_event WHERE did = ${did}) AS event
      ORDER BY part, place`)
  ).map(({ type }) => type)

/** What a child that is cut off must look like, whatever phase it is in. */
async function checkUnfinished(db: Database, child: Named): Promise<string> {
  const state = await stateOf(db, child)
  const registrations = await db.all(sql`SELECT id FROM agent_registration WHERE subject = ${child.did}`)
  const seen = { state, events: await eventsOf(db, child), registrations: registrations.length }
  if (state === 'finished') expect(seen).toEqual({ state, events: ['commit', 'sync', 'account'], registrations: 1 })
  else expect(seen).toEqual({ state, events: [], registrations: 0 })
  return state
}

/** Repeats what was cut off, twice, and looks for what was made. */
async function finish(
  { line, directory }: Place,
  server: RunningServer,
  parent: TestAccount,
  child: Named,
): Promise<void> {
  line.fate = () => 'answered'
  const made = await make(server, parent, child)
  expect(made).toMatchObject({ status: 200, body: { did: child.did } })
  expect((await make(server, parent, child)).body).toMatchObject({
    did: child.did,
    registrationId: made.body.registrationId,
  })
  expect((await exchangeAgent(server, made.body.identityAssertion)).status).toBe(200)
  expect((await request(`${directory}/${child.did}/log`)).body).toHaveLength(1)
  expect((await request(`${server.url}/xrpc/com.atproto.sync.getRepoStatus?did=${child.did}`)).body).toMatchObject({
    active: true,
  })
}

describe.each(Object.entries(databases))('on %s', (_, database) => {
  const phases: [string, string, Fate][] = [
    ['before the directory has the identity', 'begun', 'question lost'],
    ['once the directory has it, before the server knows', 'begun', 'answer lost'],
  ]
  test.each(phases)(
    'a kill %s',
    (_, phase, fate) =>
      inPlace(database, async (place) => {
        const { line, start, withDatabase } = place
        let alice: TestAccount
        let child: Named
        {
          await using server = await start()
          alice = await createAccount(server, 'alice')
          child = await bringNamed(server, 'child')
          line.fate = ({ method }) => {
            if (method !== 'POST') return 'answered'
            server.signal('SIGKILL')
            return fate
          }
          await Promise.allSettled([make(server, alice, child)])
          await server.exited
        }
        expect(await withDatabase((db) => checkUnfinished(db, child))).toBe(phase)
        await using server = await start()
        expect(await list(server, alice)).toEqual([])
        await finish(place, server, alice, child)
        expect(await list(server, alice)).toMatchObject([{ did: child.did }])
      }),
    MAX_MILLIS,
  )

  test(
    'a kill once the server knows that the directory has it',
    () =>
      inPlace(database, async (place) => {
        const { line, start, withDatabase } = place
        let alice: TestAccount
        let child: Named
        {
          await using server = await start()
          alice = await createAccount(server, 'alice')
          child = await bringNamed(server, 'child')
          await kill(server)
        }
        // What the last phase adds is there already, as somebody else's, so that it fails.
        await withDatabase((db) =>
          db.run(sql`INSERT INTO agent_registration (id, type, issuer, subject, scopes, status, created_at, updated_at)
            VALUES ('reg_other', 'child', ${child.plcOp.services['atproto_pds']!.endpoint}, ${child.did}, '[]', 'revoked', 0, 0)`),
        )
        {
          await using server = await start()
          expect((await make(server, alice, child)).status).toBe(500)
          await kill(server)
        }
        await withDatabase((db) => db.run(sql`DELETE FROM agent_registration WHERE id = 'reg_other'`))
        expect(await withDatabase((db) => checkUnfinished(db, child))).toBe('published')
        const asked = line.arrived.length
        await using server = await start()
        await finish(place, server, alice, child)
        expect(line.arrived.slice(asked).filter(({ method }) => method === 'POST')).toEqual([])
      }),
    MAX_MILLIS,
  )

  test(
    `${KILLS} kills wherever they fall, while several children are made and deleted`,
    () =>
      inPlace(database, async (place) => {
        const { line, start, withDatabase } = place
        let alice: TestAccount | null = null
        let living: Named[] = []
        for (let round = 0; round < KILLS; round++) {
          const children: Named[] = []
          const leaving = living.slice(0, 2)
          const remove = (server: RunningServer, { did }: Named) =>
            request(`${server.url}/agent/child/delete`, {
              json: { did },
              headers: bearer(alice!.accessJwt),
              keepalive: false,
            })
          {
            await using server = await start()
            alice ??= await createAccount(server, 'alice')
            for (let i = 0; i < CHILDREN_PER_ROUND; i++) children.push(await bringNamed(server, `child${round}-${i}`))
            const { promise: reached, resolve } = Promise.withResolvers<void>()
            let posts = 0
            line.fate = ({ method }) => {
              if (method === 'POST' && ++posts === 1 + (round % CHILDREN_PER_ROUND)) resolve()
              return 'answered'
            }
            const storm = [
              ...children.map((child) => make(server, alice!, child)),
              ...leaving.map((child) => remove(server, child)),
            ]
            await Promise.race([reached, Promise.allSettled(storm)])
            await eventLoopTurns(round * 25)
            await kill(server, ...storm)
          }
          await withDatabase(async (db) => {
            for (const child of children) await checkUnfinished(db, child)
          })
          await using server = await start()
          for (const child of children) await finish(place, server, alice, child)
          for (const child of leaving)
            expect(await remove(server, child)).toMatchObject({ status: 200, body: { status: 'deletion_scheduled' } })
          const swept = await request(`${server.url}/v1/admin/sweeps/account-reaper/run`, {
            method: 'POST',
            headers: bearer(ADMIN_TOKEN),
          })
          expect(swept.status).toBe(200)
          living = [...living.filter((child) => !leaving.includes(child)), ...children]
          expect((await list(server, alice)).map(({ did }) => did).toSorted()).toEqual(
            living.map(({ did }) => did).toSorted(),
          )
          // What was deleted is not made again by a request that comes late.
          for (const child of leaving) expect((await make(server, alice, child)).status).toBe(409)
          expect(server.output()).not.toMatch(/ ERROR /)
        }
      }),
    MAX_MILLIS,
  )
})
