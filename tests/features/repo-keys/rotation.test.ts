/**
 * Replacing the key of a repository, with a real directory on a bad line: what others verify, before, during and after.
 */
import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { beforeEach, expect, test } from 'bun:test'
import { deleteAccount } from '../../../src/features/identity/account-changes/account-changes.ts'
import { continueSequence } from '../../../src/features/operations/backup/restoring.ts'
import { faultsOfRepo } from '../../../src/features/operations/integrity/repo-check.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { formatDidKey, signingKey } from '../../../src/protocol/keys.ts'
import { nextOperation, signOperation, tombstone, type Operation } from '../../../src/protocol/plc.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { Consumer } from '../../support/clients/consumer.ts'
import { type Fate, holdPosts } from '../../support/faults/faulty-line.ts'
import { ADMIN_TOKEN, startPds } from '../../support/servers/pds.ts'
import { beforeRead, beforeTransaction } from '../../support/interruptions.ts'
import { Random } from '../../support/random.ts'
import { moveIn, stranger } from '../../support/clients/stranger.ts'
import { withMasterKey } from '../../support/clients/recovery.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { READER_DID, READER_METHOD, TokenReader } from '../../support/clients/token-reader.ts'
import { deviceKey, sovereignAccount } from '../../support/clients/wallet.ts'
import { seedAccount } from '../../support/clients/seed-account.ts'
import {
  begin,
  complete,
  lastOperation,
  namedKey,
  publish,
  publishing,
  stagedKey,
  verifiedRecords,
  write,
  type Wallet,
} from '../../support/clients/rotating.ts'
import { StillClock } from '../../support/clock.ts'
import { atOneNode } from '../../support/turns.ts'
import { useWorld } from '../../support/world.ts'

const {
  pds,
  plc: directory,
  line,
} = useWorld({
  eachTest: true,
  line: true,
  // Durable steps run when a test says so, however long the machine takes.
  options: { clock: new StillClock() },
  config: { rateLimit: { enabled: false }, ...withMasterKey },
})
let alice: Wallet
beforeEach(async () => {
  alice = await walletOf('alice')
})

async function walletOf(name: string): Promise<Wallet> {
  const { device, ...account } = await sovereignAccount(pds, name)
  return { pds, directory, account, device }
}

const submissions = () => line.arrived.filter(({ method, body }) => method === 'POST' && body.includes('"prev":"'))
const stagedRows = () => pds.count('staged_key')
const isHeld = async ({ account: { did } }: Wallet) => (await pds.rows('account', { did }))[0]!.signing_held_at !== null
const downLine = () => 'question lost' as const
/**
 * The next operation meets this fate; what comes before and after it is answered, or lost if the line then breaks down.
 */
function oneOperation(fate: Fate, after: Fate = 'answered') {
  let isOver = false
  line.fate = ({ method }) => {
    if (isOver) return after
    isOver = method === 'POST'
    return isOver ? fate : 'answered'
  }
}
const refusedDirectory = { status: 502, body: { error: { code: 'PLC_DIRECTORY_ERROR' } } }
const refused = { status: 400, body: { error: { code: 'InvalidRequest' } } }

test('an operation whose session ends before it takes effect is not submitted', async () => {
  const staged = await stagedKey(alice)
  const operation = await publishing(alice, staged)
  using _ = atOneNode(pds, 'the transactions of one node are interrupted')
  using __ = beforeTransaction(pds, () =>
    request(`${pds.url}/xrpc/com.atproto.server.deleteSession`, {
      method: 'POST',
      headers: bearer(alice.account.refreshJwt),
    }),
  )
  expect(await complete(alice, operation)).toMatchObject({ status: 401 })
  expect(submissions()).toEqual([])
})

test('an operation that takes effect while a request looks for its outcome is not reported as refused', async () => {
  const staged = await stagedKey(alice)
  const operation = await publishing(alice, staged)
  oneOperation('question lost')
  using _ = atOneNode(pds, 'the reads of one node are interrupted')
  // The request reads the staged key first, then the first try of the step, which fails, and then the request again.
  using __ = beforeRead(pds, { words: 'FROM staged_key', number: 3 }, () => {
    pds.clock.advance({ secs: 60 })
    return pds.runSteps()
  })
  expect(await complete(alice, operation)).toMatchObject({ status: 200, body: { signingKey: staged } })
  expect(await stagedRows()).toBe(0)
})

