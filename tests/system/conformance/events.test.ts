/** What each action tells the network, in which order, and what it does not. */
import { beforeEach, expect, test } from 'bun:test'
import { createAccount, xrpc, type TestAccount } from '../../support/clients/account.ts'
import { request } from '../../support/clients/http.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { operator } from './callers.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

let alice: TestAccount
let names = 0
const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })
const reader = setUp(() => Subscriber.open(pds.url))
beforeEach(async () => {
  alice = await createAccount(pds, `alice${++names}`)
})

const post = (nsid: string, json?: object) => alice.call(nsid, json === undefined ? { method: 'POST' } : { json })
const asOperator = (nsid: string, json: object) => request(`${pds.url}/xrpc/${nsid}`, { json, headers: operator })
const repoRef = () => ({ $type: 'com.atproto.admin.defs#repoRef', did: alice.did })
const collection = 'com.example.thing'
const write = (more: object = {}) => ({ repo: alice.did, collection, ...more })

/** Everything told between two marks. A mark is an account of its own, whose events nobody else makes. */
async function toldBy(actions: () => Promise<unknown>): Promise<{ type: string; body: Record<string, unknown> }[]> {
  const mark = async () => {
    const { did } = await createAccount(pds, `mark${++names}`)
    const isLast = ({ type, body }: { type: string; body: object }) =>
      type === '#sync' && Object.values(body).includes(did)
    for (let count = reader.messages.length; !reader.messages.some(isLast);) await reader.until(++count)
    return { did, end: reader.messages.findIndex(isLast) }
  }
  const from = await mark()
  await actions()
  const to = await mark()
  return reader.messages.slice(from.end + 1, to.end + 1).filter(({ body }) => !Object.values(body).includes(to.did))
}

interface Row {
  name: string
  act: () => Promise<unknown>
  /** Type and what its body holds. */
  tells: [type: string, body?: object][]
}

const activate = () => post('com.atproto.server.activateAccount')
const deactivate = () => post('com.atproto.server.deactivateAccount', {})
const takedown = (applied: boolean) =>
  asOperator('com.atproto.admin.updateSubjectStatus', { subject: repoRef(), takedown: { applied } })
const inactive = (status: string): [string, object] => ['#account', { active: false, status }]
const active: [string, object] = ['#account', { active: true }]

