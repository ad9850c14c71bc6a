/** The server gets another name: every identity whose key is here follows, and everyone else is told. */
import { beforeEach, describe, expect, test } from 'bun:test'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { moveIn, stranger, type Stranger } from '../../support/clients/stranger.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import { allSeen } from '../../support/clients/events.ts'
import type { Fate } from '../../support/faults/faulty-line.ts'
import { ADMIN_TOKEN, MASTER_KEY } from '../../support/servers/pds.ts'
import { runProgram } from '../../support/servers/program.ts'
import { useWorld } from '../../support/world.ts'

const FORMER = { publicUrl: 'https://old.test', serverDid: 'did:web:old.test' as Did, formerUrls: [] as string[] }
const PRESENT = {
  publicUrl: 'https://new.test',
  serverDid: 'did:web:new.test' as Did,
  formerUrls: ['https://old.test'],
}
/** More than the longest wait between two tries. */
const LATER_SECS = 600

const { pds, plc, line } = useWorld({
  line: true,
  eachTest: true,
  options: { publicUrl: FORMER.publicUrl },
  config: {
    ...FORMER,
    signingKeyMasterKey: MASTER_KEY,
    rateLimit: { enabled: false },
    availableUserDomains: ['old.test', 'new.test', 'test'],
  },
})

const admin = (path: string, json?: object) =>
  request(`${pds.url}/v1/admin/host-rename${path}`, { headers: bearer(ADMIN_TOKEN), ...(json && { json }) })
const begin = (changes: object = {}) => admin('', { url: PRESENT.publicUrl, handles: 'rename', ...changes })
const status = async () => (await admin('')).body.rename
const run = (...words: string[]) =>
  runProgram(['rename-host', ...words, '--url', pds.url], { SERVICE_ADMIN_TOKEN: ADMIN_TOKEN })

const signUp = (name: string) => createAccount(pds, name, { handle: `${name}.old.test` })

interface Identity {
  alsoKnownAs: string[]
  services: { atproto_pds: { endpoint: string } }
}
const identityOf = async (did: string): Promise<Identity> =>
  (await request(`${plc.url}/${did}/data`)).body as unknown as Identity
const placeOf = async ({ did }: { did: string }) => {
  const { alsoKnownAs, services } = await identityOf(did)
  return [services.atproto_pds.endpoint, alsoKnownAs[0]]
}

/**
 * Steps are due again after every try, at most this often. A try that is under way ends first: it may have begun at
 * another node, and time that passes beside it would give the step to this one too.
 */
async function workOff(): Promise<void> {
  await pds.runSteps()
  for (let tries = 0; tries < 5 && (await status())?.finishedAt === null; tries++) {
    pds.clock.advance({ secs: LATER_SECS })
    await pds.runSteps()
  }
}

let alice: TestAccount
beforeEach(async () => {
  alice = await signUp('alice')
})

test('the plan says what there is to do, and what to set, and changes nothing', async () => {
  await signUp('bob')
  await createAccount(pds, 'other', { handle: 'bob.new.test', email: 'other@example.com' })
  const { status: code, body } = await admin(`/plan?url=${PRESENT.publicUrl}`)
  expect(code).toBe(200)
  expect(body).toMatchObject({
    formerUrls: ['https://old.test'],
    isConfigured: false,
    isReached: { ok: false },
    identities: { plc: 3, web: 0 },
    handles: { underFormerName: 2, offered: true, conflicts: ['bob.old.test'] },
  })
  const said = await run('new.test', '--check')
  expect(said.code).toBe(1)
  expect(said.out).toContain('\nSERVICE_PUBLIC_URL=https://new.test\nSERVICE_FORMER_URLS=https://old.test\n\n')
  const { out } = await run('another.test', '--check')
  expect(out).toContain('\nSERVICE_AVAILABLE_USER_DOMAINS=another.test,old.test,new.test,test\n\n')
  expect(await begin()).toMatchObject({ status: 400 })
  expect(await status()).toBeNull()
  expect(await placeOf(alice)).toEqual(['https://old.test', 'at://alice.old.test'])
})

