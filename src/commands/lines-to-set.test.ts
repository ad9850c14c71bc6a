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