test('everybody who reads the directory can verify the repository before a rotation, and after it', async () => {
  const events = new Subscriber(pds.url)
  await events.opened
  await write(alice, 'by the old key')
  const staged = await stagedKey(alice)
  expect(staged).toStartWith('did:key:zDn')
  expect(await verifiedRecords(alice)).toBe(1)

  const operation = await publishing(alice, staged)
  expect(await complete(alice, operation)).toMatchObject({ status: 200, body: { signingKey: staged } })
  expect(await namedKey(alice)).toBe(staged)
  expect(await verifiedRecords(alice)).toBe(1)
  expect((await write(alice, 'by the new key')).status).toBe(200)
  expect(await verifiedRecords(alice)).toBe(2)
  expect(await faultsOfRepo(pds.ctx, alice.account.did as Did)).toEqual([])
  expect(await stagedRows()).toBe(0)

  const told = await events.untilSeen((messages) => messages.length === 4)
  events.close()
  expect(told.map(({ type }) => type)).toEqual(['#commit', '#identity', '#sync', '#commit'])
  expect(told[1]!.body).not.toHaveProperty('handle')
  expect(String(told[3]!.body['since'])).toBe(String(told[2]!.body['rev']))
  await pds.runSteps()
  expect(pds.mails.at(-1)).toMatchObject({
    to: 'alice@example.com',
    subject: expect.stringContaining('signing key of your account'),
  })
})

test('a consumer of the firehose verifies every commit and every state by the live directory, across rotations', async () => {
  const consumer = new Consumer(pds.url, { startCursor: 0, plcUrl: directory.url })
  const isNews = ({ event }: { event: string }) => event === 'create' || event === 'identity' || event === 'sync'
  let heard = (await consumer.until((events) => events.some(({ event }) => event === 'sync'))).length
  for (const round of [1, 2]) {
    await write(alice, `before ${round}`)
    heard = (await consumer.until((events) => events.length > heard)).length
    expect((await complete(alice, await publishing(alice, await stagedKey(alice)))).status).toBe(200)
    await write(alice, `after ${round}`)
    const before = heard
    heard = (
      await consumer.until(
        (events) => events.filter(isNews).length >= events.slice(0, before).filter(isNews).length + 3,
      )
    ).length
    expect(consumer.events.slice(before).map(({ event }) => event)).toEqual(['identity', 'sync', 'create'])
  }
  expect(consumer.faults).toEqual([])
  await consumer.stop()
})

test('a staged key is used for nothing, and only the newest can be published', async () => {
  const old = await namedKey(alice)
  const [first, second] = [await stagedKey(alice), await stagedKey(alice)]
  expect(second).not.toBe(first)
  const { body } = await alice.account.call('com.atproto.identity.getRecommendedDidCredentials')
  expect(body.verificationMethods).toEqual({ atproto: old })
  expect(JSON.stringify(body)).not.toContain(second)
  const reader = new TokenReader(directory.url)
  const token = async () =>
    (await alice.account.call(`com.atproto.server.getServiceAuth?aud=${READER_DID}&lxm=${READER_METHOD}`)).body.token
  expect(await reader.read(await token())).toBe(alice.account.did)
  expect(await complete(alice, await publishing(alice, first))).toMatchObject(refused)
  expect(await complete(alice, await publishing(alice, second))).toMatchObject({ status: 200 })
  // A service that has the old key in its memory fetches the new one.
  expect(await reader.read(await token())).toBe(alice.account.did)
})

test('the new key is on the curve of the old one, by which other services know the account', async () => {
  const mover = await stranger(pds, 'k256')
  const account = await moveIn(pds, mover, 'mover')
  const answer = await begin({ pds, directory, account, device: deviceKey() })
  expect(answer.body.signingKey).toStartWith('did:key:zQ3s')
})

