/**
 * What a request reads does not depend on the size of the repository: each statement that it runs is run again on a
 * connection of its own, and the pages that it reads are counted, for an account with few records and one with many.
 */
import { Database as Connection, type SQLQueryBindings } from 'bun:sqlite'
import { beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isUniqueViolation, type Database, type Reader, type Sql } from '../../../src/platform/database/database.ts'
import { createAccount, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorldOnFile } from '../../support/file-world.ts'

const FEW = 200
const MANY = 6000
const BATCH = 200
/** Pages that a statement may read more of with many records: the tables that all accounts share are deep. */
const MAX_MORE_PAGES = 8
const PAGE_BYTES = 4096
const collection = 'com.example.note'

const { pds } = useWorldOnFile({
  config: { server: { readers: 0 }, rateLimit: { enabled: false }, spaces: { enabled: true } },
})
const small = setUp(() => createAccount(pds, 'small'))
const large = setUp(() => createAccount(pds, 'large'))

const rkey = (number: number) => `r${String(number).padStart(6, '0')}`

/** A repository in a space, in which every record refers to the same blob. */
const inSpace = ({ did }: TestAccount) => ({ space: `at://${did}/space/com.example.forum/a`, repo: did })
const spaceQuery = (account: TestAccount, method: string, params: object = {}) =>
  account.call(`com.atproto.space.${method}?${new URLSearchParams({ ...inSpace(account), ...params })}`)

async function fillSpace(account: TestAccount, records: number): Promise<void> {
  const { blob } = (
    await account.call('com.atproto.repo.uploadBlob', {
      method: 'POST',
      headers: { 'content-type': 'text/plain' },
      body: Buffer.from('a file'),
    })
  ).body
  for (let first = 0; first < records; first += BATCH) {
    const writes = Array.from({ length: BATCH }, (_, i) => ({
      $type: 'com.atproto.space.applyWrites#create',
      collection,
      rkey: rkey(first + i),
      value: { blob, text: String(first + i) },
    }))
    const json = { ...inSpace(account), writes }
    expect((await account.call('com.atproto.space.applyWrites', { json })).status).toBe(200)
  }
}

async function fill({ did, call }: TestAccount, records: number): Promise<void> {
  for (let first = 0; first < records; first += BATCH) {
    const writes = Array.from({ length: BATCH }, (_, i) => ({
      $type: 'com.atproto.repo.applyWrites#create',
      collection,
      rkey: rkey(first + i),
      value: { $type: collection, text: `${'some words '.repeat(20)}${first + i}` },
    }))
    expect((await call('com.atproto.repo.applyWrites', { json: { repo: did, writes } })).status).toBe(200)
  }
}

beforeAll(async () => {
  await fill(small, FEW)
  await fill(large, MANY)
  await fillSpace(small, FEW)
  await fillSpace(large, MANY)
}, 120_000)

/** Has the server's statements recorded while it does something. */
async function statementsOf(act: () => Promise<unknown>): Promise<Sql[]> {
  const { db } = pds.ctx
  const statements: Sql[] = []
  const recording = <Over extends Reader>(over: Over): Over =>
    new Proxy(over, {
      get(target, key) {
        const member = target[key as keyof Over] as unknown
        if (typeof member !== 'function') return member
        if (key !== 'all' && key !== 'get' && key !== 'run') return member.bind(target)
        return (query: Sql) => {
          statements.push(query)
          return member.call(target, query)
        }
      },
    })
  const { all, get, run, transaction, transactionOn, snapshot, shortSnapshot } = db
  Object.assign(db, {
    all: recording(db).all,
    get: recording(db).get,
    run: recording(db).run,
    transaction: (work) => transaction((tx) => work(recording(tx))),
    transactionOn: (lock, work) => transactionOn(lock, (tx) => work(recording(tx))),
    snapshot: (work) => snapshot((reader) => work(recording(reader))),
    shortSnapshot: (work) => shortSnapshot((reader) => work(recording(reader))),
  } satisfies Partial<Database>)
  try {
    await act()
  } finally {
    Object.assign(db, { all, get, run, transaction, transactionOn, snapshot, shortSnapshot })
  }
  return statements
}

