/** The operator's commands against a running server. */
import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testAuthority } from '../../support/certificates.ts'
import { createAccount, logIn, PASSWORD, xrpc } from '../../support/clients/account.ts'
import { basic, bearer, request } from '../../support/clients/http.ts'
import { startMailbox } from '../../support/clients/mailbox.ts'
import { ADMIN_TOKEN, freePort, startPds } from '../../support/servers/pds.ts'
import { runProgram, startProgram, typeAtProgram } from '../../support/servers/program.ts'
import { startUpstream } from '../../support/servers/upstream.ts'
import { walletSession } from '../../support/clients/wallet.ts'
import { atOneNode } from '../../support/turns.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false }, inviteCodeRequired: true } })

const env = { SERVICE_ADMIN_TOKEN: ADMIN_TOKEN }
const there = () => ['--url', pds.url]
const run = (words: string[], input?: string) => runProgram([...words, ...there()], env, undefined, input)
const json = async (words: string[], input?: string) => JSON.parse((await run([...words, '--json'], input)).out)

const adminCall = (nsid: string, input?: object) =>
  xrpc(pds, nsid, { headers: basic('admin', ADMIN_TOKEN), ...(input ? { json: input } : {}) })
async function invited(name: string) {
  const { body } = await adminCall('com.atproto.server.createInviteCode', { useCount: 1 })
  return createAccount(pds, name, { inviteCode: body.code })
}
const login = (identifier: string, password: string) =>
  xrpc(pds, 'com.atproto.server.createSession', { json: { identifier, password } })

describe('account create', () => {
  test('makes up a password where it is told to, and leaves neither an invite nor a session behind', async () => {
    const { code, out, err } = await run(['account', 'create', 'alice', 'alice@example.com', '--generate'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    const [, password = ''] = /^password {2}([a-z2-7]{5}(?:-[a-z2-7]{5}){3}) /m.exec(out) ?? []
    expect(await pds.rows('session')).toHaveLength(0)
    expect((await login('alice.test', password)).body).toMatchObject({
      handle: 'alice.test',
      email: 'alice@example.com',
    })
    expect(await json(['invite', 'list'])).toEqual([])
  })

  test('takes the password of standard input', async () => {
    const made = await json(
      ['account', 'create', '@Bob.test', 'bob@example.com', '--password-stdin'],
      'a password of bob\n',
    )
    expect(made).toEqual({ did: expect.stringMatching(/^did:plc:/), handle: 'bob.test', email: 'bob@example.com' })
    expect((await login('bob.test', 'a password of bob')).status).toBe(200)
  })

  test('asks for the password twice, without showing it', async () => {
    const { code, screen } = await typeAtProgram(['account', 'create', 'carol', 'carol@example.com', ...there()], env, [
      ['Password: ', 'wrong\x7f\x7f\x7f\x7f\x7fcarols pässword\r'],
      ['Once more: ', 'carols pässword\r'],
    ])
    expect(code).toBe(0)
    expect(screen).toContain('carol.test')
    expect(screen).not.toContain('ssword\r')
    expect(screen).not.toContain('wrong')
    expect((await login('carol.test', 'carols pässword')).status).toBe(200)
  })

  test('makes nothing when the two differ, when it is interrupted, and when there is nobody to ask', async () => {
    const words = ['account', 'create', 'dave', 'dave@example.com', ...there()]
    expect(
      await typeAtProgram(words, env, [
        ['Password: ', 'one password\r'],
        ['Once more: ', 'another one\r'],
      ]),
    ).toMatchObject({ code: 2, screen: expect.stringContaining('the two passwords differ') })
    expect((await typeAtProgram(words, env, [['Password: ', 'one pass\x03']])).code).toBe(130)
    expect(await runProgram(words, env)).toMatchObject({
      code: 2,
      out: '',
      err: expect.stringContaining('--password-stdin'),
    })
    expect(await runProgram([...words, '--generate', '--password-stdin'], env)).toMatchObject({
      code: 2,
      err: expect.stringContaining('cannot be used together'),
    })
    expect((await run(['account', 'show', 'dave.test'])).err).toBe('holdfast account show: No such account\n')
  })

  test('says what the server refuses, and takes its invite back', async () => {
    expect(await run(['account', 'create', 'alice', 'other@example.com', '--generate'])).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringMatching(/^holdfast account create: .*alice\.test.*\n$/),
    })
    expect(await json(['invite', 'list'])).toEqual([])
  })

  test('names the account that has the address, which a stranger is not told', async () => {
    const taken = await run(['account', 'create', 'newcomer', ' ALICE@example.com', '--generate'])
    expect(taken).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringMatching(
        /^holdfast account create: ALICE@example\.com belongs to alice\.test \(did:plc:\w+\): accounts cannot share an address\n$/,
      ),
    })
    const warned = ({ to, subject }: { to: string; subject: string }) =>
      to === 'alice@example.com' && subject.startsWith('You already')
    expect(pds.mails.filter(warned)).toEqual([])
    const { body: invite } = await adminCall('com.atproto.server.createInviteCode', { useCount: 1 })
    const stranger = await xrpc(pds, 'com.atproto.server.createAccount', {
      json: { handle: 'newcomer.test', email: 'alice@example.com', password: PASSWORD, inviteCode: invite.code },
    })
    expect(stranger).toMatchObject({ status: 400, body: { message: expect.not.stringMatching(/alice|taken|account/) } })
    await adminCall('com.atproto.admin.disableInviteCodes', { codes: [invite.code] })
  })
})