const misfits: [string, (operation: Operation, staged: string) => Operation | Promise<Operation>][] = [
  ['it is signed by a stranger', (operation) => signed(operation, deviceKey())],
  ['its signature is missing', (operation) => ({ ...operation, sig: undefined }) as unknown as Operation],
  ['its signature is padded', (operation) => ({ ...operation, sig: `${operation.sig}==` })],
  ['it has another member', (operation) => signed({ ...operation, extra: 1 } as Operation)],
  ['it is a first operation', (operation) => signed({ ...operation, prev: null })],
  ['it follows no operation', (operation) => signed({ ...operation, prev: 'bafy' })],
  ['it names no key', (operation) => signed({ ...operation, verificationMethods: {} })],
  ['it names another key', (operation) => signed({ ...operation, verificationMethods: { atproto: deviceKey().did } })],
  [
    'the staged key cannot rotate',
    (operation, staged) =>
      signed({ ...operation, rotationKeys: operation.rotationKeys.filter((key) => key !== staged) }),
  ],
  [
    'it moves the account',
    (operation) =>
      signed({
        ...operation,
        services: { atproto_pds: { type: 'AtprotoPersonalDataServer', endpoint: 'https://elsewhere.example' } },
      }),
  ],
  [
    'it adds a service',
    (operation) =>
      signed({
        ...operation,
        services: { ...operation.services, other: { type: 'x', endpoint: 'https://x.example' } },
      }),
  ],
]
/** Signed again. The bytes that are signed leave out the signature. */
const signed = (operation: Operation, by = alice.device) => signOperation(operation, by.key)

test('an operation that does not fit is not passed on', async () => {
  const staged = await stagedKey(alice)
  const good = await publishing(alice, staged)
  for (const [why, spoil] of misfits) {
    const { status, body } = await complete(alice, await spoil(good, staged))
    expect({ why, status, code: body.error.code }).toEqual({ why, status: 400, code: 'InvalidRequest' })
  }
  const ending = signOperation(tombstone(await lastOperation(alice)), alice.device.key)
  for (const operation of [ending, {}, { ...good, type: 'create' }])
    expect(await complete(alice, operation)).toMatchObject(refused)
  for (const operation of [null, 'x', [], undefined]) expect((await complete(alice, operation)).status).toBe(422)
  expect(submissions()).toHaveLength(0)
  expect(await isHeld(alice)).toBe(false)
  expect((await complete(alice, good)).status).toBe(200)
})

test('what the identity names for permissioned data outlives a rotation, and an operation without it is refused', async () => {
  const space = formatDidKey(signingKey('p256', randomBytes(32)).publicKey)
  const host = { type: 'AtprotoSpaceHost', endpoint: 'https://spaces.example.com' }
  const before = (await lastOperation(alice)) as Operation
  const named = nextOperation(before, {
    verificationMethods: { ...before.verificationMethods, atproto_space: space },
    services: { ...before.services, atproto_space_host: host },
  })!
  await publish(alice, signOperation(named, alice.device.key))
  const staged = await stagedKey(alice)
  const good = await publishing(alice, staged)
  const without = { ...good, verificationMethods: { atproto: staged } }
  expect(await complete(alice, await signed(without))).toMatchObject(refused)
  const { atproto_space_host: _, ...services } = good.services
  expect(await complete(alice, await signed({ ...good, services }))).toMatchObject(refused)
  expect(submissions()).toHaveLength(0)
  expect((await complete(alice, good)).status).toBe(200)
  expect(await lastOperation(alice)).toMatchObject({
    verificationMethods: { atproto: staged, atproto_space: space },
    services: { atproto_space_host: host },
  })
})

