/** Several servers keep the blobs of one database in one bucket. */
import { SQL } from 'bun'
import { beforeAll, expect, test } from 'bun:test'
import { cidOfBlob } from '../../../src/protocol/cid.ts'
import { randomBytes, SERVED, Uploader } from '../../support/clients/uploader.ts'
import { logIn, PASSWORD } from '../../support/clients/account.ts'
import { startBucket } from '../../support/servers/bucket-host.ts'
import { bearer } from '../../support/clients/http.ts'
import { setUp } from '../../support/set-up.ts'
import { useCluster } from '../../support/cluster-world.ts'

/** One account, at each of the nodes. */
let holders: Uploader[]
const bucket = setUp(startBucket)
const {
  cluster,
  nodes: [a, b],
} = useCluster(2, () => ({ blobs: { ...bucket.primary, tempTtlSecs: 0 } }))
beforeAll(async () => {
  const alice = await Uploader.join(a, 'alice')
  const { accessJwt } = await logIn(b, { handle: 'alice.test', email: 'alice@example.com' }, PASSWORD)
  holders = [alice, Uploader.at(b, alice.did, accessJwt)]
})

const cidOf = (bytes: Uint8Array) => cidOfBlob(bytes).toString()
const gc = () => Promise.all(cluster.nodes.map((node) => node.runSweep('blob-gc')))

test('what one server took in, the others serve, whole and in part', async () => {
  const [here, there] = holders as [Uploader, Uploader]
  const bytes = randomBytes(9 * 1024 ** 2)
  await here.refer('a.b.c/1', await here.upload(bytes))
  expect(await (await there.read(cidOf(bytes))).bytes()).toEqual(bytes)
  const part = await there.read(cidOf(bytes), { range: 'bytes=5000000-5000009' })
  expect(await part.bytes()).toEqual(bytes.subarray(5_000_000, 5_000_010))
  await there.refer('a.b.c/1')
  await gc()
  expect((await here.read(cidOf(bytes), bearer(here.token))).status).toBe(400)
})

test('uploads and removals of the same blobs at all servers never leave a row without its object', async () => {
  const contents = Array.from({ length: 6 }, () => randomBytes(500))
  for (let round = 0; round < 6; round++) {
    // Removals are due at once, as after an hour.
    const due = a.age('blob_removal')
    const uploads = contents.flatMap((bytes, i) => [
      holders[i % 2]!.upload(bytes),
      holders[(i + round) % 2]!.upload(bytes),
    ])
    await Promise.all([due, gc(), ...uploads, gc()])
    const owned = await a.rows('blob', {}, ['cid'])
    const keys = bucket.keys()
    expect(owned.map(({ cid }) => cid).filter((cid) => !keys.some((key) => key.endsWith(cid)))).toEqual([])
  }
  const last = await holders[0]!.upload(contents[0]!)
  await holders[0]!.refer('a.b.c/2', last)
  await a.age('blob_removal')
  await gc()
  expect(await holders[1]!.sees(last.ref.$link)).toEqual(SERVED)
})

test('a server that freezes while it removes blobs removes none that another server has taken in since', async () => {
  await a.lose('blob_removal')
  const contents = Array.from({ length: 2 }, () => randomBytes(400))
  for (const bytes of contents) await holders[0]!.upload(bytes)
  cluster.clock.advance({ secs: 1 })
  await gc()
  await a.age('blob_removal')
  const { promise: frozen, resolve } = Promise.withResolvers<{ key: string; thaw: () => void }>()
  bucket.intercept = (incoming, response, key) => {
    if (incoming.method !== 'DELETE') return false
    bucket.intercept = null
    resolve({ key, thaw: () => bucket.pass(incoming, response) })
    return true
  }
  const pass = a.runSweep('blob-gc')
  const { key, thaw } = await frozen

  // PostgreSQL ends the leases of a node that is silent.
  await using admin = new SQL({ adapter: 'postgres', url: cluster.databaseUrl, max: 1 })
  await admin.unsafe(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory')",
  )
  cluster.clock.advance({ secs: 3600 })
  await b.runSweep('blob-gc')
  const other = contents.find((bytes) => !key.endsWith(cidOf(bytes)))!
  const { ref } = await holders[1]!.upload(other)
  thaw()
  await Promise.allSettled([pass])
  expect((await holders[1]!.read(ref.$link, bearer(holders[1]!.token))).status).toBe(200)
})