test('identities and handles follow, the network is told, and who holds the only key is asked to sign', async () => {
  const wallet: Stranger = await stranger(pds, 'k256')
  const hers = await moveIn(pds, wallet, 'walletholder')
  await wallet.publish({ rotationKeys: [wallet.didKey] })
  const mover: Stranger = await stranger(pds, 'p256')
  const gone = await moveIn(pds, mover, 'gone')
  await mover.publish({
    services: { atproto_pds: { type: 'AtprotoPersonalDataServer', endpoint: 'https://else.test' } },
  })
  const bob = await signUp('bob')
  const taker = await createAccount(pds, 'taker', { handle: 'bob.new.test', email: 'taker@example.com' })
  await pds.restart(PRESENT)
  const events = await Subscriber.open(pds.url)
  expect(await run('new.test', '--handles', 'rename')).toMatchObject({
    code: 1,
    err: expect.stringContaining('https://new.test does not lead to this server'),
  })
  expect(await status()).toBeNull()
  expect((await run('new.test', '--handles', 'rename', '--unreached')).code).toBe(0)
  await workOff()
  expect(await status()).toMatchObject({
    finishedAt: expect.any(String),
    accounts: 5,
    states: { updated: 3, by_holder: 1, elsewhere: 1 },
    handleFaults: 1,
  })
  expect(await placeOf(alice)).toEqual(['https://new.test', 'at://alice.new.test'])
  expect(await placeOf(bob)).toEqual(['https://new.test', 'at://bob.old.test'])
  expect(await placeOf(taker)).toEqual(['https://new.test', 'at://bob.new.test'])
  expect((await placeOf(hers))[0]).toBe('https://old.test')
  expect((await placeOf(gone))[0]).toBe('https://else.test')
  expect(pds.mails.filter(({ subject }) => subject.includes('another name')).map(({ to }) => to)).toEqual([hers.email])

  await allSeen(pds, events)
  const told = events.messages.filter(({ type }) => type === '#identity').map(({ body }) => body.did)
  expect(new Set(told)).toEqual(new Set([alice.did, bob.did, taker.did]))

  const open = await run('new.test', '--open', '--json')
  expect(JSON.parse(open.out)).toMatchObject(
    [
      { did: hers.did, state: 'by_holder' },
      { did: bob.did, state: 'updated', handleFault: expect.stringContaining('taken') },
    ].toSorted((a, b) => (a.did < b.did ? -1 : 1)),
  )

  await wallet.publish({
    services: { atproto_pds: { type: 'AtprotoPersonalDataServer', endpoint: 'https://new.test' } },
  })
  await begin()
  await workOff()
  expect(await status()).toMatchObject({ states: { updated: 4, elsewhere: 1 } })
})

test('what an identity names for permissioned data stays as it is', async () => {
  const mover = await stranger(pds, 'p256')
  const hers = await moveIn(pds, mover, 'maria')
  const { rotationKeys, services, verificationMethods } = (await request(`${plc.url}/${hers.did}/data`)).body
  const entries = {
    services: { atproto_space_host: { type: 'AtprotoSpaceHost', endpoint: 'https://spaces.example.com' } },
    verificationMethods: { atproto_space: mover.didKey },
  }
  await mover.publish({
    rotationKeys,
    services: { ...services, ...entries.services },
    verificationMethods: { ...verificationMethods, ...entries.verificationMethods },
  })
  await pds.restart(PRESENT)
  await begin()
  await workOff()
  expect(await identityOf(hers.did)).toMatchObject(entries)
  expect((await placeOf(hers))[0]).toBe('https://new.test')
})

test('handles stay unless they are to be renamed, and sessions go on', async () => {
  await pds.restart(PRESENT)
  await begin({ handles: 'keep' })
  await workOff()
  expect(await placeOf(alice)).toEqual(['https://new.test', 'at://alice.old.test'])
  expect(await alice.call('com.atproto.server.getSession')).toMatchObject({
    status: 200,
    body: { handle: 'alice.old.test', active: true },
  })
})

test('nobody else takes a former handle, which its account may have back', async () => {
  await pds.restart(PRESENT)
  await begin()
  await workOff()
  expect(await placeOf(alice)).toEqual(['https://new.test', 'at://alice.new.test'])
  const taken = await request(`${pds.url}/xrpc/com.atproto.server.createAccount`, {
    json: { handle: 'alice.old.test', email: 'other@example.com', password: 'a password of others' },
  })
  expect(taken).toMatchObject({ status: 400, body: { message: expect.stringContaining('already taken') } })
  const bob = await signUp('bob')
  const change = ({ accessJwt }: TestAccount, handle: string) =>
    request(`${pds.url}/xrpc/com.atproto.identity.updateHandle`, { headers: bearer(accessJwt), json: { handle } })
  expect((await change(bob, 'alice.old.test')).status).toBe(400)
  expect((await change(alice, 'alice.old.test')).status).toBe(200)
})

