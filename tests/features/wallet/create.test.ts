/** The ceremony by which `holdfast wallet create` makes an account, and where it may be cut off. */
import { beforeEach, describe, expect, test } from 'bun:test'
import decodeQR from 'qr/decode.js'
import { checkAuditLog } from '../../../src/protocol/plc.ts'
import { parseShare } from '../../../src/protocol/escrow-share.ts'
import { shareWords } from '../../../src/wallet/share-words.ts'
import { createAccount, PASSWORD, xrpc } from '../../support/clients/account.ts'
import { claimCode, forCeremonies } from '../../support/clients/ceremony.ts'
import { brokenByPost } from '../../support/faults/faulty-line.ts'
import { request } from '../../support/clients/http.ts'
import { startPds } from '../../support/servers/pds.ts'
import { startPlcServer } from '../../support/servers/plc-server.ts'
import { printedShare, WalletUser, createWords } from '../../support/clients/wallet-user.ts'
import { useWorld } from '../../support/world.ts'

let user: WalletUser
const { pds, plc, line } = useWorld({ line: true, config: { ...forCeremonies, accounts: { passwordOptional: true } } })
beforeEach(() => {
  user = new WalletUser(() => pds.clock.now())
  return () => user[Symbol.dispose]()
})

async function wish(name: string, given?: string): Promise<string[]> {
  const code = given ?? (await claimCode(pds))
  const place = ['--server', pds.url, '--directory', plc.url]
  return createWords(place, name, code)
}
const auditLog = async (did: string) => (await request(`${plc.url}/${did}/log/audit`)).body
const handleOf = async (did: string) => (await xrpc(pds, `com.atproto.repo.describeRepo?repo=${did}`)).body.handle

/** The picture in the terminal, as a camera sees it: each line of text is two rows, and what is lit is white. */
function scanned(out: string): string {
  const lines = out.split('\n').filter((text) => /^[█▀▄ ]{30,}$/.test(text))
  const rows = lines.flatMap((text) => [
    [...text].map((cell) => '█▀'.includes(cell)),
    [...text].map((cell) => '█▄'.includes(cell)),
  ])
  const scale = 4
  const [width, height] = [rows[0]!.length * scale, rows.length * scale]
  const data = new Uint8Array(width * height * 4)
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++)
      data.fill(
        rows[Math.floor(y / scale)]![Math.floor(x / scale)]! ? 255 : 0,
        (y * width + x) * 4,
        (y * width + x) * 4 + 4,
      )
  return decodeQR({ width, height, data })
}

describe('an account is made', () => {
  test('without a password: the device leads its keys, and the share for paper is shown once, in three forms', async () => {
    const out = await user.do(await wish('alice'))
    const { did, recoveryKey, keychainShare, paperShare, walletSession, unfinished } = await user.contents()
    expect({ paperShare, unfinished }).toEqual({ paperShare: null, unfinished: null })
    expect(walletSession).toMatch(/^[A-Za-z0-9_-]{43}$/)
    expect(out).toContain(did!)

    const log = checkAuditLog(did!, await auditLog(did!))
    const [device, recovery, ...rest] = (log.ok && log.state?.rotationKeys) || []
    expect(JSON.parse(await user.do(['show', '--json'])).keys.map(({ holder }: { holder: string }) => holder)).toEqual([
      'device',
      'recovery',
      'server',
    ])
    expect({ recovery, rest: rest.length }).toEqual({ recovery: recoveryKey!, rest: 1 })
    expect(out).toContain(device!)
    expect(await handleOf(did!)).toBe('alice.test')

    const text = scanned(out)
    const paper = parseShare(text)
    const kept = parseShare(keychainShare!)
    if (!paper.ok || !kept.ok) throw new Error('shares cannot be read')
    expect(printedShare(out)).toBe(shareWords(paper.share.bytes))
    expect(out).toContain(`  ${text}\n`)
    expect([paper.share.index, kept.share.index]).toEqual([3, 1])
    expect(paper.share.setId).toBe(kept.share.setId)
    expect(await user.do(['show'])).not.toContain('recovery share')
  })

  test('an account is made with a password', async () => {
    await user.do([...(await wish('bob')), '--password'], {
      answers: { 'Password: ': PASSWORD, 'Once more: ': PASSWORD, 'Press Enter': '' },
    })
    const { did } = await user.contents()
    const login = await xrpc(pds, 'com.atproto.server.createSession', {
      json: { identifier: 'bob.test', password: PASSWORD },
    })
    expect(login).toMatchObject({ status: 200, body: { did } })
  })

  test('an account is made by answering questions', async () => {
    await using closed = await startPds({ ...forCeremonies, plcDirectoryUrl: plc.url, inviteCodeRequired: true })
    const code = await claimCode(closed)
    const answers = {
      'Server URL': closed.url,
      'Handle: ': '@Carol.test',
      'Email address': 'carol@example.com',
      'Claim code': code.toLowerCase(),
      'Press Enter': '',
    }
    await user.do(['create', '--directory', plc.url, '--password-stdin'], { answers, input: [PASSWORD] })
    const { did } = await user.contents()
    expect((await xrpc(closed, `com.atproto.repo.describeRepo?repo=${did}`)).body.handle).toBe('carol.test')
  })
})

