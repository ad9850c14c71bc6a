/** Restoring an account from its archive, on the same server or another one; and archives that nobody honest made. */
import { deflateRawSync } from 'node:zlib'
import { beforeAll, expect, test } from 'bun:test'
import { AtpAgent } from '@atproto/api'
import { createAccount, logIn, PASSWORD } from '../../support/clients/account.ts'
import { bearer, request, type Answer } from '../../support/clients/http.ts'
import { settleIn } from '../../support/clients/migration.ts'
import { ADMIN_TOKEN, startPds, type TestPds } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { atOneNode } from '../../support/turns.ts'
import { useWorld } from '../../support/world.ts'
import { archiveIn, zipped } from '../../support/zip-reading.ts'
import { AccountArchive } from '../../../src/features/data/account-archives/archive-reading.ts'
import { thrownBy } from '../../support/thrown.ts'

const PATH = '/v1/account/archive'
const MIB = 1024 ** 2
/** In the record of an entry in the directory: compression method, sizes, and the length of the name. */
const METHOD_OFFSET = 10
const SIZE_OFFSET = 24
const CENTRAL_SIGNATURE = Buffer.from([0x50, 0x4b, 0x01, 0x02])

const { pds, plc } = useWorld({ plc: true, config: { rateLimit: { enabled: false }, blobs: { maxBlobSize: MIB } } })
const alice = setUp(() => createAccount(pds, 'alice'))
const bob = setUp(() => createAccount(pds, 'bob'))
let archive: Buffer
beforeAll(async () => {
  const agent = new AtpAgent({ service: pds.url })
  await agent.login({ identifier: alice.did, password: PASSWORD })
  await settleIn(agent)
  archive = await exported(alice.accessJwt)
})

const exported = async (token: string, from: Pick<TestPds, 'url'> = pds) =>
  Buffer.from(await (await fetch(from.url + PATH, { headers: bearer(token) })).arrayBuffer())

/** What an account takes along. The commit of its repository is signed anew. */
const belongingsIn = async (bytes: Buffer) =>
  [...(await archiveIn(bytes).contents())].filter(([name]) => /^(tables|blobs|preferences)/.test(name))

const restore = (token: string, body: Uint8Array, on: Pick<TestPds, 'url'> = pds, path = PATH): Promise<Answer> =>
  request(on.url + path, { method: 'POST', headers: bearer(token), body: body as Uint8Array<ArrayBuffer> })

/** What others see of an account, and its preferences. */
async function seen(on: Pick<TestPds, 'url'>, { did, accessJwt }: { did: string; accessJwt: string }) {
  const get = async (nsid: string) => (await request(`${on.url}/xrpc/${nsid}`, { headers: bearer(accessJwt) })).body
  const { collections } = await get(`com.atproto.repo.describeRepo?repo=${did}`)
  const records: string[] = []
  for (const collection of collections) {
    const page = await get(`com.atproto.repo.listRecords?repo=${did}&collection=${collection}&limit=100`)
    for (const { uri, cid } of page.records) records.push(`${uri} ${cid}`)
  }
  const { cids } = await get(`com.atproto.sync.listBlobs?did=${did}`)
  const blobs: string[] = []
  for (const cid of cids) {
    const response = await fetch(`${on.url}/xrpc/com.atproto.sync.getBlob?did=${did}&cid=${cid}`, {
      headers: bearer(accessJwt),
    })
    blobs.push(`${cid} ${response.status} ${response.headers.get('content-type')} ${(await response.bytes()).length}`)
  }
  const { preferences } = await get('app.bsky.actor.getPreferences')
  return { records: records.toSorted(), blobs, preferences }
}

test('what was deleted since the export is back, and what is there already is not stored again', async () => {
  const before = await seen(pds, alice)
  for (const record of before.records) {
    const [, , , collection, rkey] = record.split(' ')[0]!.split('/')
    await alice.call('com.atproto.repo.deleteRecord', { json: { repo: alice.did, collection, rkey } })
  }
  await alice.call('app.bsky.actor.putPreferences', { json: { preferences: [] } })
  await pds.age('blob')
  await pds.runSweep('blob-gc')
  expect(await restore(alice.accessJwt, archive)).toMatchObject({
    status: 200,
    body: { did: alice.did, blobs: { stored: 3, present: 0 }, hasRepo: true, preferences: 2 },
  })
  expect(await seen(pds, alice)).toEqual(before)
  expect((await restore(alice.accessJwt, archive)).body).toMatchObject({ blobs: { stored: 0, present: 3 } })
  expect(await seen(pds, alice)).toEqual(before)
})