test('an account is found by handle, DID and address', async () => {
  const erin = await invited('erin')
  for (const name of ['erin', 'erin.test', '@Erin.Test', erin.did, 'ERIN@example.com'])
    expect(await json(['account', 'show', name])).toMatchObject({
      did: erin.did,
      handle: 'erin.test',
      email: 'erin@example.com',
      status: 'active',
      hasPassword: true,
      emailConfirmedAt: null,
    })
  const { code, out } = await run(['account', 'show', 'erin.test'])
  expect(code).toBe(0)
  expect(out).toMatch(
    /^handle +erin\.test\ndid +did:plc:\w+\naddress +erin@example\.com \(not confirmed\)\nstatus +active\n/,
  )
})

test('accounts are listed over all pages, narrowed by text, status and number', async () => {
  for (let i = 0; i < 101; i++)
    await pds.plant('account', {
      did: `did:plc:many${i}`,
      handle: `many${i}.test`,
      signing_key: 'k',
      signing_key_wrapped: 'w',
      created_at: 1,
    })
  const listed = await json(['account', 'list'])
  expect(listed.length).toBeGreaterThan(101)
  expect(new Set(listed.map(({ did }: { did: string }) => did)).size).toBe(listed.length)
  expect(await json(['account', 'list', '--search', 'many10', '--limit', '1'])).toEqual([
    expect.objectContaining({ handle: 'many10.test' }),
  ])
  const { out } = await run(['account', 'list', '--search', 'many100'])
  expect(out).toBe(
    'HANDLE        DID              STATUS  BLOBS  CREATED           FLAGS\nmany100.test  did:plc:many100  active  0 B    1970-01-01 00:00\n',
  )
  expect(await run(['account', 'list', '--status', 'asleep'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('status must be one of'),
  })
  for (let i = 0; i < 101; i++) await pds.lose('account', { did: `did:plc:many${i}` })
})

test('names of strangers cannot command the terminal, nor make lines of their own', async () => {
  await pds.plant('account', {
    did: 'did:plc:nasty',
    handle: 'na\u001b[2J\nsty\u202e\u009b.test',
    email: 'nasty@example.com',
    signing_key: 'k',
    signing_key_wrapped: 'w',
    created_at: 1,
  })
  const { out } = await run(['account', 'list', '--search', 'plc:nasty'])
  expect(out.split('\n')[1]).toStartWith('na\\u001b[2J sty\\u202e\\u009b.test  did:plc:nasty')
  const raw = (await run(['account', 'list', '--search', 'plc:nasty', '--json'])).out
  expect(raw).not.toMatch(/[^\P{Cc}\n]|\p{Cf}/u)
  expect(JSON.parse(raw)[0].handle).toBe('na\u001b[2J\nsty\u202e\u009b.test')
  const asked = await typeAtProgram(['account', 'delete', 'did:plc:nasty', ...there()], env, [
    ['to continue: ', 'no\r'],
  ])
  expect(asked.code).toBe(1)
  expect(asked.screen).toContain('na\\u001b[2J')
  expect(asked.screen).not.toContain('na\u001b[2J')
  await pds.lose('account', { did: 'did:plc:nasty' })
})

test('usage tells records, blobs and quota', async () => {
  const frank = await invited('frank')
  await frank.call('com.atproto.repo.createRecord', {
    json: { repo: frank.did, collection: 'org.example.note', record: { text: 'counted' } },
  })
  expect(await json(['account', 'usage', 'frank.test'])).toMatchObject({
    did: frank.did,
    recordsCount: 1,
    blobCount: 0,
    quotaBytes: pds.ctx.config.blobs.maxStoragePerAccount,
  })
  expect((await run(['account', 'usage', 'frank.test'])).out).toMatch(/^records +1$/m)
})

test('quotas of all accounts and of one are shown, set and taken back', async () => {
  expect((await run(['quota', 'show'])).out).toMatch(/^records +no limit \(default\)\nblobs +1\.1 GB \(default\)$/m)
  expect(await json(['quota', 'set', '--records', '1000', '--blobs', '2GB'])).toEqual({
    quota: { records: 1000, blobBytes: 2_000_000_000 },
    own: { records: 1000, blobBytes: 2_000_000_000 },
  })
  const { out } = await run(['quota', 'set', 'frank.test', '--blobs', 'none'])
  expect(out).toContain('frank.test')
  expect(out).toMatch(/^records +1 of 1000 \(default\)\nblobs +0 B of no limit$/m)
  expect((await json(['quota', 'set', 'frank.test', '--records', '5'])).own).toEqual({ records: 5, blobBytes: 0 })
  expect((await json(['quota', 'show', 'frank.test'])).quota).toEqual({ records: 5, blobBytes: 0 })
  expect((await json(['quota', 'set', '--records', 'default', '--blobs', 'default'])).own).toEqual({
    records: null,
    blobBytes: null,
  })
  for (const words of [[], ['--records', '0'], ['--records', '5GB'], ['--blobs', '5 furlongs']])
    expect((await run(['quota', 'set', ...words])).code).toBe(2)
  expect((await run(['quota', 'set', '--blobs', '2 pounds'])).err).toContain('as in 500000000, 500MB or 2GB')
  expect((await json(['quota', 'set', 'frank.test', '--blobs', '2gb'])).own).toEqual({
    records: 5,
    blobBytes: 2_000_000_000,
  })
})

test('what is not there, or not turned on, is not taken for nothing', async () => {
  for (const [words, code, says] of [
    [['step', 'list', 'mails'], 1, 'there is no step kind named mails; the kinds are crawl, mail,'],
    [['record', 'takedown', 'frank.test'], 2, 'name the record as at://ACCOUNT/COLLECTION/KEY, or by its link'],
    [['record', 'takedown', 'https://bsky.app/profile/frank.test/post/none'], 1, 'Subject not found'],
    [['record', 'restore', 'at://frank.test'], 2, 'name the record as at://ACCOUNT/COLLECTION/KEY'],
    [['push', 'key', 'rotate'], 1, 'is not turned on in its configuration'],
  ] as const)
    expect([words, await run([...words])]).toEqual([words, { code, out: '', err: expect.stringContaining(says) }])
})

describe('account reset-password', () => {
  test('sets a password that is made up, typed or read', async () => {
    const grace = await invited('grace')
    const { password } = await json(['account', 'reset-password', 'grace@example.com', '--generate'])
    expect((await login(grace.did, password)).status).toBe(200)
    expect((await run(['account', 'reset-password', 'grace.test', '--password-stdin'], 'from the input\n')).code).toBe(
      0,
    )
    expect((await login(grace.did, 'from the input')).status).toBe(200)
    expect((await login(grace.did, PASSWORD)).status).toBe(401)
  })

  test('mails or prints a code instead', async () => {
    const heidi = await invited('heidi')
    const { code, out } = await run(['account', 'reset-password', 'heidi.test', '--mail'])
    expect({ code, out }).toEqual({ code: 0, out: 'A reset code was mailed to heidi@example.com.\n' })
    expect(pds.mails.at(-1)).toMatchObject({ to: 'heidi@example.com' })
    const printed = await json(['account', 'reset-password', 'heidi.test', '--code'])
    expect(
      (
        await xrpc(pds, 'com.atproto.server.resetPassword', {
          json: { token: printed.code, password: 'after the code' },
        })
      ).status,
    ).toBe(200)
    expect((await logIn(pds, heidi, 'after the code')).did).toBe(heidi.did)
    expect(await run(['account', 'reset-password', 'heidi.test', '--mail', '--code'])).toMatchObject({
      code: 2,
      err: expect.stringContaining('cannot be used together'),
    })
  })
})

test('an account is taken down and restored', async () => {
  const ivan = await invited('ivan')
  expect((await run(['account', 'takedown', 'ivan.test', '--ref', 'case 7'])).out).toBe(
    `ivan.test (${ivan.did}) is taken down.\n`,
  )
  expect(await json(['account', 'show', 'ivan.test'])).toMatchObject({ status: 'takendown', takedownRef: 'case 7' })
  expect(await json(['account', 'list', '--status', 'takendown'])).toMatchObject([{ handle: 'ivan.test' }])
  expect(await json(['account', 'restore', ivan.did])).toEqual({ did: ivan.did, handle: 'ivan.test', status: 'active' })
})

test('an account is deleted once its handle is typed, or with --yes', async () => {
  const judy = await invited('judy')
  const words = ['account', 'delete', 'judy@example.com']
  expect(await run(words)).toMatchObject({ code: 2, err: expect.stringContaining('add --yes') })
  expect(await typeAtProgram([...words, ...there()], env, [['Type judy.test to continue: ', 'judy\r']])).toMatchObject({
    code: 1,
    screen: expect.stringContaining('nothing was done'),
  })
  expect((await typeAtProgram([...words, ...there()], env, [['Type judy.test to continue: ', '\x04']])).code).toBe(130)
  expect((await run(['account', 'show', judy.did])).code).toBe(0)
  expect(
    (await typeAtProgram([...words, ...there()], env, [['Type judy.test to continue: ', 'judy.test\r']])).code,
  ).toBe(0)
  expect((await run(['account', 'show', judy.did])).code).toBe(1)
  const kim = await invited('kim')
  expect(await json(['account', 'delete', 'kim.test', '--yes'])).toEqual({ did: kim.did, handle: 'kim.test' })
  expect(await run(['account', 'delete', 'kim.test', '--yes'])).toMatchObject({
    code: 1,
    err: 'holdfast account delete: No such account\n',
  })
})

test('invites are made, listed, given to an account and disabled', async () => {
  const lena = await invited('lena')
  const codes = (await run(['invite', 'create', '--count', '2', '--uses', '3'])).out.trim().split('\n')
  const [own] = await json(['invite', 'create', '--for', 'lena.test'])
  expect(codes).toHaveLength(2)
  const listed = await json(['invite', 'list'])
  expect(listed).toHaveLength(3)
  expect(listed).toContainEqual(expect.objectContaining({ code: own, forAccount: lena.did, available: 1 }))
  expect((await run(['invite', 'disable', codes[0]!])).out).toBe(`${codes[0]} is disabled.\n`)
  const { out } = await run(['invite', 'list', '--all'])
  expect(out).toMatch(new RegExp(`^${codes[0]}  0 of 3 +disabled +admin `, 'm'))
  expect(out).toMatch(new RegExp(`^${codes[1]}  0 of 3 +open +admin `, 'm'))
  expect(out).toMatch(/ 1 of 1 +used up /)
  expect(await json(['invite', 'list'])).toHaveLength(2)
  expect(await run(['invite', 'disable', 'nothing'])).toMatchObject({
    code: 1,
    err: 'holdfast invite disable: there is no invite code nothing\n',
  })
})

test('transfers to other devices are listed and cancelled', async () => {
  const uma = await invited('uma')
  const begin = async () =>
    request(`${pds.url}/v1/transfer/initiate`, { method: 'POST', headers: bearer(await walletSession(pds, uma.did)) })
  const { transferId, transferCode } = (await begin()).body
  await request(`${pds.url}/v1/transfer/accept`, {
    json: { transferCode, devicePublicKey: 'zKey', platform: 'android' },
  })
  const { out } = await run(['account', 'transfers'])
  expect(out).toMatch(new RegExp(`^${transferId}  uma.test +accepted +.* android$`, 'm'))
  expect(out).not.toContain(transferCode)
  expect((await run(['account', 'cancel-transfer', transferId])).out).toBe(
    'The transfer is cancelled. The device that had accepted it is signed out.\n',
  )
  expect(await json(['account', 'transfers'])).toEqual([])
  expect(await run(['account', 'cancel-transfer', 'nothing'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('No such transfer'),
  })
})

test('the relay is asked to come, and what it knows', async () => {
  await using relay = startUpstream()
  relay.answer('com.atproto.sync.getHostStatus', () =>
    Response.json({ hostname: 'pds', status: 'active', seq: 0, accountCount: 7 }),
  )
  await using other = await startPds({ crawlers: { urls: [relay.url] }, publicUrl: 'https://pds.example.com' })
  const ask = (words: string[]) => runProgram([...words, '--url', `http://localhost:${other.ctx.config.port}`], env)
  expect(await ask(['relay', 'status'])).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^relay +localhost:\d+\nreachable +yes\nstatus +active\naccounts +7\n/),
  })
  expect(await ask(['relay', 'request-crawl', '--json'])).toMatchObject({
    code: 0,
    out: expect.stringContaining('"accepted": 1'),
  })
  expect(relay.received.map(({ path }) => path)).toContain('/xrpc/com.atproto.sync.requestCrawl')
  expect(await run(['relay', 'request-crawl'])).toMatchObject({ code: 1, err: expect.stringContaining('no crawler') })
})

