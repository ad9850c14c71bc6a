/**
 * `kill -9` in the middle of a storm of writes, again and again on the same data. DURABILITY_KILLS says how often. The
 * executable is what is killed: it starts several times faster than the source.
 */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readCarWithRoot, verifyRepoCar } from '@atproto/repo'
import { buildExecutable } from '../../build.ts'
import { decode } from '../../src/protocol/cbor.ts'
import { bearer, request } from '../harness/http.ts'
import { freePort } from '../harness/pds.ts'
import { type RunningServer, startProgram } from '../harness/program.ts'
import { type Message, Subscriber } from '../harness/subscriber.ts'
import { COLLECTION, StormAccount } from './storm.ts'

const KILLS = Number(process.env['DURABILITY_KILLS'] ?? 50)
const ACCOUNTS = 3
const WRITERS_PER_ACCOUNT = 3
/** A kill comes after so many acknowledged writes, another number in each round, so that it falls anywhere. */
const acknowledgedBeforeKill = (round: number) => 5 + ((round * 37) % 60)

/** For every kill: a start, a check, a storm. Far above what they take. */
const MAX_MILLIS_PER_KILL = 10_000

test(
  `after ${KILLS} kills every acknowledged write is there, in repositories that verify and an event log without holes`,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-durability-'))
    const env = { PORT: String(await freePort()), SERVICE_RATE_LIMIT_ENABLED: 'false' }
    const executable = join(folder, 'holdfast')
    const start = () => startProgram(['dev'], env, folder, { program: [executable] })
    try {
      expect(await buildExecutable(executable, null)).toBe(true)
      let accounts: StormAccount[] = []
      for (let round = 0; round < KILLS; round++) {
        await using server = await start()
        if (round === 0)
          accounts = await Promise.all(Array.from({ length: ACCOUNTS }, (_, index) => StormAccount.create(server.url, `storm${index}`)))
        await checkRecords(server, accounts)
        await stormAndKill(server, accounts, acknowledgedBeforeKill(round))
      }
      await using server = await start()
      await checkRecords(server, accounts)
      await checkBlobs(server, accounts)
      await checkEventLog(server, accounts)
      await checkRepositories(server, accounts)
      expect(server.output()).not.toMatch(/ (?:WARN|ERROR) (?!.*configuration)/)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
  KILLS * MAX_MILLIS_PER_KILL,
)

async function stormAndKill(server: RunningServer, accounts: StormAccount[], writes: number): Promise<void> {
  const acknowledged = () => accounts.reduce((sum, { commits }) => sum + commits.length, 0)
  const before = acknowledged()
  const writing = accounts.flatMap((account) =>
    Array.from({ length: WRITERS_PER_ACCOUNT }, (_, writer) => account.writeUntilGone(server.url, writer)),
  )
  const storm = Promise.all(writing)
  while (acknowledged() - before < writes) await Promise.race([storm, Bun.sleep(1)])
  server.signal('SIGKILL')
  await Promise.all([storm, server.exited])
}

/** Whatever `getRepo` exports is what readers get: each record of it against the ledger. */
async function checkRecords({ url }: RunningServer, accounts: StormAccount[]): Promise<void> {
  for (const account of accounts) {
    const found = new Map<string, string>()
    for (let cursor = ''; ;) {
      const query = new URLSearchParams({ repo: account.did, collection: COLLECTION, limit: '100', ...(cursor && { cursor }) })
      const { body } = await request(`${url}/xrpc/com.atproto.repo.listRecords?${query}`)
      for (const { uri, cid } of body.records) found.set(uri.split('/').at(-1), cid)
      if (body.cursor === undefined) break
      cursor = body.cursor
    }
    expect(account.settle(found)).toEqual([])
  }
}

async function checkRepositories({ url }: RunningServer, accounts: StormAccount[]): Promise<void> {
  for (const account of accounts) {
    const { body: recommended } = await request(`${url}/xrpc/com.atproto.identity.getRecommendedDidCredentials`, {
      headers: bearer(account.token),
    })
    const car = await fetch(`${url}/xrpc/com.atproto.sync.getRepo?did=${account.did}`)
    const { creates } = await verifyRepoCar(new Uint8Array(await car.arrayBuffer()), account.did, recommended.verificationMethods.atproto)
    expect(account.settle(new Map(creates.map(({ rkey, cid }) => [rkey, cid.toString()])))).toEqual([])
  }
}

async function checkBlobs({ url }: RunningServer, accounts: StormAccount[]): Promise<void> {
  for (const { did, blobs } of accounts) {
    for (const { cid, bytes } of blobs) {
      const response = await fetch(`${url}/xrpc/com.atproto.sync.getBlob?did=${did}&cid=${cid}`)
      expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true)
    }
  }
}

/** Events in one unbroken numbering, the commits of each repository in one unbroken chain, no acknowledged one missing. */
async function checkEventLog({ url }: RunningServer, accounts: StormAccount[]): Promise<void> {
  const latest = await Promise.all(accounts.map(({ did }) => request(`${url}/xrpc/com.atproto.sync.getLatestCommit?did=${did}`)))
  const messages = await readUntil(new Subscriber(url, '?cursor=0'), new Set(latest.map(({ body }) => body.cid as string)))

  const seqs = messages.map(({ body }) => body.seq)
  expect(seqs).toEqual(seqs.map((_, index) => seqs[0]! + index))

  for (const account of accounts) {
    const events = messages.filter(({ type, body }) => type === '#commit' && body['repo'] === account.did)
    const logged = new Map(events.map(({ body }) => [String(body['commit']), body['rev']]))
    expect(account.commits.filter(({ cid, rev }) => logged.get(cid) !== rev)).toEqual([])

    let previous: { rev: unknown; data: string | null } = { rev: null, data: null }
    for (const { body } of events) {
      if (previous.rev !== null) expect({ rev: body['since'], data: String(body['prevData']) }).toEqual(previous as never)
      previous = { rev: body['rev'], data: await dataOf(body['blocks'] as Uint8Array) }
    }
  }
}

/** Messages from the start of the log to the newest commit of every account. Revisions of two accounts may be the same. */
async function readUntil(subscriber: Subscriber, commits: Set<string>): Promise<Message[]> {
  for (let next = 0; commits.size > 0; next++) {
    const { body } = (await subscriber.until(next + 1))[next]!
    commits.delete(String(body['commit']))
  }
  subscriber.close()
  return subscriber.messages
}

async function dataOf(blocks: Uint8Array): Promise<string> {
  const { root, blocks: held } = await readCarWithRoot(blocks)
  return String((decode(held.get(root)!) as { data: unknown }).data)
}
