import { expect, test } from 'bun:test'
import { linesToSet } from './lines-to-set.ts'

test('values that a shell or systemd would read differently are quoted', () => {
  const values = { data_dir: '/srv/my data', database_url: 'postgres://pds@db/pds', 'blobs.s3_key_prefix': "it's/" }
  expect(linesToSet(values, false)).toEqual([
    "SERVICE_DATA_DIR='/srv/my data'",
    'SERVICE_DATABASE_URL=postgres://pds@db/pds',
    `SERVICE_BLOBS_S3_KEY_PREFIX="it's/"`,
  ])
  expect(linesToSet({ data_dir: '/srv/my data' }, true)).toEqual(['data_dir = "/srv/my data"'])
})