/** Only Linux says how many bytes a thread has read. The server itself is the same elsewhere. */
const onLinux = test.skipIf(process.platform !== 'linux')
const bytesRead = (): number => Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/thread-self/io', 'latin1'))![1])
const textOf = ({ texts }: Sql) => texts.join('?').replaceAll(/\s+/g, ' ').trim()

/** Returns how many pages a statement reads on a connection that has read nothing yet. What it changes is undone. */
function pagesOf(query: Sql): number {
  const connection = new Connection(join(pds.dataDir, 'holdfast.db'), { readwrite: true, strict: true })
  try {
    connection.run('BEGIN')
    const statement = connection.prepare(query.texts.join('?'))
    const before = bytesRead()
    const itself = bytesRead() - before
    try {
      statement.all(...(query.values as SQLQueryBindings[]))
    } catch (error) {
      // The request has inserted the row.
      if (!isUniqueViolation(error)) throw error
    }
    return (bytesRead() - before - 2 * itself) / PAGE_BYTES
  } finally {
    connection.run('ROLLBACK')
    connection.close()
  }
}

/** Returns the pages that each statement of a request reads, by its text; the most if it runs more than once. */
async function costsOf(ask: () => Promise<{ status: number }>): Promise<Map<string, number>> {
  const costs = new Map<string, number>()
  const statements = await statementsOf(async () => expect((await ask()).status).toBe(200))
  for (const statement of statements) {
    const text = textOf(statement)
    costs.set(text, Math.max(costs.get(text) ?? 0, pagesOf(statement)))
  }
  return costs
}

