/** Several servers keep the blobs of one database in one bucket. */
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