test('whatever is made of an operation, it is refused, and nothing of it reaches the directory', async () => {
  const random = new Random(14)
  const staged = await stagedKey(alice)
  const good = await publishing(alice, staged)
  const odd = [
    null,
    0,
    -1,
    1e300,
    true,
    '',
    'x',
    '\ud800',
    '\u0000',
    'did:key:zQ3sh',
    [],
    ['\ud800'],
    {},
    { atproto: staged },
    { __proto__: null, x: [] },
  ]
  const members = Object.keys(good) as (keyof Operation)[]
  for (let i = 0; i < 300; i++) {
    const mutated: Record<string, unknown> = { ...good }
    for (let changes = 1 + random.below(2); changes > 0; changes--) {
      const name = random.of(members)
      const value = mutated[name]
      if (typeof value === 'string' && random.below(2) === 0) {
        const at = random.below(value.length)
        mutated[name] = value.slice(0, at) + random.of(['A', '=', '', ' ', '\n']) + value.slice(at + 1)
      } else if (random.below(5) === 0) delete mutated[name]
      else mutated[random.of([name, `${name}x`])] = random.of(odd)
    }
    if (isDeepStrictEqual(mutated, good)) continue
    const { status } = await complete(alice, mutated)
    expect({ mutated, isRefused: [400, 422].includes(status) }).toEqual({ mutated, isRefused: true })
  }
  expect(submissions()).toHaveLength(0)
  expect((await complete(alice, good)).status).toBe(200)
})

test('an operation that was overtaken is refused, and so is one without a rotation', async () => {
  const stale = await publishing(alice, await stagedKey(alice))
  await publish(alice, await publishing(alice, await namedKey(alice)))
  expect(await complete(alice, stale)).toMatchObject(refused)
  const bob = await walletOf('bob')
  expect(await complete(bob, await publishing(bob, deviceKey().did))).toMatchObject(refused)
})

test('nobody rotates without a master key, or for a did:web, or as somebody else', async () => {
  await using plain = await startPds({ plcDirectoryUrl: line.url }, { alone: 'it has no master key' })
  const { device, ...account } = await sovereignAccount(plain, 'plain')
  expect(await begin({ pds: plain, directory, account, device })).toMatchObject({
    status: 503,
    body: { error: { code: 'SERVICE_UNAVAILABLE' } },
  })
  const bob = await walletOf('bob')
  const operation = await publishing(bob, await stagedKey(bob))
  expect(await complete(alice, operation)).toMatchObject(refused)
  const carol = await seedAccount(pds, 'carol', { did: 'did:web:carol.example' })
  for (const path of ['rotation', 'rotation/complete'])
    expect(
      await request(`${pds.url}/v1/repo-keys/${path}`, { json: { operation }, headers: await carol.as('full') }),
    ).toMatchObject(refused)
})

test('an operation that is repeated, or that the wallet published itself, is a rotation', async () => {
  const first = await publishing(alice, await stagedKey(alice))
  expect((await complete(alice, first)).status).toBe(200)
  expect(await complete(alice, first)).toMatchObject({ status: 200, body: { signingKey: await namedKey(alice) } })
  expect(submissions()).toHaveLength(1)

  const second = await publishing(alice, await stagedKey(alice))
  await publish(alice, second)
  expect(await complete(alice, second)).toMatchObject({ status: 200, body: { signingKey: await namedKey(alice) } })
  expect(submissions()).toHaveLength(1)
  await write(alice, 'after')
  expect(await verifiedRecords(alice)).toBe(1)
  // Another key is staged: the operation of the last rotation is none for this one.
  await stagedKey(alice)
  expect(await complete(alice, second)).toMatchObject(refused)
})

test('what the directory refuses changes nothing, and the same key can be published by another operation', async () => {
  const staged = await stagedKey(alice)
  const overtaken = await publishing(alice, staged)
  const held = holdPosts(line)
  const completing = complete(alice, overtaken)
  await held.reached
  // Somebody else is faster, past the server.
  await publish(alice, await publishing(alice, await namedKey(alice)))
  held.open()
  expect(await completing).toMatchObject(refusedDirectory)
  expect(await isHeld(alice)).toBe(false)
  expect((await write(alice, 'goes on')).status).toBe(200)
  expect(await verifiedRecords(alice)).toBe(1)
  expect(await complete(alice, await publishing(alice, staged))).toMatchObject({
    status: 200,
    body: { signingKey: staged },
  })
  expect(await verifiedRecords(alice)).toBe(1)
})