let count = 0
const asks: Record<string, (account: TestAccount, records: number) => Promise<{ status: number }>> = {
  createRecord: ({ did, call }) =>
    call('com.atproto.repo.createRecord', {
      json: { repo: did, collection, record: { $type: collection, text: `new ${++count}` } },
    }),
  putRecord: ({ did, call }, records) =>
    call('com.atproto.repo.putRecord', {
      json: {
        repo: did,
        collection,
        rkey: rkey(records / 2),
        record: { $type: collection, text: `put ${++count}` },
      },
    }),
  deleteRecord: ({ did, call }, records) =>
    call('com.atproto.repo.deleteRecord', { json: { repo: did, collection, rkey: rkey(records / 2 + ++count) } }),
  applyWrites: ({ did, call }, records) => {
    const [updated, deleted] = [records / 2 + ++count, records / 2 + ++count].map(rkey)
    const write = (action: string, fields: object) => ({
      $type: `com.atproto.repo.applyWrites#${action}`,
      collection,
      ...fields,
    })
    const writes = [
      write('create', { value: { $type: collection, text: `new ${count}` } }),
      write('update', { rkey: updated, value: { $type: collection, text: `put ${count}` } }),
      write('delete', { rkey: deleted }),
    ]
    return call('com.atproto.repo.applyWrites', { json: { repo: did, writes } })
  },
  uploadBlob: ({ call }) =>
    call('com.atproto.repo.uploadBlob', {
      method: 'POST',
      headers: { 'content-type': 'text/plain' },
      body: Buffer.from(`file ${++count}`),
    }),
  getRecord: ({ did }, records) =>
    xrpc(pds, `com.atproto.repo.getRecord?repo=${did}&collection=${collection}&rkey=${rkey(records / 2 - 1)}`),
  'listRecords, from either end and from the middle': async ({ did }, records) => {
    const list = `com.atproto.repo.listRecords?repo=${did}&collection=${collection}&limit=10`
    await xrpc(pds, list)
    await xrpc(pds, `${list}&cursor=${rkey(records / 2)}`)
    return xrpc(pds, `${list}&reverse=true`)
  },
  'listRecords of a collection without records': ({ did }) =>
    xrpc(pds, `com.atproto.repo.listRecords?repo=${did}&collection=com.example.none`),
  describeRepo: ({ did }) => xrpc(pds, `com.atproto.repo.describeRepo?repo=${did}`),
  getLatestCommit: ({ did }) => xrpc(pds, `com.atproto.sync.getLatestCommit?did=${did}`),
  getRepoStatus: ({ did }) => xrpc(pds, `com.atproto.sync.getRepoStatus?did=${did}`),
  listRepos: () => xrpc(pds, 'com.atproto.sync.listRepos'),
  'sync.getRecord': ({ did }, records) =>
    xrpc(pds, `com.atproto.sync.getRecord?did=${did}&collection=${collection}&rkey=${rkey(records / 2 - 2)}`),
  'getRepo since the newest commit': async ({ did }) => {
    const { body } = await xrpc(pds, `com.atproto.sync.getLatestCommit?did=${did}`)
    return xrpc(pds, `com.atproto.sync.getRepo?did=${did}&since=${body.rev}`)
  },
  getBlocks: async ({ did }, records) => {
    const { body: head } = await xrpc(pds, `com.atproto.sync.getLatestCommit?did=${did}`)
    const { body } = await xrpc(
      pds,
      `com.atproto.repo.getRecord?repo=${did}&collection=${collection}&rkey=${rkey(records / 2 - 3)}`,
    )
    return xrpc(pds, `com.atproto.sync.getBlocks?did=${did}&cids=${head.cid}&cids=${body.cid}`)
  },
  listBlobs: ({ did }) => xrpc(pds, `com.atproto.sync.listBlobs?did=${did}`),
  listMissingBlobs: ({ call }) => call('com.atproto.repo.listMissingBlobs'),
  checkAccountStatus: ({ call }) => call('com.atproto.server.checkAccountStatus'),
  getSession: ({ call }) => call('com.atproto.server.getSession'),
  resolveHandle: ({ handle }) => xrpc(pds, `com.atproto.identity.resolveHandle?handle=${handle}`),
  'admin.getAccountInfo': ({ did }) =>
    xrpc(pds, `com.atproto.admin.getAccountInfo?did=${did}`, { headers: basic('admin', ADMIN_TOKEN) }),
  'a write in a space': (account) =>
    account.call('com.atproto.space.createRecord', {
      json: { ...inSpace(account), collection, record: { text: `new ${++count}` } },
    }),
  'listRecords of a space, from either end and from the middle': async (account, records) => {
    await spaceQuery(account, 'listRecords', { limit: 10 })
    const cursor = `${inSpace(account).space}/${account.did}/${collection}/${rkey(records / 2)}`
    await spaceQuery(account, 'listRecords', { limit: 10, cursor })
    return spaceQuery(account, 'listRecords', { limit: 10, reverse: true })
  },
  'listRepoOps of a space, from its begin and its end': async (account) => {
    await spaceQuery(account, 'listRepoOps', { limit: 10 })
    const { body } = await spaceQuery(account, 'getLatestCommit')
    return spaceQuery(account, 'listRepoOps', { since: body.commit.rev })
  },
  'listBlobs of a space, from its begin and its end': async (account) => {
    await spaceQuery(account, 'listBlobs')
    const { body } = await spaceQuery(account, 'getLatestCommit')
    return spaceQuery(account, 'listBlobs', { since: body.commit.rev })
  },
  listSpaces: ({ call }) => call('com.atproto.space.listSpaces'),
  'the usage of an account': ({ did }) =>
    request(`${pds.url}/v1/accounts/${did}/usage`, { headers: bearer(ADMIN_TOKEN) }),
}

onLinux.each(Object.keys(asks))('%s reads no more pages of a large repository', async (name) => {
  const few = await costsOf(() => asks[name]!(small, FEW))
  const many = await costsOf(() => asks[name]!(large, MANY))
  const more = Array.from(many).filter(([text, pages]) => pages > (few.get(text) ?? 0) + MAX_MORE_PAGES)
  expect(more).toEqual([])
  expect(many.size).toBeGreaterThan(0)
})

