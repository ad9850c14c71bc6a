/** Archives of accounts whose blobs are in a bucket, on a disk that has no more than its reserve. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { carOf } from '../../../src/protocol/car.ts'
import { cidOfCbor } from '../../../src/protocol/cid.ts'
import { createAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { withSmallDisk } from '../../support/faults/small-disk.ts'
import { freePort } from '../../support/ports.ts'
import { startBucket } from '../../support/servers/bucket-host.ts'
import { PROGRAM } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'

setDefaultTimeout(60_000)

test('an archive is neither received nor begun if the disk has no room for it, or for a blob from the bucket', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-archive-room-'))
  await using bucket = await startBucket()
  const { s3Bucket, s3Endpoint, s3AccessKeyId, s3SecretAccessKey } = bucket.primary
  const disk = join(folder, 'disk')
  const port = await freePort()
  const url = `http://localhost:${port}`
  const child = Bun.spawn([...withSmallDisk(disk, 100 * 1024 ** 2), ...PROGRAM, 'dev'], {
    cwd: folder,
    env: {
      PATH: process.env['PATH'] ?? '',
      SERVICE_PORT: String(port),
      SERVICE_DATA_DIR: join(disk, 'data'),
      SERVICE_BLOBS_STORE: 's3',
      SERVICE_BLOBS_S3_BUCKET: s3Bucket,
      SERVICE_BLOBS_S3_ENDPOINT: s3Endpoint,
      SERVICE_BLOBS_S3_FORCE_PATH_STYLE: 'true',
      AWS_ACCESS_KEY_ID: s3AccessKeyId,
      AWS_SECRET_ACCESS_KEY: s3SecretAccessKey.reveal(),
    },
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  try {
    await until(() =>
      fetch(`${url}/livez`).then(
        ({ ok }) => ok,
        () => false,
      ),
    )
    const alice = await createAccount({ url }, 'alice')
    // More than is received before the server looks at the room.
    const blocks = Array.from({ length: 36 }, (_, n) => {
      const bytes = new Uint8Array(1_900_000).fill(n)
      return { cid: cidOfCbor(bytes), bytes }
    })
    const car = carOf(blocks[0]!.cid, blocks)
    const imported = await request(`${url}/xrpc/com.atproto.repo.importRepo`, {
      method: 'POST',
      headers: { ...bearer(alice.accessJwt), 'content-type': 'application/vnd.ipld.car' },
      body: car,
    })
    expect(imported).toMatchObject({ status: 503, body: { message: expect.stringContaining('no room') } })
    const archive = () => request(`${url}/v1/account/archive`, { headers: bearer(alice.accessJwt) })
    expect((await archive()).status).toBe(200)
    const headers = { ...bearer(alice.accessJwt), 'content-type': 'text/plain' }
    const upload = await fetch(`${url}/xrpc/com.atproto.repo.uploadBlob`, { method: 'POST', headers, body: 'a blob' })
    const { blob } = (await upload.json()) as { blob: object }
    const record = { $type: 'org.example.file', blob }
    await alice.call('com.atproto.repo.createRecord', {
      json: { repo: alice.did, collection: 'org.example.file', record },
    })
    expect(await archive()).toMatchObject({
      status: 503,
      body: { error: { message: expect.stringContaining('no room') } },
    })
  } finally {
    child.kill()
    await child.exited
    rmSync(folder, { recursive: true, force: true })
  }
})
