import { beforeAll, expect, test } from 'bun:test'
import { repoHead } from '../../../src/features/data/repo/repo.ts'
import type { Did, Tid } from '../../../src/protocol/identifiers.ts'
import { createAccount, xrpc } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

let head: Tid
const { pds } = useWorld()
const alice = setUp(() => createAccount(pds, 'alice'))
beforeAll(async () => {
  head = await latest()
})

const latest = async () => (await repoHead(pds.ctx.db, alice.did as Did))!.rev
const collection = 'app.bsky.feed.post'
const createdAt = '2026-01-01T00:00:00.000Z'
const cid = 'bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy'
const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`

/** A request as text, so that anything can be said. */
const send = (body: string | Uint8Array, nsid = 'com.atproto.repo.createRecord') =>
  request(`${pds.url}/xrpc/${nsid}`, {
    method: 'POST',
    headers: { ...bearer(alice.accessJwt), 'content-type': 'application/json' },
    body,
  })

const withRecord = (record: string, more = '') =>
  `{"repo":"${alice.did}","collection":"com.example.thing","record":${record}${more}}`

const bodies: [name: string, body: () => string | Uint8Array, error: string, message?: RegExp][] = [
  ['JSON that ends early', () => '{"repo":', 'SyntaxError'],
  ['a body that is no object', () => '[]', 'InvalidRequest'],
  ['no body', () => '', 'InvalidRequest'],
  [
    'more than 100,000 lists and objects',
    () => withRecord(`{"a":[${'[],{},'.repeat(50_000)}0]}`),
    'InvalidRequest',
    /^More than 100000 lists and objects$/,
  ],
  [
    'more than 20,000 members of an object',
    () => withRecord(`{${Array.from({ length: 20_001 }, (_, i) => `"k${i}":0`).join(',')}}`),
    'InvalidRequest',
    /^An object has more than 20000 members$/,
  ],
  [
    'invalid UTF-8',
    () =>
      Buffer.concat([Buffer.from(withRecord('{"a":"')).subarray(0, -1), Buffer.from([0xff, 0xfe]), Buffer.from('"}}')]),
    'InvalidRequest',
    /UTF-8/,
  ],
  [
    'a float',
    () => withRecord('{"a":1.5}'),
    'InvalidRequest',
    /^Numbers must be integers of at most 53 bits, got 1.5 at \$\.record\.a$/,
  ],
  [
    'a float deep inside',
    () => withRecord('{"b":[{},{"a ratio":[1,0.5]}]}'),
    'InvalidRequest',
    /at \$\.record\.b\[1\]\["a ratio"\]\[1\]$/,
  ],
  [
    'a float, without validation',
    () => withRecord('{"a":1.5}', ',"validate":false'),
    'InvalidRequest',
    /at \$\.record\.a$/,
  ],
  [
    'a float under a very long name',
    () => withRecord(`{"${'n'.repeat(50_000)}":1.5}`),
    'InvalidRequest',
    /^.{60,200}…"\]$/,
  ],
  ['a huge number', () => withRecord('{"a":9007199254740993}'), 'InvalidRequest', /integers/],
  ['an infinite number', () => withRecord('{"a":1e999}'), 'InvalidRequest', /integers/],
  ['deep nesting', () => withRecord(deep(200)), 'InvalidRequest', /Nested deeper/],
  ['absurd nesting', () => withRecord(deep(20_000)), 'InvalidRequest', /Nested deeper/],
  [
    'an object of 10,001 members',
    () =>
      withRecord(
        JSON.stringify({ a: [{ b: Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [`k${i}`, 0])) }] }),
      ),
    'InvalidRequest',
    /^An object has more than 10000 members at \$\.record\.a\[0\]\.b$/,
  ],
  [
    'names that are half a surrogate pair',
    () => withRecord('{"a\\ud800":1,"a\\ud801":2}'),
    'InvalidRequest',
    /Unicode/,
  ],
  [
    'a name that readers in JavaScript do not take',
    () => withRecord('{"list":[{"__proto__":{"admin":true}}]}'),
    'InvalidRequest',
    /^Invalid key: __proto__ at \$\.record\.list\[0\]\.__proto__$/,
  ],
  [
    'that name, without validation',
    () => withRecord('{"__proto__":1}', ',"validate":false'),
    'InvalidRequest',
    /^Invalid key: __proto__ at/,
  ],
  ['a record that is no object', () => withRecord('"text"'), 'InvalidRequest'],
  ['a record that is a list', () => withRecord('[1]'), 'InvalidRequest'],
  ['a record that is null', () => withRecord('null'), 'InvalidRequest'],
  ['a record that is a link', () => withRecord(`{"$link":"${cid}"}`), 'InvalidRequest'],
  [
    'another type than the collection',
    () => withRecord('{"$type":"app.bsky.feed.post"}'),
    'InvalidRequest',
    /^Invalid \$type: expected com.example.thing, got app.bsky.feed.post$/,
  ],
  [
    'another type, without validation',
    () => withRecord('{"$type":"com.example.other"}', ',"validate":false'),
    'InvalidRequest',
    /^Invalid \$type/,
  ],
  ['a type that is no text', () => withRecord('{"$type":5}'), 'InvalidRequest', /^Invalid \$type/],
  ['an empty type inside', () => withRecord('{"a":{"$type":""}}'), 'InvalidRequest', /\$type/],
  ['a malformed link', () => withRecord('{"a":{"$link":"bafynonsense"}}'), 'InvalidRequest', /\$link/],
  ['a link with company', () => withRecord(`{"a":{"$link":"${cid}","b":1}}`), 'InvalidRequest', /\$link/],
  ['bytes that are no base64', () => withRecord('{"a":{"$bytes":"%%%"}}'), 'InvalidRequest', /base64/],
  [
    'a blob in the old shape',
    () => withRecord(`{"a":{"cid":"${cid}","mimeType":"image/png"}}`),
    'InvalidRequest',
    /^Legacy blobs are not allowed/,
  ],
  [
    'a blob in the old shape, without validation',
    () => withRecord(`{"a":{"cid":"${cid}","mimeType":"image/png"}}`, ',"validate":false'),
    'InvalidRequest',
    /^Legacy blobs/,
  ],
  [
    'a blob without a size',
    () => withRecord(`{"a":{"$type":"blob","ref":{"$link":"${cid}"},"mimeType":"image/png"}}`),
    'InvalidRequest',
    /blob/,
  ],
  [
    'a blob that is not there',
    () => withRecord(`{"a":{"$type":"blob","ref":{"$link":"${cid}"},"mimeType":"image/png","size":4}}`),
    'BlobNotFound',
  ],
  ['a record key with a slash', () => withRecord('{}', ',"rkey":"a/b"'), 'InvalidRequest'],
  ['a record key of dots', () => withRecord('{}', ',"rkey":"../.."'), 'InvalidRequest'],
  ['a record key that is too long', () => withRecord('{}', `,"rkey":"${'k'.repeat(513)}"`), 'InvalidRequest'],
  [
    'no record key, where the lexicon fixes it',
    () => `{"repo":"${alice.did}","collection":"app.bsky.actor.profile","record":{"displayName":"Alice"}}`,
    'InvalidRequest',
    /^Invalid record key for app.bsky.actor.profile: Expected "self" \(got "3[a-z2-7]{12}"\) at \$\.rkey$/,
  ],
  [
    'a record key that is no TID',
    () =>
      `{"repo":"${alice.did}","collection":"${collection}","rkey":"abc","record":{"text":"","createdAt":"${createdAt}"}}`,
    'InvalidRequest',
    /^Invalid record key for app.bsky.feed.post/,
  ],
  [
    'a collection that is no NSID',
    () => `{"repo":"${alice.did}","collection":"nonsense","record":{}}`,
    'InvalidRequest',
  ],
  ['a repository that is nothing', () => '{"repo":"","collection":"com.example.thing","record":{}}', 'InvalidRequest'],
  ['a swap that is no CID', () => withRecord('{}', ',"swapCommit":"nonsense"'), 'InvalidRequest', /CID|cid/],
  [
    'an invalid record of a known type',
    () => `{"repo":"${alice.did}","collection":"${collection}","record":{"text":5,"createdAt":"${createdAt}"}}`,
    'InvalidRequest',
    /^Invalid app.bsky.feed.post record/,
  ],
  [
    'a time that is none',
    () => `{"repo":"${alice.did}","collection":"${collection}","record":{"text":"","createdAt":"yesterday"}}`,
    'InvalidRequest',
    /^Invalid app.bsky.feed.post record/,
  ],
  ['validate that is no boolean', () => withRecord('{}', ',"validate":"yes"'), 'InvalidRequest'],
]

test.each(bodies)('%s is refused', async (_, body, error, message = /./) => {
  const answer = await send(body())
  expect({ status: answer.status, error: answer.body.error }).toEqual({ status: 400, error })
  expect(answer.body.message).toMatch(message)
  expect(await latest()).toEqual(head)
})

test('a text that was cut in the middle of a character is stored as one that can be read', async () => {
  expect((await send(withRecord('{"text":"cut \\ud83d"}', ',"rkey":"cut"'))).status).toBe(200)
  const { body } = await request(
    `${pds.url}/xrpc/com.atproto.repo.getRecord?repo=${alice.did}&collection=com.example.thing&rkey=cut`,
  )
  expect(body.value.text).toBe('cut \ufffd')
  head = await latest()
})

test('a body that is too large is refused by its size', async () => {
  const answer = await send(withRecord(`{"a":"${'x'.repeat(1024 * 1024)}"}`))
  expect({ status: answer.status, error: answer.body.error }).toEqual({ status: 413, error: 'PayloadTooLargeError' })
})

test('other keys of the prototype are keys like others', async () => {
  const record = '{"constructor":"c","toString":1,"hasOwnProperty":null}'
  const { status, body } = await send(withRecord(record, ',"rkey":"proto"'))
  expect(status).toBe(200)
  const stored = await (
    await fetch(`${pds.url}/xrpc/com.atproto.repo.getRecord?repo=${alice.did}&collection=com.example.thing&rkey=proto`)
  ).text()
  expect(JSON.parse(stored).value).toEqual({ ...JSON.parse(record), $type: 'com.example.thing' })
  expect(body.uri).toEndWith('/proto')
  head = await latest()
})

const batches: [name: string, writes: unknown][] = [
  ['no list', 'x'],
  ['an unknown action', [{ $type: 'com.atproto.repo.applyWrites#explode', collection, rkey: 'a' }]],
  ['no action', [{ collection, rkey: 'a', value: {} }]],
  ['null', [null]],
  ['an update without a key', [{ $type: 'com.atproto.repo.applyWrites#update', collection, value: {} }]],
  ['a delete of what is not there', [{ $type: 'com.atproto.repo.applyWrites#delete', collection, rkey: 'nothing' }]],
]

test.each(batches)('a batch with %s is refused', async (_, writes) => {
  const answer = await alice.call('com.atproto.repo.applyWrites', { json: { repo: alice.did, writes } })
  expect(answer.status).toBe(400)
  expect(answer.body.error).toMatch(/^(InvalidRequest|RecordNotFound)$/)
  expect(await latest()).toEqual(head)
})

const reads: [name: string, path: () => string, error: string][] = [
  ['no collection', () => `getRecord?repo=${alice.did}&rkey=a`, 'InvalidRequest'],
  ['a record key twice', () => `getRecord?repo=${alice.did}&collection=${collection}&rkey=a&rkey=b`, 'InvalidRequest'],
  [
    'a malformed CID',
    () => `getRecord?repo=${alice.did}&collection=${collection}&rkey=a&cid=nonsense`,
    'InvalidRequest',
  ],
  ['a record that is not there', () => `getRecord?repo=${alice.did}&collection=${collection}&rkey=a`, 'RecordNotFound'],
  [
    'a limit that is too high',
    () => `listRecords?repo=${alice.did}&collection=${collection}&limit=101`,
    'InvalidRequest',
  ],
  [
    'a limit that is no number',
    () => `listRecords?repo=${alice.did}&collection=${collection}&limit=ten`,
    'InvalidRequest',
  ],
  ['a list of nobody', () => `listRecords?repo=nobody.test&collection=${collection}`, 'InvalidRequest'],
  ['a description of nobody', () => 'describeRepo?repo=nobody.test', 'RepoNotFound'],
  ['a description of nonsense', () => 'describeRepo?repo=%00', 'InvalidRequest'],
]

test.each(reads)('a read with %s is refused', async (_, path, error) => {
  const answer = await xrpc(pds, `com.atproto.repo.${path()}`)
  expect({ status: answer.status, error: answer.body.error }).toEqual({ status: 400, error })
})