onLinux('pages of large records pass over few that they do not show', async () => {
  const { did, call } = await createAccount(pds, 'heavy')
  const keys = Array.from({ length: 40 }, (_, i) => rkey(i))
  const bytes = (i: number) => (i < 30 ? 100_000 : 10)
  for (const [i, key] of keys.entries()) {
    const record = { $type: collection, text: 'x'.repeat(bytes(i)) }
    const json = { repo: did, collection, rkey: key, record }
    expect((await call('com.atproto.repo.createRecord', { json })).status).toBe(200)
  }
  const shown: string[] = []
  const pages: number[] = []
  let cursor = ''
  do {
    const costs = await costsOf(async () => {
      const answer = await xrpc(
        pds,
        `com.atproto.repo.listRecords?repo=${did}&collection=${collection}&limit=100&reverse=true${cursor}`,
      )
      for (const { uri } of answer.body.records) shown.push(uri.split('/').at(-1))
      cursor = answer.body.cursor === undefined ? '' : `&cursor=${answer.body.cursor}`
      return answer
    })
    pages.push(Math.max(...costs.values()))
  } while (cursor !== '')
  expect(shown).toEqual(keys)
  // Each has 25 pages, and a page of the list shows five of them. The others are not read.
  expect(Math.max(...pages)).toBeWithin(5 * 25, 7 * 25)
})

onLinux(
  'among hundreds of large records, others are read and written as if they were small',
  async () => {
    const account = await createAccount(pds, 'heaviest')
    const { did, call } = account
    await fill(account, BATCH)
    const size = 800_000
    for (let i = 0; i < 200; i++) {
      const json = { repo: did, collection, rkey: `${rkey(i)}-large`, record: { text: 'x'.repeat(size) } }
      expect((await call('com.atproto.repo.putRecord', { json })).status).toBe(200)
    }
    for (const name of ['createRecord', 'putRecord', 'deleteRecord', 'applyWrites', 'getRecord', 'sync.getRecord']) {
      const few = await costsOf(() => asks[name]!(small, FEW))
      const costs = await costsOf(() => asks[name]!(account, BATCH))
      const more = Array.from(costs).filter(([text, pages]) => pages > (few.get(text) ?? 0) + MAX_MORE_PAGES)
      expect(more).toEqual([])
    }
    const writes = Array.from({ length: BATCH }, (_, i) => ({
      $type: 'com.atproto.repo.applyWrites#create',
      collection,
      rkey: `${rkey(i)}-small`,
      value: { text: `between ${i}` },
    }))
    const costs = await costsOf(() => call('com.atproto.repo.applyWrites', { json: { repo: did, writes } }))
    expect(Math.max(...costs.values())).toBeLessThan(BATCH)
    const large = await costsOf(() =>
      xrpc(pds, `com.atproto.repo.getRecord?repo=${did}&collection=${collection}&rkey=${rkey(7)}-large`),
    )
    expect(Math.max(...large.values())).toBeWithin(size / PAGE_BYTES, size / PAGE_BYTES + 2 * MAX_MORE_PAGES)
  },
  60_000,
)

test('only commits that may have to do with large records have a statement for them, and one', async () => {
  const forLarge = async (act: () => Promise<unknown>) =>
    new Set((await statementsOf(act)).map(textOf).filter((text) => text.includes('large_record')))
  for (const name of ['createRecord', 'putRecord', 'deleteRecord', 'applyWrites'])
    expect(await forLarge(() => asks[name]!(small, FEW))).toEqual(new Set())
  const { did, call } = await createAccount(pds, 'seldom')
  const put = (rkey: string, text: string) => async () => {
    const json = { repo: did, collection, rkey, record: { text } }
    expect((await call('com.atproto.repo.putRecord', { json })).status).toBe(200)
  }
  expect((await forLarge(put('one', 'small'))).size).toBe(0)
  expect((await forLarge(put('one', 'x'.repeat(10_000)))).size).toBe(1)
  expect((await forLarge(put('one', 'small again'))).size).toBe(1)
  expect((await forLarge(put('other', 'small'))).size).toBe(0)
})