test('an operation whose answer was lost took effect', async () => {
  const staged = await stagedKey(alice)
  oneOperation('answer lost')
  expect(await complete(alice, await publishing(alice, staged))).toMatchObject({
    status: 200,
    body: { signingKey: staged },
  })
  expect(submissions()).toHaveLength(1)
})

test.each(['question lost', 'answer lost'] as const)(
  'while nobody knows whether the directory took it (%s), nothing is written; the first to write afterwards finishes it',
  async (fate) => {
    await write(alice, 'before')
    const staged = await stagedKey(alice)
    const operation = await publishing(alice, staged)
    oneOperation(fate, 'question lost')
    expect(await complete(alice, operation)).toMatchObject(refusedDirectory)
    expect(await write(alice, 'refused')).toMatchObject({ status: 503, body: { error: 'ServiceUnavailable' } })
    expect((await write(alice, 'refused')).headers.get('retry-after')).toBe('5')
    // The staged key stays what it is: the directory may name it.
    expect((await begin(alice)).status).toBe(503)
    // The directory would drop the operation for the handle for one of a key that ranks above that of the server.
    const renamed = await alice.account.call('com.atproto.identity.updateHandle', {
      json: { handle: 'too-early.test' },
    })
    expect(renamed).toMatchObject({ status: 503, body: { error: 'ServiceUnavailable' } })
    expect((await alice.account.call('com.atproto.identity.getRecommendedDidCredentials')).status).toBe(503)
    // Reading goes on, and so do others.
    expect(
      (await alice.account.call(`com.atproto.repo.listRecords?repo=${alice.account.did}&collection=org.example.note`))
        .status,
    ).toBe(200)

    line.fate = () => 'answered'
    expect((await write(alice, 'after')).status).toBe(200)
    expect(await namedKey(alice)).toBe(staged)
    expect(await verifiedRecords(alice)).toBe(2)
    expect(submissions()).toHaveLength(1)
    expect(await complete(alice, operation)).toMatchObject({ status: 200, body: { signingKey: staged } })
  },
)

test.each([400, 429])(
  'a refusal (%d) counts only once an operation that was sent without an answer can no longer arrive',
  async (status) => {
    const staged = await stagedKey(alice)
    const operation = await publishing(alice, staged)
    oneOperation('question lost', status)
    expect(await complete(alice, operation)).toMatchObject(refusedDirectory)
    expect((await write(alice, 'too early')).status).toBe(503)
    expect((await write(alice, 'too early')).status).toBe(503)
    line.fate = ({ method }) => (method === 'POST' ? status : 'answered')
    expect((await write(alice, 'too early')).status).toBe(503)
    // What was lost arrives after all.
    await publish(alice, operation)
    line.fate = () => 'answered'
    expect((await write(alice, 'by the new key')).status).toBe(200)
    expect(await namedKey(alice)).toBe(staged)
    expect(await verifiedRecords(alice)).toBe(1)
  },
)

test('a refusal is believed a minute after the last submission that was not answered', async () => {
  const old = await namedKey(alice)
  const operation = await publishing(alice, await stagedKey(alice))
  line.fate = ({ method }) => (method === 'POST' ? 'question lost' : 'answered')
  expect(await complete(alice, operation)).toMatchObject(refusedDirectory)
  line.fate = ({ method }) => (method === 'POST' ? 400 : 'answered')
  expect((await write(alice, 'too early')).status).toBe(503)
  pds.clock.advance({ secs: 61 })
  expect((await write(alice, 'by the old key')).status).toBe(200)
  expect(await namedKey(alice)).toBe(old)
  expect(await isHeld(alice)).toBe(false)
})