test('an account that moves to another server brings everything along in its archive', async () => {
  await using other = await startPds({ plcDirectoryUrl: plc.url, availableUserDomains: ['elsewhere.test'] })
  const { body: permit } = await alice.call(
    `com.atproto.server.getServiceAuth?aud=${encodeURIComponent(other.ctx.config.serverDid)}&lxm=com.atproto.server.createAccount`,
  )
  const made = await request(`${other.url}/xrpc/com.atproto.server.createAccount`, {
    headers: bearer(permit.token),
    json: { did: alice.did, handle: 'alice.elsewhere.test', email: 'alice@example.com', password: PASSWORD },
  })
  expect(made.status).toBe(200)
  expect((await restore(made.body.accessJwt, archive, other)).status).toBe(200)
  const there = await exported(made.body.accessJwt, other)
  expect(await belongingsIn(there)).toEqual(await belongingsIn(archive))
})

test('an operator restores an account, and the audit log says so', async () => {
  const path = `/v1/admin/accounts/${alice.did}/archive`
  expect(await restore(ADMIN_TOKEN, archive, pds, path)).toMatchObject({ status: 200, body: { hasRepo: true } })
  const { body } = await request(`${pds.url}/v1/admin/audit?action=account_imported`, { headers: bearer(ADMIN_TOKEN) })
  expect(body.events).toMatchObject([{ actor: 'master-token', subject: alice.did }])
})

test('app passwords do not suffice, and the archive of another account is refused', async () => {
  const { body: made } = await bob.call('com.atproto.server.createAppPassword', { json: { name: 'an app' } })
  const app = await logIn(pds, bob, made.password)
  expect((await restore(app.accessJwt, archive)).status).toBe(401)
  const before = await seen(pds, bob)
  expect(await restore(bob.accessJwt, archive)).toMatchObject({
    status: 403,
    body: { error: { message: `The archive belongs to ${alice.did}` } },
  })
  expect(await seen(pds, bob)).toEqual(before)
})

test('nothing is remembered of files that are not read, of which two may even have one name', async () => {
  const notes: Files = ['one', 'two'].map((text) => ['notes.txt', Buffer.from(text)])
  const { status } = await restore(alice.accessJwt, await changed((files) => [...files, ...notes]))
  expect(status).toBe(200)
})

type Files = [name: string, content: Uint8Array][]
const packed = async (files: Files) =>
  (await zipped(files.map(([name, content]) => ({ name, content: [content] })))).bytes

const filesOf = async (): Promise<Files> => [...(await archiveIn(archive).contents())]
const changed = async (change: (files: Files) => Files) => packed(change(await filesOf()))
const isBlob = (name: string) => name.startsWith('blobs/')

/** Changes what the directory says of the first entry whose name fits. */
function misdeclared(bytes: Buffer, name: string, change: (record: Buffer) => void): Buffer {
  const copy = Buffer.from(bytes)
  for (let at = copy.indexOf(CENTRAL_SIGNATURE); at >= 0; at = copy.indexOf(CENTRAL_SIGNATURE, at + 1)) {
    const record = copy.subarray(at)
    if (record.toString('utf8', 46, 46 + record.readUInt16LE(28)) !== name) continue
    change(record)
    return copy
  }
  throw new Error(`there is no ${name}`)
}

test('an archive that was packed again by another program is accepted', async () => {
  const files = (await filesOf()).toReversed()
  const deflated = await packed(files.map(([name, content]) => [name, deflateRawSync(content)]))
  const declared = files.reduce(
    (bytes, [name, content]) =>
      misdeclared(bytes, name, (record) => {
        record.writeUInt16LE(8, METHOD_OFFSET)
        record.writeUInt32LE(content.length, SIZE_OFFSET)
      }),
    deflated,
  )
  expect(await restore(alice.accessJwt, declared)).toMatchObject({ status: 200, body: { hasRepo: true } })
})

