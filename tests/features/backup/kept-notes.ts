/** Notes on a server with a continuous backup, each under its name as the record key. */
import { expect } from 'bun:test'
import { readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import type { TestPds } from '../../support/servers/pds.ts'
import { until } from '../../support/until.ts'

/** Until the server keeps the promise of `sync`. */
export const isKept = ({ url }: { url: string }): Promise<void> =>
  until(async () => (await request(`${url}/readyz`)).body.continuousBackup?.promise === 'sync')

export function create(account: TestAccount, rkey: string) {
  const record = { $type: 'org.example.note', text: rkey }
  const json = { repo: account.did, collection: 'org.example.note', rkey, record }
  return account.call('com.atproto.repo.createRecord', { json })
}

export async function post(account: TestAccount, rkey: string): Promise<void> {
  expect((await create(account, rkey)).status).toBe(200)
}

/** Alice, whose note `first` is at the destination. */
export async function aliceWithNote(pds: TestPds): Promise<TestAccount> {
  const alice = await createAccount(pds, 'alice')
  await isKept(pds)
  await post(alice, 'first')
  return alice
}

/** Paths of all objects at a folder that is a destination, but not of those that are just being stored. */
export const objectsAt = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.endsWith('.part'))
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted()

export const objectNames = (folder: string, start: string): string[] =>
  objectsAt(folder)
    .map((path) => basename(path))
    .filter((name) => name.startsWith(start))
    .toSorted()
