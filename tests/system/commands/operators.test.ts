/** The commands for operators' roles, and those that act with the token of a session. */
import { expect, test } from 'bun:test'
import { createAccount, PASSWORD } from '../../support/clients/account.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { runProgram } from '../../support/servers/program.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })

const runAs = (token: string | undefined, words: string[], input?: string) =>
  runProgram([...words, '--url', pds.url], token === undefined ? {} : { SERVICE_ADMIN_TOKEN: token }, undefined, input)
const run = (...words: string[]) => runAs(ADMIN_TOKEN, words)
const json = async (...words: string[]) => JSON.parse((await run(...words, '--json')).out)

test('a moderator is made, signs in, acts with a reason, and is gone', async () => {
  await createAccount(pds, 'mona')
  const alice = await createAccount(pds, 'alice')
  expect(await run('operator', 'set', 'mona', 'nonsense')).toMatchObject({ code: 1 })
  expect(await run('operator', 'set', 'mona', 'moderator')).toMatchObject({ code: 0 })
  expect((await run('operator', 'list')).out).toContain('moderator')

  const signedIn = await runAs(undefined, ['operator', 'sign-in', 'mona.test', '--password-stdin'], `${PASSWORD}\n`)
  expect(signedIn).toMatchObject({ code: 0, err: '' })
  const token = signedIn.out.trim()
  expect(await runAs(token, ['account', 'takedown', 'alice', '--reason', 'case 7 – spam'])).toMatchObject({ code: 0 })
  expect((await runAs(token, ['audit', '--subject', alice.did])).out).toContain('case 7 – spam')
  expect(await runAs(token, ['account', 'delete', 'alice', '--yes'])).toMatchObject({ code: 1 })
  expect(await runAs(token, ['account', 'restore', 'alice'])).toMatchObject({ code: 0 })

  const [session] = await json('operator', 'sessions')
  expect(session).toMatchObject({ handle: 'mona.test', kind: 'program' })
  expect(await run('operator', 'end-session', session.id)).toMatchObject({ code: 0 })
  expect(await runAs(token, ['account', 'show', 'alice'])).toMatchObject({ code: 1 })
  expect(await run('operator', 'remove', 'mona')).toMatchObject({ code: 0 })
  expect(await json('operator', 'list')).toEqual([])
})

test('accounts, records and blobs are looked after', async () => {
  const bob = await createAccount(pds, 'bob')
  const uploaded = await bob.call('com.atproto.repo.uploadBlob', {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: 'a blob of bob',
  })
  const { blob } = uploaded.body
  const collection = 'org.example.note'
  const written = await bob.call('com.atproto.repo.createRecord', {
    json: { repo: bob.did, collection, record: { $type: collection, blob } },
  })
  const uri = written.body.uri.replace(bob.did, 'bob.test') as string
  for (const change of ['takedown', 'restore']) {
    expect(await run('record', change, uri)).toMatchObject({ code: 0 })
    expect(await run('blob', change, 'bob', blob.ref.$link)).toMatchObject({ code: 0 })
  }
  const [event] = await json('audit', '--action', 'blob_restore', '--limit', '1')
  expect(event).toMatchObject({ subject: blob.ref.$link, detail: bob.did })

  expect(await run('account', 'change-address', 'bob', 'robert@example.com')).toMatchObject({ code: 0 })
  expect(await run('account', 'mail', 'bob', 'Hello Bob', '--subject', 'A word')).toMatchObject({ code: 0 })
  expect(await run('account', 'end-sessions', 'bob')).toMatchObject({ code: 0 })
  expect((await bob.call('com.atproto.server.getSession')).status).not.toBe(200)
  expect(await run('waitlist', 'list')).toMatchObject({ code: 0 })
})