/** By what is wrong: the archive, and the message. */
const hostile: Record<string, [() => Promise<Uint8Array>, RegExp]> = {
  'is empty': [async () => new Uint8Array(), /central directory/i],
  'is no archive': [async () => Buffer.alloc(MIB, 'x'), /central directory/i],
  'is cut off': [async () => archive.subarray(0, archive.length - 100), /central directory/i],
  'has lost its beginning': [async () => archive.subarray(1000), /./],
  'has bytes after its end': [async () => Buffer.concat([archive, Buffer.from('more')]), /comment length|extra bytes/i],
  'has no manifest': [
    () => changed((files) => files.filter(([name]) => name !== 'manifest.json')),
    /no manifest\.json/,
  ],
  'has a manifest of another kind': [
    () =>
      changed((files) =>
        files.map(([name, content]) => [name, name === 'manifest.json' ? Buffer.from('{}') : content]),
      ),
    /manifest\.json is not the manifest of an account/,
  ],
  'has a manifest that is no JSON': [
    () =>
      changed((files) => files.map(([name, content]) => [name, name === 'manifest.json' ? Buffer.from('[') : content])),
    /manifest\.json is not the manifest of an account/,
  ],
  'has a name that leads out of its folder': [
    () => changed((files) => [...files, ['../../etc/passwd', Buffer.from('root')]]),
    /\.\.\/\.\.\/etc\/passwd/,
  ],
  'has an absolute name': [() => changed((files) => [...files, ['/etc/passwd', Buffer.from('root')]]), /\/etc\/passwd/],
  'has a file twice': [
    () => changed((files) => [...files, ['preferences.json', Buffer.from('{"preferences":[]}')]]),
    /it contains \S*preferences\.json twice/,
  ],
  'has a blob twice, under two names': [
    () =>
      changed((files) => {
        const [name, content] = files.find(([one]) => isBlob(one))!
        return [...files, [name.replace('.png', '.jpg'), content]]
      }),
    /it contains blobs\/baf\w+\.jpg twice/,
  ],
  'has a blob with another content': [
    () =>
      changed((files) => [
        ...files.filter(([name]) => !isBlob(name)),
        ['blobs/bafkreiaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.png', Buffer.from('other')],
      ]),
    /the content of blobs\/bafkreia+\.png does not match/,
  ],
  'has a blob above the largest size': [
    () => changed((files) => [...files, [`blobs/bafkreia${'a'.repeat(51)}`, Buffer.alloc(MIB + 1)]]),
    /blobs\/bafkreia+ has more than 1048576 bytes/,
  ],
  'has other preferences than its manifest says': [
    () =>
      changed((files) =>
        files.map(([name, content]) => [
          name,
          name === 'preferences.json' ? Buffer.from('{"preferences":[]}') : content,
        ]),
      ),
    /the content of preferences\.json does not match the manifest/,
  ],
  'has lost its repository': [
    () => changed((files) => files.filter(([name]) => name !== 'repo.car')),
    /repo\.car is missing, which its manifest lists/,
  ],
  'has a repository that is none': [
    () =>
      changed((files) => files.map(([name, content]) => [name, name === 'repo.car' ? content.subarray(9) : content])),
    /./,
  ],
  'unpacks to far more than it says': [
    async () => {
      const bomb = deflateRawSync(Buffer.alloc(64 * MIB))
      const files = (await filesOf()).map(([name, content]): Files[0] => [
        name,
        name === 'preferences.json' ? bomb : content,
      ])
      return misdeclared(await packed(files), 'preferences.json', (record) => {
        record.writeUInt16LE(8, METHOD_OFFSET)
        record.writeUInt32LE(1000, SIZE_OFFSET)
      })
    },
    /preferences\.json: too many bytes/,
  ],
  'says that it unpacks to far more than may be': [
    async () =>
      misdeclared(archive, 'preferences.json', (record) => {
        record.writeUInt16LE(8, METHOD_OFFSET)
        record.writeUInt32LE(64 * MIB, SIZE_OFFSET)
      }),
    /preferences\.json has more than 4194304 bytes/,
  ],
  'is compressed in an unknown way': [
    async () => misdeclared(archive, 'repo.car', (record) => record.writeUInt16LE(12, METHOD_OFFSET)),
    /repo\.car is encrypted, or compressed in an unknown way/,
  ],
  'has two directories': [
    async () => Buffer.concat([archive.subarray(0, archive.length - 22), archive]),
    /directory is not at its end/,
  ],
}

