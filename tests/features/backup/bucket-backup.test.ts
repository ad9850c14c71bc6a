/** Backups of a server whose blobs are in a bucket. */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startApp } from '../../../src/app.ts'
import { runCommand } from '../../../src/cli.ts'
import { randomBytes, Uploader } from '../../support/clients/uploader.ts'
import { startBucket } from '../../support/servers/bucket-host.ts'
import { testConfig } from '../../support/servers/config.ts'
import { startPdsOnFile } from '../../support/servers/file-pds.ts'
import { freePort } from '../../support/ports.ts'
import { quietTerminal } from '../../support/clients/terminal.ts'

test('the database is backed up, the bucket is not, and both come together again', async () => {
  const scratch = mkdtempSync(join(tmpdir(), 'holdfast-bucket-backup-'))
  await using bucket = await startBucket()
  await using pds = await startPdsOnFile({ blobs: bucket.primary })
  const holdfast = async (dataDir: string, words: string[], more: Record<string, string> = {}) => {
    const lines: string[] = []
    const env = {
      SERVICE_DATA_DIR: dataDir,
      SERVICE_PUBLIC_URL: pds.url,
      SERVICE_PORT: '1',
      SERVICE_LOG_LEVEL: 'error',
      SERVICE_BLOBS_STORE: 's3',
      SERVICE_BLOBS_S3_BUCKET: bucket.primary.s3Bucket,
      SERVICE_BLOBS_S3_ENDPOINT: bucket.primary.s3Endpoint,
      SERVICE_BLOBS_S3_FORCE_PATH_STYLE: 'true',
      AWS_ACCESS_KEY_ID: bucket.primary.s3AccessKeyId,
      AWS_SECRET_ACCESS_KEY: bucket.primary.s3SecretAccessKey.reveal(),
      ...more,
    }
    const code = await runCommand(quietTerminal(env, lines), [...words, '--dev'])
    return { code, text: lines.join('\n') }
  }
  const alice = await Uploader.join(pds, 'alice')
  const contents = [randomBytes(1000), randomBytes(1001)]
  const cids: string[] = []
  for (const [i, bytes] of contents.entries()) {
    const blob = await alice.upload(bytes)
    await alice.refer(`a.b.c/${i}`, blob)
    cids.push(blob.ref.$link)
  }
  const [kept, lost] = cids as [string, string]
  const archive = join(scratch, 'archive')
  const made = await holdfast(pds.dataDir, ['backup', archive])
  expect(made.code).toBe(0)
  expect(made.text).toContain('the backup does not contain the blobs, which are in a bucket')
  expect(made.text).toContain('0 blobs copied, 0 already there, 0 missing')
  await pds.stop()
  expect(await holdfast(pds.dataDir, ['verify'])).toMatchObject({
    code: 0,
    text: expect.stringContaining('2 blobs verified, 0 faults'),
  })

  bucket.delete(`blobs/${lost.slice(7, 9)}/${lost}`)
  expect(await holdfast(pds.dataDir, ['verify'])).toMatchObject({
    code: 1,
    text: expect.stringContaining(`blob ${lost}: `),
  })
  const restored = join(scratch, 'restored')
  const report = await holdfast(restored, ['restore', archive])
  expect(report).toMatchObject({ code: 0, text: expect.stringContaining(`blob ${lost} is not in the bucket`) })
  const port = await freePort()
  const app = await startApp(testConfig({ dataDir: restored, port, publicUrl: pds.url }, { blobs: bucket.primary }))
  const read = (cid: string) =>
    fetch(`http://localhost:${port}/xrpc/com.atproto.sync.getBlob?did=${alice.did}&cid=${cid}`)
  expect(await (await read(kept)).bytes()).toEqual(contents[0]!)
  expect((await read(lost)).status).toBe(502)
  await app.stop()
  rmSync(scratch, { recursive: true })
})
