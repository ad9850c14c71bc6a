/** What must hold of the accounts of a storm, at a server that serves them. */
import { expect } from 'bun:test'
import { readCarWithRoot, verifyRepoCar } from '@atproto/repo'
import { decode } from '../../../src/protocol/cbor.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { type Message, Subscriber } from '../../support/clients/subscriber.ts'
import { COLLECTION, type StormAccount } from './storm.ts'

/** A server at a URL. */
type At = { url: string }

/** Whatever `getRepo` exports is what readers get: each record of it against the ledger. */
export async function checkRecords({ url }: At, accounts: StormAccount[]): Promise<void> {
  for (const account of accounts) {
    const found = new Map<string, string>()
    for (let cursor = ''; ;) {
      const query = new URLSearchParams({
        repo: account.did,
        collection: COLLECTION,
        limit: '100',
        ...(cursor && { cursor }),
      })
      const { body } = await request(`${url}/xrpc/com.atproto.repo.listRecords?${query}`)
      for (const { uri, cid } of body.records) found.set(uri.split('/').at(-1), cid)
      if (body.cursor === undefined) break
      cursor = body.cursor
    }
    expect(account.settle(found)).toEqual([])
  }
}

export async function checkRepositories({ url }: At, accounts: StormAccount[]): Promise<void> {
  for (const account of accounts) {
    const { body: recommended } = await request(`${url}/xrpc/com.atproto.identity.getRecommendedDidCredentials`, {
      headers: bearer(account.token),
    })
    const car = await fetch(`${url}/xrpc/com.atproto.sync.getRepo?did=${account.did}`)
    const { creates } = await verifyRepoCar(
      new Uint8Array(await car.arrayBuffer()),
      account.did,
      recommended.verificationMethods.atproto,
    )
    expect(account.settle(new Map(creates.map(({ rkey, cid }) => [rkey, cid.toString()])))).toEqual([])
  }
}

export async function checkBlobs({ url }: At, accounts: StormAccount[]): Promise<void> {
  for (const { did, blobs } of accounts) {
    for (const { cid, bytes } of blobs) {
      const response = await fetch(`${url}/xrpc/com.atproto.sync.getBlob?did=${did}&cid=${cid}`)
      expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true)
    }
  }
}

/**
 * Events in one unbroken numbering, the commits of each repository in one unbroken chain, no acknowledged one missing.
 */
export async function checkEventLog({ url }: At, accounts: StormAccount[]): Promise<void> {
  const latest = await Promise.all(
    accounts.map(({ did }) => request(`${url}/xrpc/com.atproto.sync.getLatestCommit?did=${did}`)),
  )
  const messages = await readUntil(
    new Subscriber(url, '?cursor=0'),
    new Set(latest.map(({ body }) => body.cid as string)),
  )

  const seqs = messages.map(({ body }) => body.seq)
  expect(seqs).toEqual(seqs.map((_, index) => seqs[0]! + index))

  for (const account of accounts) {
    const events = messages.filter(({ type, body }) => type === '#commit' && body['repo'] === account.did)
    const logged = new Map(events.map(({ body }) => [String(body['commit']), body['rev']]))
    expect(account.commits.filter(({ cid, rev }) => logged.get(cid) !== rev)).toEqual([])

    let previous: { rev: unknown; data: string | null } = { rev: null, data: null }
    for (const { body } of events) {
      if (previous.rev !== null)
        expect({ rev: body['since'], data: String(body['prevData']) }).toEqual(previous as never)
      previous = { rev: body['rev'], data: await dataOf(body['blocks'] as Uint8Array) }
    }
  }
}

/**
 * Messages from the start of the log to the newest commit of every account. Revisions of two accounts may be the same.
 */
async function readUntil(subscriber: Subscriber, commits: Set<string>): Promise<Message[]> {
  for (let next = 0; commits.size > 0; next++) {
    const { body } = (await subscriber.until(next + 1))[next]!
    commits.delete(String(body['commit']))
  }
  subscriber.close()
  return subscriber.messages
}

async function dataOf(blocks: Uint8Array): Promise<string> {
  const { root, blocks: held } = await readCarWithRoot(blocks)
  return String((decode(held.get(root)!) as { data: unknown }).data)
}