test.each(Object.keys(hostile))('an archive that %s is refused, and changes nothing', async (what) => {
  const before = await seen(pds, alice)
  const [make, message] = hostile[what]!
  const { status, body } = await restore(alice.accessJwt, await make())
  expect({ status, message: body.error?.message }).toEqual({ status: 400, message: expect.stringMatching(message) })
  expect(await seen(pds, alice)).toEqual(before)
})

test('preferences that no app may have are found before anything is replaced', async () => {
  const content = Buffer.from('{"preferences":[{"$type":"com.example.settings"}]}')
  const sha256 = new Bun.CryptoHasher('sha256').update(content).digest('hex')
  const changedFiles = await changed((files) =>
    files.map(([name, before]) => {
      if (name === 'preferences.json') return [name, content]
      if (name !== 'manifest.json') return [name, before]
      const manifest = JSON.parse(before.toString())
      manifest.files.find((file: { name: string }) => file.name === 'preferences.json').sha256 = sha256
      return [name, Buffer.from(JSON.stringify(manifest))]
    }),
  )
  const record = { $type: 'com.example.note', text: 'since the export' }
  await alice.call('com.atproto.repo.createRecord', {
    json: { repo: alice.did, collection: 'com.example.note', record },
  })
  const before = await seen(pds, alice)
  expect(await restore(alice.accessJwt, changedFiles)).toMatchObject({
    status: 400,
    body: { error: { message: 'Some preferences are not in the app.bsky namespace' } },
  })
  expect(await seen(pds, alice)).toEqual(before)
})

test('of the imports of one account, one runs at a time', async () => {
  using _ = atOneNode(pds, 'each node has its own places')
  const answers = await Promise.all(Array.from({ length: 4 }, () => restore(alice.accessJwt, archive)))
  const statuses = answers.map(({ status }) => status).toSorted()
  expect(statuses[0]).toBe(200)
  expect(new Set(statuses.slice(1)).difference(new Set([200, 503])).size).toBe(0)
  expect(statuses.at(-1)).toBe(503)
  expect((await restore(alice.accessJwt, archive)).status).toBe(200)
})

test('the server does other work while it reads the directory of an archive with very many files', async () => {
  const files = 3000
  const { bytes: zip } = await zipped(
    Array.from({ length: files }, (_, at) => ({ name: `notes/${at}.txt`, content: [] })),
  )
  let [turns, isOpen] = [0, true]
  const turn = (): void => {
    turns++
    if (isOpen) setImmediate(turn)
  }
  turn()
  const source = { size: zip.length, read: (start: number, end: number) => [zip.subarray(start, end)] }
  const opened = AccountArchive.open(source, { repoBytes: MIB, blobBytes: MIB })
  expect(await thrownBy(opened)).toThrow('it has no manifest.json')
  isOpen = false
  expect(turns).toBeGreaterThan(files / 200)
})

test('an archive whose blobs need more room than the disk has is refused before one is stored', async () => {
  const LARGE = 2 ** 31
  await using server = await startPds({ rateLimit: { enabled: false }, blobs: { maxBlobSize: LARGE } })
  const carol = await createAccount(server, 'carol')
  const manifest = { format: 'holdfast-account-archive', version: 1, did: carol.did, files: [] }
  const blobs = Array.from({ length: 20_000 }, (_, at): [string, Uint8Array] => {
    const digits = Array.from(String(at), (digit) => 'abcdefghij'[Number(digit)]).join('')
    return [`blobs/bafkrei${digits.padStart(51, 'a')}a`, new Uint8Array()]
  })
  const bytes = await packed([['manifest.json', Buffer.from(JSON.stringify(manifest))], ...blobs])
  for (let at = bytes.indexOf(CENTRAL_SIGNATURE); at >= 0; at = bytes.indexOf(CENTRAL_SIGNATURE, at + 1)) {
    if (bytes.toString('utf8', at + 46, at + 52) !== 'blobs/') continue
    bytes.writeUInt16LE(8, at + METHOD_OFFSET)
    bytes.writeUInt32LE(LARGE, at + SIZE_OFFSET)
  }
  expect(await restore(carol.accessJwt, bytes, server)).toMatchObject({ status: 503 })
  expect(await server.count('blob', { did: carol.did })).toBe(0)
})
