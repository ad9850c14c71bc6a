/**
 * The executable as a stranger uses it who holds an identity: from the account's first day to its last, by `holdfast
 * wallet` alone.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bearer, request } from '../../support/clients/http.ts'
import { startMailbox, type Mailbox } from '../../support/clients/mailbox.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { freePort } from '../../support/ports.ts'
import { runProgram, startProgram, typeAtProgram, type RunningServer } from '../../support/servers/program.ts'
import { loopbackClient } from '../../support/clients/standard-client.ts'
import { completeConsent, statusOf, walletPathOf } from '../../support/clients/wallet-consent.ts'
import { printedShare } from '../../support/clients/wallet-user.ts'

const scratch = mkdtempSync(join(tmpdir(), 'holdfast-wallet-binary-'))
const PASSPHRASE = 'the passphrase of a stranger'

let mailbox: Mailbox
let server: RunningServer
let place: string[]

beforeAll(async () => {
  mailbox = await startMailbox({ tls: 'none' })
  const env = {
    SERVICE_PORT: String(await freePort()),
    SERVICE_DATA_DIR: join(scratch, 'data'),
    SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
    SERVICE_SIGNING_KEY_MASTER_KEY: '07'.repeat(32),
    SERVICE_ACCOUNTS_PASSWORD_OPTIONAL: 'true',
    SERVICE_INVITE_CODE_REQUIRED: 'true',
    SERVICE_RECOVERY_RELEASE_DELAY_SECS: '0',
    SERVICE_EMAIL_PROVIDER: 'smtp',
    SERVICE_EMAIL_FROM: 'pds@example.org',
    SERVICE_EMAIL_SMTP_HOST: 'localhost',
    SERVICE_EMAIL_SMTP_PORT: String(mailbox.port),
    SERVICE_EMAIL_SMTP_TLS: 'none',
  }
  mkdirSync(join(scratch, 'empty'))
  server = await startProgram(['dev'], env, join(scratch, 'empty'))
  // A server for development keeps a directory of its own.
  place = ['--server', publicUrl()]
})

afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await mailbox[Symbol.asyncDispose]()
  rmSync(scratch, { recursive: true, force: true })
})

const publicUrl = () => server.url.replace('127.0.0.1', 'localhost')
const file = (device: string) => ['--file', join(scratch, `${device}.age`)]

/** Each command opens the file, which takes a second of the processor unless a file is made with less work. */
const LITTLE_WORK = { HOLDFAST_WALLET_WORK_FACTOR: '10' }

/** Run `holdfast wallet` as a script does. Fails unless it succeeds. */
async function wallet(device: string, words: string[], more: Record<string, string> = LITTLE_WORK): Promise<string> {
  const { code, out, err } = await runProgram(['wallet', ...words, ...file(device)], {
    HOLDFAST_WALLET_PASSPHRASE: PASSPHRASE,
    ...more,
  })
  expect({ words, code, err }).toEqual({ words, code: 0, err: '' })
  return out
}

async function mailed(form: RegExp): Promise<string> {
  for (;;) {
    const code = mailbox.received.map(({ source }) => form.exec(source)?.[1]).findLast((each) => each !== undefined)
    if (code !== undefined) return code
    await mailbox.next()
  }
}

const show = async (device: string) => JSON.parse(await wallet(device, ['show', '--json']))
let paper = ''
let did = ''

test('the wallet of the executable makes an account at a terminal, without showing the passphrase', async () => {
  const invite = await runProgram(['invite', 'create', '--url', server.url], { SERVICE_ADMIN_TOKEN: ADMIN_TOKEN })
  const words = ['wallet', 'create', ...place, ...file('first')]
  const { code, screen } = await typeAtProgram(words, LITTLE_WORK, [
    ['Passphrase: ', `${PASSPHRASE}\r`],
    ['Once more: ', `${PASSPHRASE}\r`],
    ['Handle: ', 'alice.test\r'],
    ['Email address: ', 'alice@example.com\r'],
    ['Claim code: ', `${invite.out.trim()}\r`],
    ['Press Enter', '\r'],
  ])
  expect(code).toBe(0)
  expect(screen).not.toContain(PASSPHRASE)
  paper = printedShare(screen.replaceAll('\r', ''))
  expect(statSync(join(scratch, 'first.age')).mode & 0o777).toBe(0o600)
  const view = await show('first')
  did = view.did
  expect(view).toMatchObject({ handle: 'alice.test', serverHere: true })
  expect(view.keys.map(({ holder }: { holder: string }) => holder)).toEqual(['device', 'recovery', 'server'])
}, 60_000)

