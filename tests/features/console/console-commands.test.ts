/** What a form of the console does, a command does too: both send the same to the same endpoint. */
import { expect, test } from 'bun:test'
import { runCommand } from '../../../src/cli.ts'
import { consoleActs } from '../../../src/features/operations/console/console-acts.ts'
import { createAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { quietTerminal } from '../../support/clients/terminal.ts'
import { png, Uploader } from '../../support/clients/uploader.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false }, waitlist: { enabled: true } } })

interface Sent {
  path: string
  json: unknown
}

/** A line to the server, which keeps the newest request that changes something. */
const line = setUp(
  () => {
    const kept: { sent: Sent | null } = { sent: null }
    const server = Bun.serve({
      port: 0,
      async fetch(incoming) {
        const { pathname, search } = new URL(incoming.url)
        const body = incoming.method === 'GET' ? null : await incoming.text()
        if (body !== null && pathname !== '/v1/admin/accounts/lookup')
          kept.sent = { path: pathname, json: body === '' ? {} : JSON.parse(body) }
        return fetch(`${pds.url}${pathname}${search}`, { method: incoming.method, headers: incoming.headers, body })
      },
    })
    return { url: `http://localhost:${server.port}`, kept, server }
  },
  ({ server }) => server.stop(true),
)

const headers = bearer(ADMIN_TOKEN)
const admin = async (path: string, json: object) => (await request(`${pds.url}${path}`, { json, headers })).body

const subjects = setUp(async () => {
  const alice = await createAccount(pds, 'alice')
  const { did } = alice
  const uploader = Uploader.at(pds, did as Did, alice.accessJwt)
  const { ref } = await uploader.upload(png, 'image/png')
  const record = { $type: 'com.example.note', text: 'hello' }
  const json = { repo: did, collection: 'com.example.note', record, validate: false }
  const { body: note } = await alice.call('com.atproto.repo.createRecord', { json })
  const { code: invite } = await admin('/xrpc/com.atproto.server.createInviteCode', { useCount: 1 })
  const { id: caseId } = await admin('/v1/admin/cases', { subject: did, reason: 'a test' })
  const signUps = await request(`${pds.url}/v1/admin/sign-ups`, { headers })
  const { from, until } = signUps.body
  return { did, cid: ref.$link, note, invite, caseId: String(caseId), from, until }
})

type Subjects = typeof subjects
interface Pair {
  form: Readonly<Record<string, string | undefined>>
  /** The words of the command. */
  words: string[]
  /** Where the command uses another method that does the same. */
  differs?: Sent
}

/** By the name of the act: the form, and the command that does the same. */
const pairs: Readonly<Record<string, (about: Subjects) => Pair | Pair[]>> = {
  takedown: ({ did, cid, note }) => [
    { form: { did }, words: ['account', 'takedown', 'alice'] },
    { form: { did, subject: note.uri }, words: ['record', 'takedown', note.uri] },
    { form: { did, subject: cid }, words: ['blob', 'takedown', 'alice', cid] },
  ],
  restore: ({ did, cid, note }) => [
    { form: { did }, words: ['account', 'restore', 'alice'] },
    { form: { did, subject: note.uri }, words: ['record', 'restore', note.uri] },
    { form: { did, subject: cid }, words: ['blob', 'restore', 'alice', cid] },
  ],
  'end-access': ({ did }) => ({ form: { did }, words: ['account', 'end-sessions', 'alice'] }),
  'end-one-access': ({ did }) => ({
    form: { did, id: 'session:x' },
    words: ['account', 'end-sessions', 'alice', 'session:x'],
  }),
  'waitlist-invite': () => ({ form: { email: 'w@example.com' }, words: ['waitlist', 'invite', 'w@example.com'] }),
  'waitlist-remove': () => ({ form: { email: 'w@example.com' }, words: ['waitlist', 'remove', 'w@example.com'] }),
  'end-agent': () => ({ form: { id: 'reg_x' }, words: ['account', 'end-agents', 'reg_x'] }),
  'end-agents-of': () => ({
    form: { issuer: 'https://idp.example' },
    words: ['account', 'end-agents', '--issuer', 'https://idp.example'],
  }),
  'rotate-push-keys': () => ({ form: {}, words: ['push', 'key', 'rotate'] }),
  'revoke-push-key': () => ({ form: { kid: '7' }, words: ['push', 'key', 'revoke', '7'] }),
  configure: () => [
    {
      form: { name: 'invite_code_required', value: 'false' },
      words: ['config', 'set', 'invite_code_required', 'false'],
    },
    { form: { name: 'invite_code_required' }, words: ['config', 'set', 'invite_code_required', '--default'] },
  ],
  'reset-mail': ({ did }) => ({ form: { did }, words: ['account', 'reset-password', 'alice', '--mail'] }),
  'reset-code': ({ did }) => ({ form: { did }, words: ['account', 'reset-password', 'alice', '--code'] }),
  address: ({ did }) => ({
    form: { did, email: 'new@example.com' },
    words: ['account', 'change-address', 'alice', 'new@example.com'],
  }),
  handle: ({ did }) => [
    { form: { did, handle: 'alice.test' }, words: ['account', 'change-handle', 'alice', '@alice.test'] },
    { form: { did, handle: 'alice.test' }, words: ['account', 'change-handle', did, 'alice'] },
  ],
  quota: ({ did }) => [
    {
      form: { did, records: '5', blobBytes: 'default' },
      words: ['quota', 'set', 'alice', '--records', '5', '--blobs', 'default'],
    },
    { form: { did, blobBytes: '0' }, words: ['quota', 'set', 'alice', '--blobs', 'none'] },
  ],
  mail: ({ did }) => ({
    form: { did, content: 'Hello', about: 'News' },
    words: ['account', 'mail', 'alice', 'Hello', '--subject', 'News'],
  }),
  'disable-invites': ({ did }) => ({ form: { did }, words: ['account', 'stop-invites', 'alice'] }),
  'enable-invites': ({ did }) => ({ form: { did }, words: ['account', 'allow-invites', 'alice'] }),
  invite: () => ({
    form: { uses: '2' },
    words: ['invite', 'create', '--uses', '2'],
    // It can make several at once.
    differs: {
      path: '/xrpc/com.atproto.server.createInviteCodes',
      json: { useCount: 2, codeCount: 1, forAccounts: [] },
    },
  }),
  'disable-invite': ({ invite }) => ({ form: { code: invite }, words: ['invite', 'disable', invite] }),
  claim: () => [
    { form: {}, words: ['claim-code', 'create'] },
    { form: { domain: 'test' }, words: ['claim-code', 'create', '--domain', 'test'] },
  ],
  'revoke-claim': () => ({ form: { code: 'ABCD' }, words: ['claim-code', 'revoke', 'ABCD'] }),
  role: ({ did }) => [
    { form: { account: did, role: 'moderator' }, words: ['operator', 'set', 'alice', 'moderator'] },
    { form: { account: did, role: '' }, words: ['operator', 'remove', 'alice'] },
  ],
  'end-session': () => ({ form: { id: 'abc' }, words: ['operator', 'end-session', 'abc'] }),
  'retry-steps': () => ({ form: { id: STEP }, words: ['step', 'retry', STEP] }),
  'drop-steps': () => ({ form: { id: STEP }, words: ['step', 'drop', STEP] }),
  sweep: () => ({ form: { name: 'blob-gc' }, words: ['sweep', 'blob-gc'] }),
  crawl: () => ({ form: {}, words: ['relay', 'request-crawl'] }),
  'case-open': ({ did }) => ({ form: { subject: did, why: 'spam' }, words: ['case', 'open', 'alice', 'spam'] }),
  'case-note': ({ caseId: id }) => ({ form: { id, note: 'seen' }, words: ['case', 'note', id, 'seen'] }),
  'case-deadline': ({ caseId: id }) => ({ form: { id, days: '3' }, words: ['case', 'deadline', id, '3d'] }),
  'case-decide': ({ caseId: id }) => ({
    form: { id, decision: 'warn', why: 'rude' },
    words: ['case', 'decide', id, 'warn', 'rude'],
  }),
  'case-answer': ({ caseId: id }) => ({
    form: { id, outcome: 'upheld', why: 'still' },
    words: ['case', 'answer', id, 'upheld', 'still'],
  }),
  'blob-quarantine': ({ did, cid }) => ({
    form: { did, cid, days: '2', end: 'takedown' },
    words: ['blob', 'quarantine', 'alice', cid, '--days', '2', '--at-end', 'takedown'],
  }),
  'blob-release': ({ did, cid }) => ({ form: { did, cid }, words: ['blob', 'release', 'alice', cid] }),
  'undo-sign-ups': ({ did, from, until }) => ({
    form: { from, until, undoing: 'restore', 'did-0': did },
    words: ['account', 'undo-sign-ups', 'restore', '--yes', '--from', from, '--until', until],
  }),
  delete: ({ did }) => ({ form: { did }, words: ['account', 'delete', 'alice', '--yes'] }),
}
const STEP = '01234567-89ab-cdef-0123-456789abcdef'
/** It asks the server of the configuration. */
const WITHOUT_URL = ['sweep']

test('every act of the console has its command', () => {
  expect(Object.keys(pairs).toSorted()).toEqual(Object.keys(consoleActs).toSorted())
})

test.each(Object.keys(pairs))('the command for %s sends what the form sends', async (name) => {
  const act = consoleActs[name]!
  for (const { form, words, differs } of [pairs[name]!(subjects)].flat()) {
    const fields = new URLSearchParams(Object.entries(form) as [string, string][])
    line.kept.sent = null
    const said: string[] = []
    const { port } = new URL(line.url)
    const env = { SERVICE_ADMIN_TOKEN: ADMIN_TOKEN, SERVICE_PORT: port, SERVICE_DATA_DIR: pds.dataDir }
    const where = WITHOUT_URL.includes(words[0]!) ? ['--dev'] : ['--url', line.url, '--reason', 'reason']
    await runCommand(quietTerminal(env, said), [...words, ...where])
    const lookUp = act.lookUp?.(fields) ?? null
    const found = lookUp === null ? undefined : (await request(`${pds.url}${lookUp}`, { headers })).body
    const sent = differs ?? { path: act.path(fields), json: act.json(fields, found) }
    expect({ words, sent: line.kept.sent, said }).toMatchObject({
      words,
      sent: { path: sent.path, json: JSON.parse(JSON.stringify(sent.json)) },
    })
  }
})