const rows: Row[] = [
  {
    name: 'a record',
    act: () => post('com.atproto.repo.createRecord', write({ record: { a: 1 } })),
    tells: [['#commit', { ops: [expect.objectContaining({ action: 'create' })] }]],
  },
  {
    name: 'a batch',
    act: () =>
      post('com.atproto.repo.applyWrites', {
        repo: alice.did,
        writes: ['a', 'b', 'c'].map((rkey) => ({
          $type: 'com.atproto.repo.applyWrites#create',
          collection,
          rkey,
          value: {},
        })),
      }),
    tells: [
      [
        '#commit',
        {
          ops: ['a', 'b', 'c'].map((rkey) =>
            expect.objectContaining({ action: 'create', path: `${collection}/${rkey}` }),
          ),
        },
      ],
    ],
  },
  {
    name: 'a put, the same put again, a deletion and a deletion of nothing',
    async act() {
      for (let i = 0; i < 2; i++) await post('com.atproto.repo.putRecord', write({ rkey: 'x', record: { a: 1 } }))
      for (let i = 0; i < 2; i++) await post('com.atproto.repo.deleteRecord', write({ rkey: 'x' }))
    },
    tells: [
      ['#commit', { ops: [expect.objectContaining({ action: 'create' })] }],
      ['#commit', { ops: [expect.objectContaining({ action: 'delete', cid: null })] }],
    ],
  },
  {
    name: 'a refused write',
    act: () => post('com.atproto.repo.createRecord', write({ record: { a: 1.5 } })),
    tells: [],
  },
  {
    name: 'a new handle',
    act: () => post('com.atproto.identity.updateHandle', { handle: `new${names}.test` }),
    tells: [['#identity', { handle: expect.stringMatching(/^new/) }]],
  },
  {
    name: 'a new handle by the operator',
    act: () => asOperator('com.atproto.admin.updateAccountHandle', { did: alice.did, handle: `other${names}.test` }),
    tells: [['#identity', { handle: expect.stringMatching(/^other/) }]],
  },
  {
    name: 'an operation for the directory',
    async act() {
      await post('com.atproto.identity.requestPlcOperationSignature')
      const { body } = await post('com.atproto.identity.signPlcOperation', { token: await lastCode(pds, alice.email) })
      await post('com.atproto.identity.submitPlcOperation', body)
    },
    tells: [['#identity']],
  },
  { name: 'deactivation', act: deactivate, tells: [inactive('deactivated')] },
  {
    name: 'activation',
    act: async () => (await deactivate(), await activate()),
    tells: [inactive('deactivated'), active, ['#identity', { handle: expect.stringMatching(/^alice/) }], ['#sync']],
  },
  { name: 'activation of who is active', act: activate, tells: [active, ['#identity'], ['#sync']] },
  {
    name: 'a takedown and its end',
    act: async () => (await takedown(true), await takedown(false)),
    tells: [inactive('takendown'), active],
  },
  {
    name: 'a takedown of who is deactivated, and its end',
    act: async () => (await deactivate(), await takedown(true), await takedown(false)),
    tells: [inactive('deactivated'), inactive('takendown'), inactive('deactivated')],
  },
  {
    name: 'a status that changes nothing',
    act: () => asOperator('com.atproto.admin.updateSubjectStatus', { subject: repoRef() }),
    tells: [active],
  },
  {
    name: 'deletion by the operator',
    act: () => asOperator('com.atproto.admin.deleteAccount', { did: alice.did }),
    tells: [inactive('deleted')],
  },
  {
    name: 'deletion',
    async act() {
      await post('com.atproto.server.requestAccountDelete')
      await xrpc(pds, 'com.atproto.server.deleteAccount', {
        json: { did: alice.did, password: alice.password, token: await lastCode(pds, alice.email) },
      })
    },
    tells: [inactive('deleted')],
  },
  {
    name: 'what is nobody else’s business',
    async act() {
      await alice.call('com.atproto.repo.uploadBlob', {
        method: 'POST',
        body: 'x',
        headers: { 'content-type': 'text/plain' },
      })
      await post('app.bsky.actor.putPreferences', { preferences: [] })
      await post('com.atproto.server.createAppPassword', { name: 'x' })
      await post('com.atproto.server.requestEmailConfirmation')
      await xrpc(pds, 'com.atproto.server.createSession', {
        json: { identifier: alice.handle, password: alice.password },
      })
      const car = await fetch(`${pds.url}/xrpc/com.atproto.sync.getRepo?did=${alice.did}`)
      const imported = await alice.call('com.atproto.repo.importRepo', {
        method: 'POST',
        body: await car.bytes(),
        headers: { 'content-type': 'application/vnd.ipld.car' },
      })
      expect(imported.status).toBe(200)
    },
    tells: [],
  },
]

test.each(rows.map((row) => [row.name, row] as const))('%s', async (name, { act, tells }) => {
  const told = await toldBy(act)
  expect(told.map(({ type }) => type)).toEqual(tells.map(([type]) => type))
  told.forEach(({ body }, i) => {
    expect(body['did'] ?? body['repo']).toBe(alice.did)
    expect(body).toMatchObject(tells[i]![1] ?? {})
    if (body['active'] === true) expect(body).not.toHaveProperty('status')
    if (name === 'an operation for the directory') expect(body).not.toHaveProperty('handle')
  })
})

test('of a deleted account nothing is left to replay but its end', async () => {
  const isAlices = ({ body }: { body: object }) => Object.values(body).includes(alice.did)
  const live = new Subscriber(pds.url)
  await live.opened
  await asOperator('com.atproto.admin.deleteAccount', { did: alice.did })
  await live.untilSeen((messages) => messages.some(({ body }) => body['status'] === 'deleted'))
  live.close()
  const replay = new Subscriber(pds.url, '?cursor=0')
  for (let count = 1; !replay.messages.some(isAlices); count++) await replay.until(count)
  expect(replay.messages.filter(isAlices)).toMatchObject([
    { type: '#account', body: { active: false, status: 'deleted' } },
  ])
  replay.close()
  expect(await xrpc(pds, `com.atproto.sync.getRepoStatus?did=${alice.did}`)).toMatchObject({
    status: 400,
    body: { error: 'RepoNotFound' },
  })
  expect(
    (await xrpc(pds, 'com.atproto.sync.listRepos?limit=1000')).body.repos.map(({ did }: { did: string }) => did),
  ).not.toContain(alice.did)
  expect((await createAccount(pds, alice.handle.replace('.test', ''))).did).not.toBe(alice.did)
})