test('what is not settled is settled without anybody asking, or by the wallet that repeats its request', async () => {
  const staged = await stagedKey(alice)
  const operation = await publishing(alice, staged)
  line.fate = ({ method }) => (method === 'POST' ? 'question lost' : 'answered')
  expect(await complete(alice, operation)).toMatchObject(refusedDirectory)
  expect(await complete(alice, operation)).toMatchObject(refusedDirectory)
  line.fate = () => 'answered'
  pds.clock.advance({ secs: 61 })
  await pds.runSteps()
  expect(await verifiedRecords(alice)).toBe(0)
  expect(await namedKey(alice)).toBe(staged)
  expect(await isHeld(alice)).toBe(false)

  const next = await publishing(alice, await stagedKey(alice))
  line.fate = downLine
  expect((await complete(alice, next)).status).toBe(502)
  oneOperation('question lost', 'question lost')
  expect((await complete(alice, next)).status).toBe(502)
  line.fate = () => 'answered'
  expect((await complete(alice, next)).status).toBe(200)
})

test('a wallet that repeats its request while the operation is being submitted has it submitted once, and gets the result', async () => {
  const staged = await stagedKey(alice)
  const operation = await publishing(alice, staged)
  oneOperation('question lost', 'question lost')
  expect((await complete(alice, operation)).status).toBe(502)
  pds.clock.advance({ secs: 61 })
  const { reached, open } = holdPosts(line)
  const settled = pds.runSteps()
  await reached
  const repeated = complete(alice, operation)
  const signsOnceSettled = write(alice, 'after')
  open()
  expect(await repeated).toMatchObject({ status: 200, body: { signingKey: staged } })
  expect((await signsOnceSettled).status).toBe(200)
  await settled
  expect(submissions()).toHaveLength(1)
})

test('a wallet that repeats its request while the rotation is finished gets the result', async () => {
  const staged = await stagedKey(alice)
  const operation = await publishing(alice, staged)
  oneOperation('answer lost', 'question lost')
  expect((await complete(alice, operation)).status).toBe(502)
  let isFinished = false
  line.fate = async (): Promise<Fate> => {
    if (!isFinished) {
      isFinished = true
      // Not earlier: the step must not be the one whose question waits here.
      pds.clock.advance({ secs: 61 })
      await pds.runSteps()
    }
    return 'answered'
  }
  expect(await complete(alice, operation)).toMatchObject({ status: 200, body: { signingKey: staged } })
  expect(await verifiedRecords(alice)).toBe(0)
  expect(submissions()).toHaveLength(1)
})

test('an operation that was overtaken while the directory was away is undone', async () => {
  const old = await namedKey(alice)
  const staged = await stagedKey(alice)
  const operation = await publishing(alice, staged)
  oneOperation('question lost', 'question lost')
  expect((await complete(alice, operation)).status).toBe(502)
  await publish(alice, await publishing(alice, old))
  line.fate = () => 'answered'
  expect((await write(alice, 'by the old key')).status).toBe(200)
  expect(await namedKey(alice)).toBe(old)
  expect(await verifiedRecords(alice)).toBe(1)
  expect((await complete(alice, await publishing(alice, staged))).status).toBe(200)
})

test('two completions at once are one rotation', async () => {
  const staged = await stagedKey(alice)
  const operation = await publishing(alice, staged)
  const rival = signed({ ...operation, alsoKnownAs: ['at://other.test'] })
  const events = new Subscriber(pds.url)
  await events.opened
  const [one, same, other] = await Promise.all([
    complete(alice, operation),
    complete(alice, operation),
    complete(alice, rival),
  ])
  expect(same.status).toBe(one.status)
  expect([one.status, other.status].toSorted()).toEqual([200, 400])
  expect(submissions()).toHaveLength(1)
  await write(alice, 'after')
  const told = await events.untilSeen((messages) => messages.some(({ type }) => type === '#commit'))
  events.close()
  expect(told.map(({ type }) => type)).toEqual(['#identity', '#sync', '#commit'])
})

test('writers wait while the directory is asked, and then sign with the new key', async () => {
  await write(alice, 'before')
  const held = holdPosts(line)
  const completing = complete(alice, await publishing(alice, await stagedKey(alice)))
  await held.reached
  let answered = 0
  const writing = Array.from({ length: 8 }, (_, i) => write(alice, `during ${i}`).finally(() => answered++))
  await verifiedRecords(alice)
  expect(answered).toBe(0)
  held.open()
  expect((await completing).status).toBe(200)
  expect((await Promise.all(writing)).map(({ status }) => status)).toEqual(Array(8).fill(200))
  expect(answered).toBe(8)
  expect(await verifiedRecords(alice)).toBe(9)
})