describe('what goes wrong on the way', () => {
  test.each(['question lost', 503, 429] as const)(
    'a directory that is away (%p) delays it, and each identity changes once',
    async (fate) => {
      const bob = await signUp('bob')
      await pds.restart(PRESENT)
      line.fate = ({ method }) => (method === 'POST' ? fate : 'answered')
      await begin({ handles: 'keep' })
      await pds.runSteps()
      expect((await status()).finishedAt).toBeNull()
      await pds.restart(PRESENT)
      line.fate = () => 'answered'
      await workOff()
      expect(await status()).toMatchObject({ finishedAt: expect.any(String), states: { updated: 2 } })
      for (const { did } of [alice, bob]) expect((await request(`${plc.url}/${did}/log`)).body).toHaveLength(2)
    },
  )

  test('an answer that is lost delays nothing if the log shows that the operation has arrived', async () => {
    await pds.restart(PRESENT)
    line.fate = ({ method }) => (method === 'POST' ? 'answer lost' : 'answered')
    await begin({ handles: 'keep' })
    await pds.runSteps()
    expect(await status()).toMatchObject({ finishedAt: expect.any(String), states: { updated: 1 } })
    expect((await request(`${plc.url}/${alice.did}/log`)).body).toHaveLength(2)
  })

  test('what the directory refuses is listed with its reason, and the others follow', async () => {
    const bob = await signUp('bob')
    await pds.restart(PRESENT)
    line.fate = ({ method, path }) => (method === 'POST' && path.includes(alice.did) ? 400 : 'answered')
    await begin({ handles: 'keep' })
    await workOff()
    expect(await status()).toMatchObject({ states: { updated: 1, refused: 1 } })
    expect((await admin('/open')).body.accounts).toMatchObject([{ did: alice.did, state: 'refused' }])
    expect((await placeOf(bob))[0]).toBe('https://new.test')
    line.fate = () => 'answered'
    await begin({ handles: 'keep' })
    await workOff()
    expect(await status()).toMatchObject({ states: { updated: 2 } })
  })

  test('an identity that its holder changes at the same time is tried again, and not given up', async () => {
    const wallet = await stranger(pds, 'k256')
    const hers = await moveIn(pds, wallet, 'walletholder')
    await pds.restart(PRESENT)
    let isFirst = true
    line.fate = async ({ method, path }): Promise<Fate> => {
      if (method === 'POST' && path.includes(hers.did) && isFirst) {
        isFirst = false
        await wallet.publish({ alsoKnownAs: ['at://walletholder.test', 'at://of.her.own.test'] })
      }
      return 'answered'
    }
    await begin({ handles: 'keep' })
    await pds.runSteps()
    expect(await status()).toMatchObject({ finishedAt: null, states: { updated: 1, failed: 1 } })
    await workOff()
    expect(await status()).toMatchObject({ finishedAt: expect.any(String), states: { updated: 2 } })
    expect(await identityOf(hers.did)).toMatchObject({
      alsoKnownAs: ['at://walletholder.test', 'at://of.her.own.test'],
      services: { atproto_pds: { endpoint: 'https://new.test' } },
    })
  })

  test('a directory that takes long ends a try, and the next one continues behind it', async () => {
    const others = [await signUp('bob'), await signUp('carol')]
    await pds.restart(PRESENT)
    line.fate = ({ method }) => {
      if (method === 'POST') pds.clock.advance({ secs: 61 })
      return 'answered'
    }
    await begin({ handles: 'keep' })
    await pds.runSteps()
    expect(await status()).toMatchObject({ finishedAt: null, states: { updated: 1 } })
    await workOff()
    expect(await status()).toMatchObject({ finishedAt: expect.any(String), states: { updated: 3 } })
    for (const { did } of [alice, ...others]) expect((await request(`${plc.url}/${did}/log`)).body).toHaveLength(2)
  })

  test('an account that always fails holds up no other: it is listed with the error, and tried again', async () => {
    const bob = await signUp('bob')
    await pds.restart(PRESENT)
    const [right] = await pds.rows('account', { did: alice.did }, ['signing_key_wrapped'])
    await pds.damage('account', { did: alice.did }, { signing_key_wrapped: 'A'.repeat(80) })
    await begin({ handles: 'keep' })
    await workOff()
    expect(await placeOf(bob)).toEqual(['https://new.test', 'at://bob.old.test'])
    expect((await placeOf(alice))[0]).toBe('https://old.test')
    expect(await status()).toMatchObject({ finishedAt: null, states: { updated: 1, failed: 1 } })
    expect((await admin('/open')).body.accounts).toMatchObject([
      { did: alice.did, state: 'failed', detail: expect.stringMatching(/./) },
    ])
    const said = await run('new.test', '--open')
    expect(said.out).toContain('failed: the server tries again')
    await pds.damage('account', { did: alice.did }, right!)
    expect((await run('new.test')).out).toContain('1 of 2 accounts so far')
    await pds.runSteps()
    expect(await status()).toMatchObject({ finishedAt: expect.any(String), states: { updated: 2 } })
    expect((await placeOf(alice))[0]).toBe('https://new.test')
  })

  test('a directory that fails for some identities holds up no other', async () => {
    const ill = [alice, await signUp('bob')]
    const well = await signUp('carol')
    await pds.restart(PRESENT)
    line.fate = ({ path }) => (ill.some(({ did }) => path.includes(did)) ? 500 : 'answered')
    await begin({ handles: 'keep' })
    await workOff()
    expect((await placeOf(well))[0]).toBe('https://new.test')
    expect(await status()).toMatchObject({ finishedAt: null, states: { updated: 1, failed: 2 } })
    line.fate = () => 'answered'
    await workOff()
    expect(await status()).toMatchObject({ finishedAt: expect.any(String), states: { updated: 3 } })
  })

  test('accounts that the directory refuses to show end no try', async () => {
    const ill = [alice, await signUp('bob'), await signUp('carol')]
    const well = await signUp('dave')
    await pds.restart(PRESENT)
    line.fate = ({ path }) => (ill.some(({ did }) => path.includes(did)) ? 403 : 'answered')
    await begin({ handles: 'keep' })
    await pds.runSteps()
    expect((await placeOf(well))[0]).toBe('https://new.test')
  })

  test('a try that an outage has ended is continued behind the accounts that it has reached', async () => {
    const ill = [alice, await signUp('bob'), await signUp('carol')]
    const well = await signUp('dave')
    await pds.restart(PRESENT)
    line.fate = ({ path }) => (ill.some(({ did }) => path.includes(did)) ? 502 : 'answered')
    await begin({ handles: 'keep' })
    await pds.runSteps()
    expect((await placeOf(well))[0]).toBe('https://old.test')
    await workOff()
    expect((await placeOf(well))[0]).toBe('https://new.test')
    expect(await status()).toMatchObject({ finishedAt: null, states: { updated: 1, failed: 3 } })
    line.fate = () => 'answered'
    await workOff()
    expect(await status()).toMatchObject({ finishedAt: expect.any(String), states: { updated: 4 } })
  })

  test('what was sent before the server got its former name back may still arrive', async () => {
    await pds.restart(PRESENT)
    let late = ''
    line.fate = ({ method, body }) => {
      if (method !== 'POST') return 'answered'
      late = body
      return 'question lost'
    }
    await begin({ handles: 'keep' })
    await pds.runSteps()
    line.fate = () => 'answered'
    await pds.restart({ ...FORMER, formerUrls: ['https://new.test'] })
    await begin({ url: FORMER.publicUrl, handles: 'keep' })
    await pds.runSteps()
    expect(await status()).toMatchObject({ finishedAt: null })
    expect((await request(`${plc.url}/${alice.did}`, { json: JSON.parse(late) })).status).toBe(200)
    expect((await placeOf(alice))[0]).toBe('https://new.test')
    await workOff()
    expect(await status()).toMatchObject({ finishedAt: expect.any(String), states: { updated: 1 } })
    expect((await placeOf(alice))[0]).toBe('https://old.test')
  })

  test('the server gets its former name back in the middle', async () => {
    const bob = await signUp('bob')
    await pds.restart(PRESENT)
    line.fate = ({ method, path }) => (method === 'POST' && path.includes(bob.did) ? 503 : 'answered')
    await begin()
    await pds.runSteps()
    line.fate = () => 'answered'
    expect(await placeOf(alice)).toEqual(['https://new.test', 'at://alice.new.test'])
    await pds.restart({ ...FORMER, formerUrls: ['https://new.test'] })
    await workOff()
    expect((await placeOf(bob))[0]).toBe('https://old.test')
    expect(await begin({ url: FORMER.publicUrl })).toMatchObject({ status: 200 })
    await workOff()
    for (const [account, handle] of [
      [alice, 'alice'],
      [bob, 'bob'],
    ] as const)
      expect(await placeOf(account)).toEqual(['https://old.test', `at://${handle}.old.test`])
  })
})
