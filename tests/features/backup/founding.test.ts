/** First backups to an encrypted destination, of which one is paused for longer than a killed one is waited for. */
import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Secret } from '../../../src/base/secret.ts'
import { bytesOf, archiveAt, readWhole, type Archive } from '../../../src/features/operations/backup/archive.ts'
import { MIN_WORK_FACTOR } from '../../../src/base/sealed-file.ts'
import { sealOf, unsealOf } from '../../../src/features/operations/backup/sealing.ts'
import { startBucket, type BucketHost } from '../../support/servers/bucket-host.ts'
import { testConfig, type ConfigOverrides } from '../../support/servers/config.ts'

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-founding-'))
afterAll(() => rmSync(scratch, { recursive: true }))

const configOf = (overrides: ConfigOverrides = {}) =>
  testConfig({ dataDir: scratch, port: 1, publicUrl: 'http://localhost:1' }, overrides)
const folderOf = (name: string) => archiveAt(join(scratch, name), configOf())
const bucketOf = ({ mirror }: BucketHost) =>
  archiveAt(`s3://${mirror.bucket}/backups`, configOf({ blobMirror: mirror }))

const SLOW = 'of the paused backup'
const FAST = 'of the other backup'

/** An archive whose user is paused once, after it has seen for the last time that nobody has founded the archive. */
function pausing(archive: Archive, meanwhile: () => Promise<unknown>): Archive {
  let looks = 0
  return {
    ...archive,
    async read(name) {
      const content = await archive.read(name)
      if (name === 'archive.json' && ++looks === 2) await meanwhile()
      return content
    },
  }
}

/** Write an object as a backup with this passphrase at this time does. */
async function back(archive: Archive, text: string, { passphrase, at }: { passphrase: string; at: number }) {
  const seal = await sealOf(archive, { passphrase: new Secret(passphrase), workFactor: MIN_WORK_FACTOR }, new Date(at))
  await archive.write(text + seal.suffix, await seal.close(bytesOf(text)))
}

async function expectOneFounding(archive: Archive): Promise<void> {
  const now = Date.now()
  const paused = pausing(archive, () => back(archive, FAST, { passphrase: 'fast words', at: now + 11 * 60_000 }))
  await back(paused, SLOW, { passphrase: 'slow words', at: now })
  const unseal = await unsealOf(archive, new Secret('fast words'))
  for (const text of [FAST, SLOW]) {
    const content = unseal.open(text, (await archive.read(text + unseal.suffix))!)
    expect(Buffer.concat(await Array.fromAsync(content)).toString()).toBe(text)
  }
}

test('a paused backup does not take the place of the key that another one has founded a folder with', () =>
  expectOneFounding(folderOf('paused')))

test('a paused backup does not take the place of the key that another one has founded a bucket with', async () => {
  await using bucket = await startBucket()
  await expectOneFounding(bucketOf(bucket))
})

test('a bucket that knows no conditions is founded nevertheless', async () => {
  await using bucket = await startBucket()
  bucket.intercept = (request, response) => {
    const isConditional = request.headers['if-none-match'] !== undefined
    if (isConditional) response.writeHead(501, { 'content-type': 'application/xml' }).end('<Error/>')
    return isConditional
  }
  const archive = bucketOf(bucket)
  await back(archive, FAST, { passphrase: 'fast words', at: Date.now() })
  expect(bucket.keys()).toContain('backups/archive.json')
})

test('the key of a destination is restored to the file that earlier versions read', async () => {
  const archive = folderOf('of earlier versions')
  const backed = () => back(archive, FAST, { passphrase: 'fast words', at: Date.now() })
  await backed()
  const key = await readWhole(archive, 'identity.age')
  expect(key).not.toBeNull()
  await archive.delete('identity.age')
  await backed()
  expect(await readWhole(archive, 'identity.age')).toEqual(key)
})