test('whoever else signs, waits as well: activation, and an import', async () => {
  await write(alice, 'before')
  const { account } = alice
  const archive = await fetch(`${pds.url}/xrpc/com.atproto.sync.getRepo?did=${account.did}`).then((answer) =>
    answer.arrayBuffer(),
  )
  await account.call('com.atproto.server.deactivateAccount', { json: {} })
  const staged = await stagedKey(alice)
  const held = holdPosts(line)
  const completing = complete(alice, await publishing(alice, staged))
  await held.reached
  expect((await account.call('com.atproto.server.activateAccount', { method: 'POST' })).status).toBe(503)
  await write(alice, 'refused')
  const importing = request(`${pds.url}/xrpc/com.atproto.repo.importRepo`, {
    method: 'POST',
    headers: { ...bearer(account.accessJwt), 'content-type': 'application/vnd.ipld.car' },
    body: archive,
  })
  held.open()
  expect((await completing).status).toBe(200)
  expect((await importing).status).toBe(200)
  // Not announced while nobody follows it; the head that is announced later is signed by the new key.
  expect((await account.call('com.atproto.server.activateAccount', { method: 'POST' })).status).toBe(200)
  expect(await verifiedRecords(alice)).toBe(1)
})

test('an import waits for a key that the identity names already, and the account not yet', async () => {
  await write(alice, 'before')
  const archive = await fetch(`${pds.url}/xrpc/com.atproto.sync.getRepo?did=${alice.account.did}`).then((answer) =>
    answer.arrayBuffer(),
  )
  await write(alice, 'not in the archive')
  const staged = await stagedKey(alice)
  const operation = await publishing(alice, staged)
  oneOperation('answer lost', 'question lost')
  expect((await complete(alice, operation)).status).toBe(502)
  line.fate = () => 'answered'
  expect(await namedKey(alice)).toBe(staged)
  expect(await isHeld(alice)).toBe(true)
  const imported = await request(`${pds.url}/xrpc/com.atproto.repo.importRepo`, {
    method: 'POST',
    headers: { ...bearer(alice.account.accessJwt), 'content-type': 'application/vnd.ipld.car' },
    body: archive,
  })
  expect(imported.status).toBe(200)
  expect(await isHeld(alice)).toBe(false)
  expect(await verifiedRecords(alice)).toBe(1)
})

test('an account that is deleted while the directory takes its operation is not spoken of again', async () => {
  const events = new Subscriber(pds.url)
  await events.opened
  const held = holdPosts(line)
  const completing = complete(alice, await publishing(alice, await stagedKey(alice)))
  await held.reached
  expect(await deleteAccount(pds, alice.account.did as Did)).toBe(true)
  held.open()
  expect((await completing).status).toBe(403)
  expect(await stagedRows()).toBe(0)
  line.fate = () => 'answered'
  await write(await walletOf('bob'), 'the next event')
  const told = await events.untilSeen((messages) => messages.some(({ type }) => type === '#commit'))
  events.close()
  expect(told.filter(({ body }) => body['did'] === alice.account.did).map(({ type }) => type)).toEqual(['#account'])
})

test('other changes of the identity wait, or are refused by the directory, whichever comes second', async () => {
  const { account } = alice
  const staged = await stagedKey(alice)
  const operation = await publishing(alice, staged)
  const held = holdPosts(line)
  const completing = complete(alice, operation)
  await held.reached
  const rival = await publishing(alice, await namedKey(alice))
  const submit = (given: Operation) =>
    account.call('com.atproto.identity.submitPlcOperation', { json: { operation: given } })
  expect((await submit(rival)).status).toBe(503)
  expect((await account.call('com.atproto.identity.updateHandle', { json: { handle: 'otto.test' } })).status).toBe(503)
  held.open()
  expect((await completing).status).toBe(200)
  expect((await submit(rival)).status).toBe(400)
  line.fate = () => 'answered'
  expect((await account.call('com.atproto.identity.updateHandle', { json: { handle: 'otto.test' } })).status).toBe(200)
  expect((await lastOperation(alice)) as Operation).toMatchObject({
    alsoKnownAs: ['at://otto.test'],
    verificationMethods: { atproto: staged },
  })
  expect(await verifiedRecords(alice)).toBe(0)
})

