import { expect, test } from 'bun:test'
import { linesToSet } from './lines-to-set.ts'

test('lines have the form of the file that has the configuration', () => {
  const values = { 'blobs.store': 's3', former_urls: ['https://a.example', 'https://b.example'] }
  expect(linesToSet(values, false)).toEqual([
    'SERVICE_BLOBS_STORE=s3',
    'SERVICE_FORMER_URLS=https://a.example,https://b.example',
  ])
  expect(linesToSet(values, true)).toEqual([
    'blobs.store = "s3"',
    'former_urls = ["https://a.example","https://b.example"]',
  ])
})

test('values that a shell or systemd would read differently are quoted', () => {
  const values = { data_dir: '/srv/my data', database_url: 'postgres://pds@db/pds', 'blobs.s3_key_prefix': "it's/" }
  expect(linesToSet(values, false)).toEqual([
    "SERVICE_DATA_DIR='/srv/my data'",
    'SERVICE_DATABASE_URL=postgres://pds@db/pds',
    `SERVICE_BLOBS_S3_KEY_PREFIX="it's/"`,
  ])
  expect(linesToSet({ data_dir: '/srv/my data' }, true)).toEqual(['data_dir = "/srv/my data"'])
})
