import { expect, test } from 'bun:test'
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HostsFile, parseHosts } from './hosts-file.ts'

test('comments, aliases, tabs and what is no address', () => {
  const text =
    '# hosts\n127.0.0.1\tlocalhost  Box # here\r\n::1 localhost\nfe80::1%lo0 localhost\nnonsense box\n10.0.0.7 minio s3.internal'
  expect(Object.fromEntries(parseHosts(text))).toEqual({
    localhost: ['127.0.0.1', '::1'],
    box: ['127.0.0.1'],
    minio: ['10.0.0.7'],
    's3.internal': ['10.0.0.7'],
  })
})

test('what is added to the file counts at once, and a file that is not there names nothing', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-hosts-'))
  const path = join(folder, 'hosts')
  const hosts = new HostsFile(path)
  expect(hosts.addressesOf('minio')).toEqual([])
  writeFileSync(path, '10.0.0.7 minio\n')
  expect(hosts.addressesOf('MinIO')).toEqual(['10.0.0.7'])
  appendFileSync(path, '10.0.0.8 relay\n')
  expect(hosts.addressesOf('relay')).toEqual(['10.0.0.8'])
  rmSync(folder, { recursive: true })
})