test('the way to the network is shown link by link, and the exit status says whether one is broken', async () => {
  await using relay = startUpstream()
  relay.answer('com.atproto.sync.getHostStatus', () => Response.json({ status: 'banned' }))
  await using other = await startPds({ crawlers: { urls: [relay.url] }, publicUrl: 'https://pds.example.com' })
  const ask = (words: string[]) =>
    runProgram(['network', ...words, '--url', `http://localhost:${other.ctx.config.port}`], env)
  const banned = await ask([])
  expect(banned.code).toBe(1)
  expect(banned.out).toMatch(/^FAULT +relay localhost:\d+ +it reports the status "banned"/m)
  expect(banned.out).toMatch(/^ +→ ask the operator of the relay/m)
  relay.answer('com.atproto.sync.getHostStatus', () => Response.json({ status: 'active' }))
  expect((await ask([])).code).toBe(0)
  const alice = await createAccount(other, 'alice')
  const [name] = alice.handle.split('.') as [string]
  const { account } = JSON.parse((await ask(['--account', name, '--json'])).out)
  expect(account).toMatchObject({
    did: alice.did,
    links: expect.arrayContaining([expect.objectContaining({ name: 'identity' })]),
  })
  expect(await ask(['--account', 'someone.else.example'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('No such account'),
  })
})

test('alerts are listed while they last, and the recipients can be tried', async () => {
  expect(await run(['alerts'])).toMatchObject({ code: 0, out: expect.stringContaining('Alerts are off') })
  expect(await run(['alerts', '--test'])).toMatchObject({ code: 1, err: expect.stringContaining('alerts.mail_to') })
  await using other = await startPds({ alerts: { mailTo: ['me@example.org'], diskFreeBytes: Number.MAX_SAFE_INTEGER } })
  const ask = (...words: string[]) => runProgram(['alerts', ...words, '--url', other.url], env)
  expect(await ask()).toMatchObject({ code: 0, out: 'There has been no alert.\n' })
  await other.runSweep('alerts')
  expect(await ask()).toMatchObject({
    code: 1,
    out: expect.stringMatching(/^disk-nearly-full +.*\bon +\d{4}-\d\d-\d\d/m),
  })
  expect(await ask('--test')).toMatchObject({ code: 0, out: 'me@example.org: sent\n' })
  expect(other.mails.at(-1)).toMatchObject({ to: 'me@example.org', subject: expect.stringContaining('a test') })
})

describe('the server that is meant', () => {
  test('is that of the configuration, with its token', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-operating-'))
    const own = { SERVICE_ADMIN_TOKEN: 'a short token of this server', SERVICE_PORT: String(await freePort()) }
    await using server = await startProgram(['dev'], own, folder)
    expect(await runProgram(['account', 'create', 'mia', 'mia@example.com', '--generate', '--dev'], own)).toMatchObject(
      {
        code: 0,
        err: '',
      },
    )
    expect(JSON.parse((await runProgram(['account', 'list', '--dev', '--json'], own)).out)).toMatchObject([
      { handle: 'mia.test' },
    ])
    const { SERVICE_ADMIN_TOKEN: _, ...without } = own
    expect(await runProgram(['account', 'list', '--dev'], without)).toMatchObject({
      code: 1,
      err: expect.stringContaining('set admin_token'),
    })
    writeFileSync(join(folder, 'token'), `${own.SERVICE_ADMIN_TOKEN}\n`)
    expect(
      (await runProgram(['account', 'list', '--url', server.url, '--token-file', join(folder, 'token')])).code,
    ).toBe(0)
    server.signal('SIGTERM')
    await server.exited
    expect(await runProgram(['account', 'list', '--dev'], own)).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringContaining('no server is listening at http://127.0.0.1:'),
    })
    rmSync(folder, { recursive: true, force: true })
  })

  test('gets the token of a file, of standard input before the password, or none at all', async () => {
    const words = ['account', 'create', 'nora', 'nora@example.com', '--password-stdin', '--token-file', '-', ...there()]
    expect(await runProgram(words, {}, undefined, `${ADMIN_TOKEN}\na password of nora\n`)).toMatchObject({
      code: 0,
      err: '',
    })
    expect((await login('nora.test', 'a password of nora')).status).toBe(200)
    expect(await runProgram(['account', 'list', ...there()])).toMatchObject({
      code: 1,
      err: expect.stringContaining('is required, in SERVICE_ADMIN_TOKEN or with --token-file'),
    })
    expect(await runProgram(['account', 'list', ...there()], { SERVICE_ADMIN_TOKEN: 'wrong' })).toMatchObject({
      code: 1,
      err: expect.stringContaining('does not accept this admin token'),
    })
    expect(await runProgram(['account', 'list', '--url', 'http://pds.example.com'], env)).toMatchObject({
      code: 2,
      err: expect.stringContaining('use https'),
    })
  })

  test('is spoken to directly, whatever proxy the environment names', async () => {
    let asked = 0
    using proxy = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => Response.json({ asked: asked++ }) })
    const proxied = {
      ...env,
      HTTP_PROXY: `http://127.0.0.1:${proxy.port}`,
      http_proxy: `http://127.0.0.1:${proxy.port}`,
    }
    expect(await runProgram(['invite', 'list', '--all', ...there()], proxied)).toMatchObject({
      code: 0,
      out: expect.stringContaining('CODE'),
    })
    expect(asked).toBe(0)
  })

  test('a command follows no redirection of the server elsewhere', async () => {
    let asked = 0
    using elsewhere = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: () => Response.json({ accounts: [], asked: asked++ }),
    })
    using moved = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: () => Response.redirect(`http://127.0.0.1:${elsewhere.port}/`, 307),
    })
    expect(await runProgram(['account', 'list', '--url', `http://127.0.0.1:${moved.port}`], env)).toMatchObject({
      code: 1,
      err: expect.stringContaining('307'),
    })
    expect(asked).toBe(0)
  })
})