const post = async (device: string) => {
  const { accessJwt } = JSON.parse(await wallet(device, ['sign-in', '--print']))
  const json = { repo: did, collection: 'org.example.note', record: { text: 'mine' } }
  return (await request(`${server.url}/xrpc/com.atproto.repo.createRecord`, { json, headers: bearer(accessJwt) }))
    .status
}

test('the wallet of the executable writes with its key, and with another one', async () => {
  expect(await post('first')).toBe(200)
  const before = (await show('first')).repositoryKey
  await wallet('first', ['rotate-key'])
  expect((await show('first')).repositoryKey).not.toBe(before)
  expect(await post('first')).toBe(200)
})

/** What the sign-in page of an app shows. */
async function waitingApp() {
  const { client } = loopbackClient({ url: publicUrl() })
  const page = await client.authorize('alice.test', { scope: 'atproto transition:generic' })
  return { client, path: walletPathOf(String((await request(page.href)).body))! }
}

test('the wallet of the executable lets one app in and refuses another', async () => {
  const { client, path } = await waitingApp()
  expect(await wallet('first', ['approve', path.userCode, '--yes'])).toContain('Approved.')
  const completed = await completeConsent({ url: publicUrl() }, path.requestId)
  const { session } = await client.callback(new URL(completed.headers.get('location')!).searchParams)
  expect(session.did as string).toBe(did)
  const other = await waitingApp()
  expect(await wallet('first', ['deny', other.path.link, '--yes'])).toContain('Refused.')
  expect((await statusOf({ url: publicUrl() }, other.path.requestId)).body.status).toBe('denied')
})

test('the wallet of the executable is copied, and moves to another device', async () => {
  await wallet('first', ['export', join(scratch, 'copy.age')], {})
  expect(readFileSync(join(scratch, 'copy.age'), 'latin1')).toMatch(/^age-encryption\.org\/v1\n-> scrypt \S+ 18\n/)
  expect(await show('copy')).toEqual(await show('first'))
  const [, command] = /holdfast wallet (transfer --join .*)/.exec(await wallet('first', ['transfer']))!
  const [key] = /(?<=--to )did:key:\w+/.exec(await wallet('second', command!.split(' ')))!
  await wallet('first', ['transfer', '--to', key])
  paper = printedShare(await wallet('second', ['transfer']))
  expect(await post('second')).toBe(200)
})

test('the wallet of the executable comes back on another device', async () => {
  expect(await wallet('third', ['recover', 'alice.test', ...place])).toContain('a code was mailed')
  const code = await mailed(/^Recovery code:\r?\n([A-Za-z0-9_-]{43})/m)
  expect(await wallet('third', ['recover', '--code', code, '--share', paper])).toContain('alice.test is yours again')
  expect(await post('third')).toBe(200)
  const env = { HOLDFAST_WALLET_PASSPHRASE: PASSPHRASE }
  expect((await runProgram(['wallet', 'sign-in', ...file('second')], env)).code).toBe(1)
})

test('the wallet of the executable leaves', async () => {
  await wallet('third', ['delete'])
  const code = await mailed(/^([A-Z2-7]{5}-[A-Z2-7]{5})/m)
  expect(await wallet('third', ['delete', '--code', code, '--yes'])).toContain('The identity is ended.')
  expect((await request(`${server.url}/xrpc/com.atproto.sync.getRepoStatus?did=${did}`)).status).toBe(400)
})