test('a taken-down account rotates nothing, and one that was taken down meanwhile still agrees with its identity', async () => {
  const staged = await stagedKey(alice)
  const takedown = (applied: boolean) =>
    request(`${pds.url}/xrpc/com.atproto.admin.updateSubjectStatus`, {
      json: {
        subject: { $type: 'com.atproto.admin.defs#repoRef', did: alice.account.did },
        takedown: applied ? { applied, ref: 'x' } : { applied },
      },
      headers: basic('admin', ADMIN_TOKEN),
    })
  const events = new Subscriber(pds.url)
  await events.opened
  const held = holdPosts(line)
  const completing = complete(alice, await publishing(alice, staged))
  await held.reached
  expect((await takedown(true)).status).toBe(200)
  held.open()
  expect((await completing).status).toBe(200)
  expect((await begin(alice)).status).toBe(401)
  expect((await takedown(false)).status).toBe(200)
  expect(await verifiedRecords(alice)).toBe(0)
  expect(await namedKey(alice)).toBe(staged)
  // Another takedown and its end, between which nothing changes.
  for (const applied of [true, false]) expect((await takedown(applied)).status).toBe(200)
  const told = await events.until(6)
  events.close()
  expect(told.map(({ type }) => type)).toEqual(['#account', '#identity', '#account', '#sync', '#account', '#account'])
  const head = await request(`${pds.url}/xrpc/com.atproto.sync.getLatestCommit?did=${alice.account.did}`)
  expect(told[3]!.body).toMatchObject({ did: alice.account.did, rev: head.body.rev })
})

test('an account that is deactivated meanwhile is announced with its new key when it comes back', async () => {
  const events = new Subscriber(pds.url)
  await events.opened
  const held = holdPosts(line)
  const completing = complete(alice, await publishing(alice, await stagedKey(alice)))
  await held.reached
  expect((await alice.account.call('com.atproto.server.deactivateAccount', { json: {} })).status).toBe(200)
  held.open()
  expect((await completing).status).toBe(200)
  line.fate = () => 'answered'
  expect((await alice.account.call('com.atproto.server.activateAccount', { method: 'POST' })).status).toBe(200)
  expect(await verifiedRecords(alice)).toBe(0)
  const told = await events.untilSeen((messages) => messages.some(({ type }) => type === '#sync'))
  events.close()
  expect(told.map(({ type }) => type)).toEqual(['#account', '#identity', '#account', '#identity', '#sync'])
})

test('an identity that has moved away gets no key of this server', async () => {
  const staged = await stagedKey(alice)
  const elsewhere = { atproto_pds: { type: 'AtprotoPersonalDataServer', endpoint: 'https://elsewhere.example' } }
  await publish(alice, await publishing(alice, await namedKey(alice), { services: elsewhere }))
  expect(await complete(alice, await publishing(alice, staged))).toMatchObject(refused)
  expect(submissions()).toHaveLength(0)
})

test('a restored database signs nothing for an account whose key is not settled', async () => {
  const staged = await stagedKey(alice)
  oneOperation('answer lost', 'question lost')
  expect((await complete(alice, await publishing(alice, staged))).status).toBe(502)
  const head = async () => (await alice.account.call(`com.atproto.sync.getLatestCommit?did=${alice.account.did}`)).body
  const before = await head()
  await continueSequence(pds.ctx)
  expect(await head()).toEqual(before)
  line.fate = () => 'answered'
  expect((await write(alice, 'after')).status).toBe(200)
  expect(await verifiedRecords(alice)).toBe(1)
})

test('what belongs to a rotation goes with the account', async () => {
  await stagedKey(alice)
  expect(await stagedRows()).toBe(1)
  await deleteAccount(pds, alice.account.did as Did)
  expect(await stagedRows()).toBe(0)
})