test('an error of the server is told with the id of its lines in the log', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-sweep-'))
  await using own = await startPds({ backup: { destination: folder, intervalSecs: 86_400 } })
  using _ = atOneNode(own, 'each node keeps the failed requests that it got')
  const on = (...words: string[]) => runProgram([...words, '--url', own.url], env)
  // The backup is a process of its own, which needs the whole configuration: here it has none.
  const { code, err } = await on('sweep', 'backup')
  expect(code).toBe(1)
  const [, id = ''] = /^holdfast sweep: Internal Server Error: the log says why.* requestId (\S+)\n$/.exec(err) ?? []
  expect((await on('requests', id)).out).toContain('POST /v1/admin/sweeps/:name/run')
  rmSync(folder, { recursive: true })
})

describe('mail', () => {
  const TO = 'operator@example.com'
  const toldBy = async (own: { url: string }, ann: { did: string }) => {
    const on = (...words: string[]) => runProgram([...words, '--url', own.url], env)
    return [await on('account', 'mail', ann.did, 'Hello'), await on('alerts', '--test')]
  }

  test('that was only written to the log is reported as not sent', async () => {
    await using own = await startPds({ alerts: { mailTo: [TO] } }, { mailer: undefined })
    const ann = await createAccount(own, 'ann')
    const mailed = await xrpc(own, 'com.atproto.admin.sendEmail', {
      headers: basic('admin', ADMIN_TOKEN),
      json: { recipientDid: ann.did, senderDid: ann.did, content: 'Hello' },
    })
    expect(mailed).toMatchObject({ status: 200, body: { sent: true, logged: true } })
    const sent = [await runProgram(['mail', 'test', TO, '--dev'], {}), ...(await toldBy(own, ann))]
    for (const { code, out, err } of sent) {
      expect(code).toBe(1)
      expect(out + err).toContain('email.provider is "log", so')
    }
  })

  test('that cannot be sent is said with its reason and what to do, by the command and by the doctor', async () => {
    await using open = await startMailbox({ tls: 'none', unknown: [TO] })
    await using closed = await startMailbox({ tls: 'implicit', login: { user: 'pds', password: 'right' } })
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-mail-'))
    const authority = join(folder, 'authority.pem')
    writeFileSync(authority, testAuthority)
    const settings = (changes: Record<string, string>) => ({
      SERVICE_EMAIL_PROVIDER: 'smtp',
      SERVICE_EMAIL_FROM: 'pds@example.org',
      SERVICE_EMAIL_SMTP_HOST: 'localhost',
      SERVICE_EMAIL_SMTP_PORT: String(open.port),
      SERVICE_EMAIL_SMTP_TLS: 'none',
      ...changes,
    })
    const encrypted = { SERVICE_EMAIL_SMTP_PORT: String(closed.port), SERVICE_EMAIL_SMTP_TLS: 'implicit' }
    const wrongLogin = { SERVICE_EMAIL_SMTP_USERNAME: 'pds', SERVICE_EMAIL_SMTP_PASSWORD: 'wrong' }
    const wrong: [changes: Record<string, string>, said: RegExp, by: 'both' | 'command'][] = [
      [{ SERVICE_EMAIL_SMTP_PORT: String(await freePort()) }, /ECONNREFUSED.* check email\.smtp_host and/s, 'both'],
      [{ SERVICE_EMAIL_SMTP_TLS: 'implicit' }, /set email\.smtp_tls to implicit for port 465/, 'both'],
      [{ SERVICE_EMAIL_SMTP_TLS: 'starttls' }, /set email\.smtp_tls to implicit for port 465/, 'both'],
      [encrypted, /set email\.smtp_host to the name in the certificate/, 'both'],
      [
        { ...encrypted, ...wrongLogin, NODE_EXTRA_CA_CERTS: authority },
        /check email\.smtp_username and email\.smtp_password/,
        'both',
      ],
      [{}, /there is nobody of this name.* may send as email\.from/, 'command'],
    ]
    for (const [changes, said, by] of wrong) {
      const { code, err } = await runProgram(['mail', 'test', TO, '--dev'], settings(changes))
      expect([changes, code]).toEqual([changes, 1])
      expect(err).toMatch(said)
      expect(err).not.toContain('    at ')
      if (by === 'command') continue
      const { out } = await runProgram(['doctor', '--dev'], { ...settings(changes), SERVICE_PORT: '1' })
      expect(/^.* mail .*\n.*/m.exec(out)![0]).toMatch(said)
    }
    expect(await runProgram(['mail', 'test', 'operator', '--dev'], settings({}))).toMatchObject({ code: 2 })
    rmSync(folder, { recursive: true })
  })

  test('that is refused permanently is not said to be sent later', async () => {
    const email = 'ann@example.com'
    await using box = await startMailbox({ tls: 'none', unknown: [TO, email] })
    const provider = { from: 'pds@example.org', smtpHost: 'localhost', smtpPort: box.port, smtpTls: 'none' } as const
    await using own = await startPds(
      { alerts: { mailTo: [TO] }, email: { provider: 'smtp', ...provider } },
      { mailer: undefined },
    )
    const [mailed, tested] = await toldBy(own, await createAccount(own, 'ann', { email }))
    expect(mailed).toMatchObject({ code: 1, err: expect.stringContaining('The mail was refused permanently') })
    expect(tested).toMatchObject({ code: 1, out: `${TO}: refused: the log says why, and the server will not retry\n` })
  })
})
