/**
 * Old servers that fail, lie or stop in the middle of a move: the account there keeps working, and the holder is told.
 */
import { afterEach, describe, expect, test } from 'bun:test'
import { createAccount, logIn, type TestAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { answer, begin, giveCode, giveMailedCode, moveOf, plan } from '../../support/clients/mover.ts'
import { lastOperation, publish } from '../../support/clients/rotating.ts'
import { deviceKey } from '../../support/clients/wallet.ts'
import type { Fate } from '../../support/faults/faulty-line.ts'
import { endless, startLyingHost, type LyingHost } from '../../support/faults/lying-host.ts'
import { TestClock } from '../../support/clock.ts'
import { lastCode } from '../../support/servers/mail.ts'
import { startPds, type TestPds } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { until } from '../../support/until.ts'
import { useWorld } from '../../support/world.ts'
import { signOperation, type Operation } from '../../../src/protocol/plc.ts'
import { thrownBy } from '../../support/thrown.ts'

/** Longest archive and longest blob that the new server takes. */
const MAX_BYTES = 1024 * 1024

/** Of both servers. */
const clock = new TestClock()
const { pds, plc, line } = useWorld({
  plc: true,
  line: true,
  options: { clock },
  config: {
    rateLimit: { enabled: false },
    repos: { maxImportSize: MAX_BYTES },
    blobs: { maxBlobSize: MAX_BYTES },
  },
})
const host: LyingHost = setUp(startLyingHost)
/** The server behind it, which its identities do not name. */
const old: TestPds = setUp(async () => {
  const behind = await startPds(
    { plcDirectoryUrl: plc.url, rateLimit: { enabled: false } },
    { publicUrl: host.url, clock },
  )
  host.to = behind.url
  return behind
})
afterEach(() => {
  host.lie = () => null
})

let names = 0
/** An account at the old server with a post that shows a picture. */
async function someone(input: object = {}): Promise<{ name: string; from: TestAccount; cid: string }> {
  const name = `mover${names++}`
  const from = await createAccount(old, name, { ...input })
  return { name, from, cid: await addPicture(from, names) }
}

/** Returns the CID of the picture. */
async function addPicture(from: TestAccount, content: number): Promise<string> {
  const picture = new Uint8Array(2000).fill(content)
  const uploaded = await from.call('com.atproto.repo.uploadBlob', {
    method: 'POST',
    body: picture,
    headers: { 'content-type': 'image/png' },
  })
  const { blob } = uploaded.body
  const written = await from.call('com.atproto.repo.createRecord', {
    json: {
      repo: from.did,
      collection: 'com.example.picture',
      record: { $type: 'com.example.picture', picture: blob },
    },
  })
  expect(written.status).toBe(200)
  return blob.ref.$link
}

/** Let the server try until it gives up or waits. */
async function patiently(): Promise<void> {
  for (let tries = 0; tries < 4; tries++) {
    await pds.runSteps()
    clock.advance({ secs: 60 })
  }
  await pds.runSteps()
}

async function expectUntouched(from: TestAccount): Promise<void> {
  const status = await request(`${old.url}/xrpc/com.atproto.sync.getRepoStatus?did=${from.did}`)
  expect(status.body).toMatchObject({ active: true })
  const { services } = (await lastOperation({ directory: plc, account: from })) as Operation
  expect(services.atproto_pds!.endpoint).toBe(host.url)
}

const on =
  (method: string, lie: (request: Request) => Response | Request | null | Promise<Response | Request | null>) =>
  (nsid: string, asked: Request) => (nsid === method ? lie(asked) : null)

describe('signing in', () => {
  test('passes on that the password is wrong', async () => {
    const { from } = await someone()
    const refused = await plan(pds, from, { password: 'not the password' })
    expect(refused).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHORIZED' } } })
  })

  test('refuses an app password, with which the identity cannot be changed', async () => {
    const { from } = await someone()
    const made = await from.call('com.atproto.server.createAppPassword', { json: { name: 'mover' } })
    const refused = await plan(pds, from, { password: made.body.password })
    expect(refused).toMatchObject({ status: 403, body: { error: { code: 'FORBIDDEN' } } })
    expect(refused.body.error.message).toContain('main password')
  })

  test('asks for the code of a second factor, and passes it on', async () => {
    const { from } = await someone()
    const codes: unknown[] = []
    host.lie = on('com.atproto.server.createSession', async (asked) => {
      const { authFactorToken } = (await asked.json()) as { authFactorToken?: string }
      codes.push(authFactorToken)
      return authFactorToken === undefined
        ? Response.json({ error: 'AuthFactorTokenRequired', message: 'A code was mailed' }, { status: 401 })
        : null
    })
    expect(await plan(pds, from)).toMatchObject({ status: 401, body: { error: { code: 'AuthFactorTokenRequired' } } })
    expect(await plan(pds, from, { authFactorToken: 'ABC12-DEF34' })).toMatchObject({ status: 200 })
    expect(codes).toEqual([undefined, 'ABC12-DEF34'])
  })

  test('refuses a server that signs in somebody else', async () => {
    const [{ from }, other] = [await someone(), await someone()]
    host.lie = on('com.atproto.server.createSession', async () => Response.json((await sessionOf(other.from)).body))
    expect(await plan(pds, from)).toMatchObject({ status: 503 })
  })

  test('refuses a server that vouches for somebody else', async () => {
    const [{ from, name }, other] = [await someone(), await someone()]
    host.lie = on('com.atproto.server.getServiceAuth', async (asked) => {
      const { search } = new URL(asked.url)
      return Response.json((await other.from.call(`com.atproto.server.getServiceAuth${search}`)).body)
    })
    expect(await thrownBy(begin(pds, from, `${name}-here`))).toThrow('answered 401')
    expect(await pds.count('account', { did: from.did })).toBe(0)
  })

  test('refuses an account that is here already, and one that does not exist', async () => {
    const here = await createAccount(pds, `here${names++}`)
    expect(await plan(pds, here)).toMatchObject({ status: 400, body: { error: { code: 'InvalidRequest' } } })
    expect(await plan(pds, { ...here, did: 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa' })).toMatchObject({ status: 400 })
  })
})

const sessionOf = (from: TestAccount) =>
  request(`${old.url}/xrpc/com.atproto.server.createSession`, {
    json: { identifier: from.did, password: from.password },
  })

const archiveUrl = ({ did }: TestAccount) => `${old.url}/xrpc/com.atproto.sync.getRepo?did=${did}`

describe('the repository', () => {
  const lies: Record<string, (from: TestAccount, other: TestAccount) => Promise<Response> | Response> = {
    'is the one of another account': async (_, other) => new Response(await (await fetch(archiveUrl(other))).bytes()),
    'is no archive': () => new Response('there is nothing here'),
    'never ends': () => new Response(endless()),
    'is too long': () => new Response(new Uint8Array(2 * MAX_BYTES)),
    'is refused without an end': () => new Response(endless(), { status: 400 }),
    'is not given away': () => Response.json({ error: 'RepoNotFound', message: 'no such repo' }, { status: 400 }),
  }
  for (const [what, lie] of Object.entries(lies))
    test(`that ${what} is refused, and taken once the old server tells the truth`, async () => {
      const [{ from, name }, other] = [await someone(), await someone()]
      host.lie = on('com.atproto.sync.getRepo', () => lie(from, other.from))
      const moving = await begin(pds, from, `${name}-here`)
      await patiently()
      expect(await moveOf(pds, moving)).toMatchObject({ stage: 'repository', needs: 'decision', records: 0 })
      await expectUntouched(from)

      host.lie = () => null
      expect((await answer(pds, moving, { retry: true })).status).toBe(200)
      await pds.runSteps()
      expect(await moveOf(pds, moving)).toMatchObject({ needs: 'signature', records: 1, fault: null })
    })

  test('of which the beginning is no archive is not received any further', async () => {
    const { from, name } = await someone()
    let [sent, left] = [0, 0]
    host.lie = on('com.atproto.sync.getRepo', () => {
      sent++
      const start = (controller: ReadableStreamDefaultController<Uint8Array>) =>
        controller.enqueue(new Uint8Array(64).fill(0xff))
      return new Response(new ReadableStream({ start, cancel: () => void left++ }))
    })
    const { accessJwt } = await begin(pds, from, `${name}-here`)
    await pds.runSteps()
    expect(sent).toBeGreaterThan(0)
    await until(() => left === sent)
    await request(`${pds.url}/v1/move-in`, { method: 'DELETE', headers: bearer(accessJwt) })
  })

  test('that never arrives delays no other move', async () => {
    const slow = [await someone(), await someone(), await someone(), await someone(), await someone()]
    const dids = new Set(slow.map(({ from }) => from.did))
    const arriving: ReadableStreamDefaultController<Uint8Array>[] = []
    const trickle = () =>
      new ReadableStream<Uint8Array>({
        start(controller) {
          // The length of a header that does not follow.
          controller.enqueue(new Uint8Array([58]))
          arriving.push(controller)
        },
      })
    host.lie = on('com.atproto.sync.getRepo', (asked) =>
      dids.has(new URL(asked.url).searchParams.get('did')!) ? new Response(trickle()) : null,
    )
    const waiting: TestAccount[] = []
    for (const { from, name } of slow) waiting.push(await begin(pds, from, `${name}-here`))
    await until(() => arriving.length === slow.length)
    const { from, name } = await someone()
    const moving = await begin(pds, from, `${name}-here`)
    await until(async () => {
      const { needs, fault } = await moveOf(pds, moving)
      return needs !== null || fault !== null
    })
    expect(await moveOf(pds, moving)).toMatchObject({ needs: 'signature', records: 1, fault: null })
    for (const { accessJwt } of waiting)
      await request(`${pds.url}/v1/move-in`, { method: 'DELETE', headers: bearer(accessJwt) })
    for (const controller of arriving) controller.close()
  })

  test('that ends in the middle is fetched again', async () => {
    const { from, name } = await someone()
    const archive = await fetch(archiveUrl(from))
    const half = new Uint8Array(await archive.arrayBuffer()).slice(0, 300)
    let tries = 0
    host.lie = on('com.atproto.sync.getRepo', () => (tries++ === 0 ? new Response(half) : null))
    const moving = await begin(pds, from, `${name}-here`)
    await patiently()
    expect(await moveOf(pds, moving)).toMatchObject({ needs: 'signature', records: 1 })
    expect(tries).toBe(2)
  })

  test('is waited for as long as the old server asks, and while it is out of order', async () => {
    const { from, name } = await someone()
    const fates = [
      Response.json({ error: 'RateLimitExceeded' }, { status: 429, headers: { 'retry-after': '600' } }),
      new Response('out of order', { status: 502 }),
    ]
    host.lie = on('com.atproto.sync.getRepo', () => fates.shift() ?? null)
    const moving = await begin(pds, from, `${name}-here`)
    await pds.runSteps()
    expect((await moveOf(pds, moving)).fault).toContain('tries again by itself')
    clock.advance({ secs: 500 })
    await pds.runSteps()
    expect(fates).toHaveLength(1)
    clock.advance({ secs: 100 })
    await patiently()
    expect(await moveOf(pds, moving)).toMatchObject({ needs: 'signature', fault: null })
  })
})

describe('a blob', () => {
  const lies: Record<string, () => Response> = {
    'has other bytes': () => new Response(new Uint8Array(500)),
    'never ends': () => new Response(endless()),
    'is too long': () => new Response(new Uint8Array(2 * MAX_BYTES)),
    'is missing': () => Response.json({ error: 'BlobNotFound', message: 'Blob not found' }, { status: 400 }),
  }
  for (const [what, lie] of Object.entries(lies))
    test(`that ${what} is counted as lost, and fetched again when asked`, async () => {
      const { from, name } = await someone()
      host.lie = on('com.atproto.sync.getBlob', lie)
      const moving = await begin(pds, from, `${name}-here`)
      await patiently()
      expect(await moveOf(pds, moving)).toMatchObject({
        needs: 'signature',
        blobs: { expected: 1, stored: 0, lost: 1 },
      })

      host.lie = () => null
      expect((await answer(pds, moving, { retry: true })).status).toBe(200)
      await pds.runSteps()
      expect(await moveOf(pds, moving)).toMatchObject({
        needs: 'signature',
        blobs: { expected: 1, stored: 1, lost: 0 },
      })
    })
})

test('many damaged blobs do not keep a move from going on for days', async () => {
  const { from, name } = await someone()
  const count = 20
  for (let number = 1; number <= count; number++) {
    const uploaded = await from.call('com.atproto.repo.uploadBlob', {
      method: 'POST',
      body: new Uint8Array(100).fill(number),
      headers: { 'content-type': 'image/png' },
    })
    const record = { $type: 'com.example.picture', picture: uploaded.body.blob }
    await from.call('com.atproto.repo.createRecord', {
      json: { repo: from.did, collection: 'com.example.picture', record },
    })
  }
  host.lie = on('com.atproto.sync.getBlob', () => new Response(new Uint8Array(500)))
  const moving = await begin(pds, from, `${name}-here`)
  const began = clock.now()
  await until(async () => {
    await pds.runSteps()
    clock.advance({ secs: 5 })
    return (await moveOf(pds, moving)).needs !== null || clock.now() - began > 3_600_000
  })
  expect(await moveOf(pds, moving)).toMatchObject({ needs: 'signature', blobs: { stored: 0, lost: count + 1 } })
})

describe('the identity', () => {
  async function waiting(input: object = {}, wishes: object = {}) {
    const { from, name } = await someone(input)
    const moving = await begin(pds, from, `${name}-here`, wishes)
    await pds.runSteps()
    expect(await moveOf(pds, moving)).toMatchObject({ needs: 'signature' })
    return { from, moving }
  }

  test('is not changed by an operation that says more than was agreed', async () => {
    const { from, moving } = await waiting()
    const attacker = deviceKey()
    host.lie = on('com.atproto.identity.signPlcOperation', async (asked) => {
      const given = (await asked.json()) as { rotationKeys: string[] }
      const body = JSON.stringify({ ...given, rotationKeys: [attacker.did, ...given.rotationKeys] })
      const headers = new Headers(asked.headers)
      headers.delete('content-length')
      return new Request(asked.url, { method: 'POST', headers, body })
    })
    expect(await thrownBy(giveMailedCode(pds, moving, old, from.email))).toThrow('was answered 400')
    expect(await moveOf(pds, moving)).toMatchObject({ needs: 'signature' })
    await expectUntouched(from)
  })

  test('is agreed on also if the old server says why it mails no code with a NUL', async () => {
    const { from, name } = await someone()
    host.lie = on('com.atproto.identity.requestPlcOperationSignature', () =>
      Response.json({ error: 'Forbidden', message: 'Not\u0000today' }, { status: 403 }),
    )
    const moving = await begin(pds, from, `${name}-here`)
    await pds.runSteps()
    expect(await moveOf(pds, moving)).toMatchObject({
      needs: 'signature',
      fault: 'The old server mails no code: Not today',
    })
  })

  test('is not changed by a wrong code, and the move goes on with the right one', async () => {
    const { from, moving } = await waiting()
    const refused = await giveCode(pds, moving, 'AAAAA-BBBBB')
    expect(refused).toMatchObject({ status: 400, body: { error: { code: 'INVALID_TOKEN' } } })
    await giveMailedCode(pds, moving, old, from.email)
    expect(await moveOf(pds, moving)).toMatchObject({ stage: 'done' })
  })

  test("names the holder's recovery key first, and keeps the one that it has", async () => {
    const [kept, added] = [deviceKey(), deviceKey()]
    const { from, moving } = await waiting({ recoveryKey: kept.did }, { recoveryKey: added.did })
    await giveMailedCode(pds, moving, old, from.email)
    const { rotationKeys } = (await lastOperation({ directory: plc, account: from })) as Operation
    expect(rotationKeys.slice(0, 2)).toEqual([added.did, kept.did])
    expect(rotationKeys).toHaveLength(3)
  })

  test('is changed although the directory loses requests and answers', async () => {
    const { from, moving } = await waiting()
    const fates: Fate[] = ['question lost', 'answer lost']
    line.fate = ({ method }) => (method === 'POST' ? (fates.shift() ?? 'answered') : 'answered')
    await giveMailedCode(pds, moving, old, from.email)
    await patiently()
    expect(await moveOf(pds, moving)).toMatchObject({ stage: 'done', fault: null })
    expect(fates).toEqual([])
  })

  test('that the directory does not take leaves the old account as it is, and is agreed on again', async () => {
    const { from, moving } = await waiting()
    line.fate = ({ method }) => (method === 'POST' ? 400 : 'answered')
    await giveMailedCode(pds, moving, old, from.email)
    expect(await moveOf(pds, moving)).toMatchObject({
      needs: 'signature',
      fault: expect.stringContaining('The directory refused the change of your identity'),
    })
    await expectUntouched(from)
    line.fate = () => 'answered'
    const given = await giveCode(pds, moving, await lastCode(old, from.email, 2))
    expect(given.status).toBe(200)
    await pds.runSteps()
    expect(await moveOf(pds, moving)).toMatchObject({ stage: 'done' })
  })

  test('can be changed with a key of the holder instead of a code', async () => {
    const device = deviceKey()
    const { from, moving } = await waiting({ recoveryKey: device.did })
    const { operation } = await moveOf(pds, moving)
    const stranger = await answer(pds, moving, { operation: signOperation(operation, deviceKey().key) })
    expect(stranger).toMatchObject({ status: 400 })
    expect((await answer(pds, moving, { operation: signOperation(operation, device.key) })).status).toBe(200)
    await pds.runSteps()
    expect(await moveOf(pds, moving)).toMatchObject({ stage: 'done', fault: null })
    const status = await request(`${old.url}/xrpc/com.atproto.sync.getRepoStatus?did=${from.did}`)
    expect(status.body).toMatchObject({ active: false })
  })

  test('that the directory is told of, with the old server gone, leaves the old account to its holder', async () => {
    const { from, moving } = await waiting()
    host.lie = on('com.atproto.server.deactivateAccount', () => new Response('gone', { status: 502 }))
    await giveMailedCode(pds, moving, old, from.email)
    const here = await request(`${pds.url}/xrpc/com.atproto.sync.getRepoStatus?did=${from.did}`)
    expect(here.body).toMatchObject({ active: true })
    expect(await moveOf(pds, moving)).toMatchObject({ stage: 'farewell' })
    clock.advance({ days: 2 })
    await pds.runSteps()
    const again = await logIn(pds, moving, moving.password)
    const { stage, fault } = await moveOf(pds, again)
    expect(stage).toBe('done')
    expect(fault).toContain('deactivate it yourself')
  })

  test('while the clock is ahead, with the old server gone, is done once the clock is right', async () => {
    clock.jump({ days: 365 })
    const { from, moving } = await waiting()
    host.lie = on('com.atproto.server.deactivateAccount', () => new Response('gone', { status: 502 }))
    await giveMailedCode(pds, moving, old, from.email)
    expect(await moveOf(pds, moving)).toMatchObject({ stage: 'farewell' })
    clock.jump({ days: -365 })
    await pds.runSteps()
    expect(await moveOf(pds, await logIn(pds, moving, moving.password))).toMatchObject({ stage: 'done' })
  })

  test('waits for another sign-in if the session at the old server has ended', async () => {
    const { from, name } = await someone()
    host.lie = (nsid) =>
      ['com.atproto.sync.getRepo', 'com.atproto.server.refreshSession'].includes(nsid)
        ? Response.json({ error: 'ExpiredToken', message: 'Token has expired' }, { status: 400 })
        : null
    const moving = await begin(pds, from, `${name}-here`)
    await pds.runSteps()
    expect(await moveOf(pds, moving)).toMatchObject({ stage: 'repository', needs: 'sign-in' })
    host.lie = () => null
    expect((await answer(pds, moving, { password: 'wrong' })).status).toBe(401)
    expect((await answer(pds, moving, { password: from.password })).status).toBe(200)
    await pds.runSteps()
    expect(await moveOf(pds, moving)).toMatchObject({ needs: 'signature' })
  })

  test('is left alone by a move that is cancelled', async () => {
    const { from, moving } = await waiting()
    const headers = bearer(moving.accessJwt)
    expect(await request(`${pds.url}/v1/move-in`, { method: 'DELETE', headers })).toMatchObject({ status: 200 })
    expect(await pds.count('account', { did: from.did })).toBe(0)
    expect(await pds.count('move_in', { did: from.did })).toBe(0)
    await expectUntouched(from)
  })

  test('cannot be left behind once it is changed', async () => {
    const { from, moving } = await waiting()
    await giveMailedCode(pds, moving, old, from.email)
    const headers = bearer(moving.accessJwt)
    expect(await request(`${pds.url}/v1/move-in`, { method: 'DELETE', headers })).toMatchObject({ status: 409 })
    expect(await pds.count('account', { did: from.did })).toBe(1)
  })
})

test('blobs that fail slowly do not keep an agreed change of the identity from being submitted', async () => {
  const { from, name } = await someone()
  for (const content of [101, 102, 103]) await addPicture(from, content)
  host.lie = on('com.atproto.sync.getBlob', () => {
    clock.advance({ secs: 20 })
    return Response.json({ error: 'BlobNotFound' }, { status: 400 })
  })
  const moving = await begin(pds, from, `${name}-here`)
  await patiently()
  expect(await moveOf(pds, moving)).toMatchObject({ needs: 'signature', blobs: { lost: 4 } })
  await addPicture(from, 104)
  await giveMailedCode(pds, moving, old, from.email)
  expect(await moveOf(pds, moving)).toMatchObject({ stage: 'done', blobs: { expected: 5, stored: 0, lost: 5 } })
})

test('what is written at the old server while the directory is out of order comes along', async () => {
  const { from, name } = await someone()
  const moving = await begin(pds, from, `${name}-here`)
  await patiently()
  line.fate = ({ method }) => (method === 'POST' ? 503 : 'answered')
  expect((await giveCode(pds, moving, await lastCode(old, from.email))).status).toBe(200)
  await pds.runSteps()
  expect(await moveOf(pds, moving)).toMatchObject({ stage: 'submission', records: 1 })
  await addPicture(from, 105)
  line.fate = () => 'answered'
  clock.advance({ secs: 3600 })
  await pds.runSteps()
  expect(await moveOf(pds, moving)).toMatchObject({ stage: 'done', records: 2, blobs: { stored: 2, lost: 0 } })
})

test('preferences that the holder has chosen here since they activated the account themselves stay', async () => {
  const device = deviceKey()
  const { from, name } = await someone({ recoveryKey: device.did })
  const preferencesOf = (nsid: string) => [{ $type: 'app.bsky.actor.defs#adultContentPref', enabled: nsid === 'here' }]
  await from.call('app.bsky.actor.putPreferences', { json: { preferences: preferencesOf('there') } })
  host.lie = on('com.atproto.sync.getBlob', () => Response.json({ error: 'BlobNotFound' }, { status: 400 }))
  const moving = await begin(pds, from, `${name}-here`)
  await patiently()
  const { operation } = await moveOf(pds, moving)
  await publish({ directory: plc, account: from }, signOperation(operation, device.key))
  expect((await moving.call('com.atproto.server.activateAccount', { method: 'POST' })).status).toBe(200)
  await moving.call('app.bsky.actor.putPreferences', { json: { preferences: preferencesOf('here') } })
  host.lie = () => null
  expect((await answer(pds, moving, { retry: true })).status).toBe(200)
  await pds.runSteps()
  expect(await moveOf(pds, moving)).toMatchObject({ stage: 'identity', blobs: { stored: 1, lost: 0 } })
  expect((await moving.call('app.bsky.actor.getPreferences')).body.preferences).toEqual(preferencesOf('here'))
})

test('what the holder writes here while the old server is asked for what is new stays', async () => {
  const device = deviceKey()
  const { from, name } = await someone({ recoveryKey: device.did })
  const moving = await begin(pds, from, `${name}-here`)
  await patiently()
  await addPicture(from, 106)
  const { operation } = await moveOf(pds, moving)
  const own = { repo: from.did, collection: 'com.example.note', rkey: 'own' }
  let isWritten = false
  host.lie = async (nsid) => {
    if (nsid !== 'com.atproto.sync.getRecord' || isWritten) return null
    isWritten = true
    await publish({ directory: plc, account: from }, signOperation(operation, device.key))
    expect((await moving.call('com.atproto.server.activateAccount', { method: 'POST' })).status).toBe(200)
    const json = { ...own, record: { note: 'written here' } }
    expect((await moving.call('com.atproto.repo.createRecord', { json })).status).toBe(200)
    return null
  }
  await giveMailedCode(pds, moving, old, from.email)
  expect(isWritten).toBe(true)
  expect((await moving.call(`com.atproto.repo.getRecord?${new URLSearchParams(own)}`)).status).toBe(200)
})

describe('an old server that is gone', () => {
  test('before the repository has come needs an archive', async () => {
    const { from, name } = await someone()
    const archive = await (await fetch(archiveUrl(from))).arrayBuffer()
    host.lie = on('com.atproto.sync.getRepo', () => new Response('gone', { status: 502 }))
    const moving = await begin(pds, from, `${name}-here`)
    await patiently()
    expect(await answer(pds, moving, { withoutOldServer: true })).toMatchObject({
      body: { move: { needs: 'archive' } },
    })
    const headers = { ...bearer(moving.accessJwt), 'content-type': 'application/vnd.ipld.car' }
    const given = await request(`${pds.url}/v1/move-in/archive`, { method: 'POST', headers, body: archive })
    expect(given).toMatchObject({ status: 200 })
    await pds.runSteps()
    expect(await moveOf(pds, moving)).toMatchObject({ needs: 'signature', records: 1, blobs: { stored: 1 } })
  })

  test('before all blobs have come loses them, and a key of the holder changes the identity', async () => {
    const device = deviceKey()
    const { from, name } = await someone({ recoveryKey: device.did })
    host.lie = (nsid) =>
      ['com.atproto.sync.getBlob', 'com.atproto.identity.getRecommendedDidCredentials'].includes(nsid)
        ? new Response('gone', { status: 502 })
        : null
    const moving = await begin(pds, from, `${name}-here`, { recoveryKey: device.did })
    await patiently()
    expect(await moveOf(pds, moving)).toMatchObject({ stage: 'blobs', needs: null })
    expect((await answer(pds, moving, { withoutOldServer: true })).status).toBe(200)
    await pds.runSteps()
    const { needs, blobs, operation } = await moveOf(pds, moving)
    expect({ needs, blobs }).toEqual({ needs: 'signature', blobs: { expected: 1, stored: 0, lost: 1 } })
    expect(await giveCode(pds, moving, 'AAAAA-BBBBB')).toMatchObject({ status: 409 })
    expect((await answer(pds, moving, { operation: signOperation(operation, device.key) })).status).toBe(200)
    await pds.runSteps()
    expect(await moveOf(pds, moving)).toMatchObject({ stage: 'done' })
  })
})

test('a move that is begun twice is the same move', async () => {
  const { from, name } = await someone()
  await begin(pds, from, `${name}-here`)
  await pds.runSteps()
  const moving = await begin(pds, from, `${name}-here`)
  await pds.runSteps()
  expect(await moveOf(pds, moving)).toMatchObject({ needs: 'signature' })
  await giveMailedCode(pds, moving, old, from.email)
  expect(await moveOf(pds, moving)).toMatchObject({ stage: 'done' })
})

test('a plan that has expired is gone, with the session in it', async () => {
  const { from } = await someone()
  const { body } = await plan(pds, from)
  clock.advance({ secs: 3601 })
  const begun = await request(`${pds.url}/v1/move-in`, {
    json: { plan: body.plan, handle: 'late.test', email: 'late@example.com', password: from.password },
  })
  expect(begun).toMatchObject({ status: 400, body: { error: { code: 'InvalidRequest' } } })
  await pds.runSweep('moves')
  expect(await pds.count('move_plan')).toBe(0)
})

describe('with an archive and a key, and no old server', () => {
  const post = (path: string, json: object) => request(`${pds.url}${path}`, { json })

  test('an account moves in once its holder has signed for its identity', async () => {
    const device = deviceKey()
    const { from, name } = await someone({ recoveryKey: device.did })
    const archive = await (await fetch(archiveUrl(from))).arrayBuffer()
    host.lie = () => new Response('gone', { status: 502 })
    const wish = { identifier: from.did, handle: `${name}-here.test`, recoveryKey: device.did }
    const offer = await post('/v1/move-in/offer', wish)
    expect(offer.status).toBe(200)
    const operation = signOperation(offer.body.operation, device.key)
    const begun = { ...wish, operation, email: `${name}-here@example.com`, password: from.password }
    const first = await post('/v1/move-in', begun)
    // Its answer may be lost.
    const { status, body } = await post('/v1/move-in', begun)
    expect({ first: first.status, status }).toEqual({ first: 200, status: 200 })
    const moving = { ...from, ...body }
    expect(await moveOf(pds, moving)).toMatchObject({ stage: 'archive', needs: 'archive' })

    const headers = { ...bearer(moving.accessJwt), 'content-type': 'application/vnd.ipld.car' }
    const given = await request(`${pds.url}/v1/move-in/archive`, { method: 'POST', headers, body: archive })
    expect(given.status).toBe(200)
    await pds.runSteps()
    expect(await moveOf(pds, moving)).toMatchObject({ stage: 'done', records: 1, blobs: { expected: 1, lost: 1 } })
    const { services, rotationKeys } = (await lastOperation({ directory: plc, account: from })) as Operation
    expect(services.atproto_pds!.endpoint).toBe(pds.url)
    expect(rotationKeys[0]).toBe(device.did)
  })

  test('an account does not move in without the signature of a rotation key', async () => {
    const [device, stranger] = [deviceKey(), deviceKey()]
    const { from, name } = await someone({ recoveryKey: device.did })
    const wish = { identifier: from.did, handle: `${name}-here.test`, recoveryKey: device.did }
    expect(await post('/v1/move-in/offer', { ...wish, recoveryKey: stranger.did })).toMatchObject({ status: 403 })
    const { operation } = (await post('/v1/move-in/offer', wish)).body
    const account = { email: `${name}-here@example.com`, password: from.password }
    const forged = { ...wish, ...account, operation: signOperation(operation, stranger.key) }
    expect(await post('/v1/move-in', forged)).toMatchObject({ status: 400 })
    const other = { ...operation, alsoKnownAs: ['at://somebody.test'] }
    const changed = { ...wish, ...account, operation: signOperation(other, device.key) }
    expect(await post('/v1/move-in', changed)).toMatchObject({ status: 400 })
    expect(await pds.count('account', { did: from.did })).toBe(0)
  })
})