describe('at a server that is open to everyone, without a code,', () => {
  const place = () => ['--server', pds.url, '--directory', plc.url]
  const openWish = (name: string) => [
    'create',
    ...place(),
    '--handle',
    `${name}.test`,
    '--email',
    `${name}@example.com`,
  ]

  test('an account is made by answering questions, none of which is for a code', async () => {
    const answers = {
      'Server URL': pds.url,
      'Handle: ': 'olga.test',
      'Email address': 'olga@example.com',
      'Press Enter': '',
    }
    const { code, out, asked } = await user.run(['create', '--directory', plc.url], { answers })
    expect({ code, asked: asked.join() }).toEqual({ code: 0, asked: expect.not.stringContaining('code') })
    const { did, recoveryKey, paperShare, unfinished } = await user.contents()
    expect({ paperShare, unfinished }).toEqual({ paperShare: null, unfinished: null })
    expect(printedShare(out).split(' ')).toHaveLength(42)
    const log = checkAuditLog(did!, await auditLog(did!))
    expect((log.ok && log.state?.rotationKeys.slice(0, 2)) || []).toEqual([await user.do(['key']), recoveryKey!])
    expect(await handleOf(did!)).toBe('olga.test')
    expect(await user.do(['sign-in'])).toContain('as olga.test')
    expect(await pds.count('escrow_share', { did: did! })).toBe(1)
  })

  test('an account is made with a password', async () => {
    await user.do([...openWish('pia'), '--password-stdin'], { input: [PASSWORD] })
    const { did } = await user.contents()
    const login = await xrpc(pds, 'com.atproto.server.createSession', {
      json: { identifier: 'pia.test', password: PASSWORD },
    })
    expect(login).toMatchObject({ status: 200, body: { did } })
  })

  test.each(['question lost', 'answer lost'] as const)(
    'a sign-up whose directory cannot be reached (%s) goes on',
    async (fate) => {
      const name = fate === 'question lost' ? 'quinn' : 'rosa'
      line.fate = brokenByPost(fate)
      expect((await user.run(openWish(name))).code).toBe(1)
      const { did } = await user.contents()
      line.fate = () => 'answered'
      await user.do(['create'])
      expect((await user.contents()).did).toBe(did)
      expect(await auditLog(did!)).toHaveLength(1)
      expect(await handleOf(did!)).toBe(`${name}.test`)
    },
  )

  test('a wish that is refused may be made again in other words, also once the reserved key is gone', async () => {
    if ((await xrpc(pds, 'com.atproto.identity.resolveHandle?handle=taken.test')).status !== 200)
      await createAccount(pds, 'taken')
    expect((await user.run(openWish('taken'))).code).toBe(1)
    await user.do(['create', '--handle', 'tess.test', '--email', 'tess@example.com'])
    expect(await handleOf((await user.contents()).did!)).toBe('tess.test')

    line.fate = brokenByPost('question lost')
    const device = 'late'
    expect((await user.run(openWish('uma'), { device })).code).toBe(1)
    line.fate = () => 'answered'
    await pds.lose('reserved_signing_key')
    expect((await user.run(['create'], { device })).code).toBe(1)
    await user.do(['create'], { device })
    expect(await handleOf((await user.contents(device)).did!)).toBe('uma.test')
  })

  test('an identity at a domain of its own still takes a code', async () => {
    const answers = { 'Handle: ': 'vic.test', 'Email address': 'vic@example.com', 'Claim code': 'NOCODE' }
    const { code, asked } = await user.run([...openWish('vic'), '--did', 'did:web:vic.example'], { answers })
    expect({ code, asked: asked.join() }).toEqual({ code: 1, asked: expect.stringContaining('Claim code') })
  })
})

describe('nothing is made, and the code is not used up,', () => {
  test.each([
    ['with a handle that is taken', 'dave', ['--handle', 'taken.test']],
    ['with an address that is taken', 'dave', ['--email', 'taken@example.com']],
    ['with a handle that the server does not give out', 'dave', ['--handle', 'dave.elsewhere']],
    ['with a handle that is none', 'dave', ['--handle', 'no handle']],
  ])('%s', async (_, name, change) => {
    if ((await xrpc(pds, 'com.atproto.identity.resolveHandle?handle=taken.test')).status !== 200)
      await createAccount(pds, 'taken')
    const code = await claimCode(pds)
    expect((await user.run([...(await wish(name, code)), ...change])).code).toBe(1)
    expect((await user.run(['show'])).code).toBe(1)
    // The wallet begins anew with other wishes.
    const again = `dora${crypto.randomUUID().slice(0, 8)}`
    await user.do(await wish(again, code))
    expect(await handleOf((await user.contents()).did!)).toBe(`${again}.test`)
  })

  test('with a code that is unknown or used', async () => {
    expect((await user.run(await wish('erin', 'NOCODE'))).code).toBe(1)
    const code = await claimCode(pds)
    await user.do(await wish('erin', code))
    expect((await user.run(await wish('frank', code), { device: 'other' })).code).toBe(1)
  })
})

test('a wallet that holds an identity makes no second one', async () => {
  await user.do(await wish('grace'))
  const before = await user.contents()
  expect(await user.run(await wish('heidi'))).toMatchObject({
    code: 1,
    err: expect.stringContaining('this wallet already holds'),
  })
  expect(await user.contents()).toEqual(before)
})

test.each(['question lost', 'answer lost'] as const)(
  'a ceremony whose directory cannot be reached (%s) goes on with the same identity',
  async (fate) => {
    const name = fate === 'question lost' ? 'ivan' : 'iris'
    line.fate = brokenByPost(fate)
    expect((await user.run(await wish(name))).code).toBe(1)
    const { did, unfinished } = await user.contents()
    expect(unfinished).toMatchObject({ what: 'creation', identity: { method: 'plc' } })
    line.fate = () => 'answered'
    const out = await user.do(['create'])
    expect((await user.contents()).did).toBe(did)
    expect(printedShare(out).split(' ')).toHaveLength(42)
    expect(await auditLog(did!)).toHaveLength(1)
    expect(await handleOf(did!)).toBe(`${name}.test`)
  },
)

test('a ceremony of which the directory knows nothing has not ended, until the right directory is named', async () => {
  await using stale = await startPlcServer()
  const said = await user.run([...(await wish('judy')), '--directory', stale.url])
  expect(said).toMatchObject({ code: 1, out: '', err: expect.stringContaining(`${stale.url} does not know did:plc:`) })
  const { did, paperShare, unfinished } = await user.contents()
  expect({ paperShare, unfinished }).toEqual({
    paperShare: expect.any(String),
    unfinished: expect.objectContaining({ what: 'creation' }),
  })
  expect(printedShare(await user.do(['create', '--directory', plc.url])).split(' ')).toHaveLength(42)
  expect(await user.contents()).toMatchObject({ did, directory: plc.url, handle: 'judy.test', unfinished: null })
  expect(await user.do(['sign-in'])).toContain('as judy.test')
})

test('a ceremony that ended while nobody heard of it ends for the wallet too', async () => {
  const code = await claimCode(pds)
  await user.do(await wish('kim', code))
  const done = await user.contents()
  const [{ operation }] = await auditLog(done.did!)
  // What the file held before the last answers came.
  const identity = {
    method: 'plc',
    repoKey: operation.verificationMethods.atproto,
    operation,
    recoveryKey: done.recoveryKey!,
    escrowShare: done.keychainShare!,
  } as const
  const unfinished = {
    what: 'creation',
    email: 'kim@example.com',
    handle: 'kim.test',
    claimCode: code,
    webDid: null,
    identity,
  } as const
  await user.keep({ ...done, handle: null, walletSession: null, session: null, unfinished })
  expect(await user.do(['create'])).toContain(done.did!)
  expect(await user.contents()).toMatchObject({ did: done.did, handle: 'kim.test', unfinished: null })
  expect(await auditLog(done.did!)).toHaveLength(1)
})
