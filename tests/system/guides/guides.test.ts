/** The guides for operators, followed word for word. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { request } from '../../support/clients/http.ts'
import { startMailbox } from '../../support/clients/mailbox.ts'
import { startMachine, type Machine } from './machine.ts'

// Each guide is followed on a machine of its own, whose server is started again and again.
setDefaultTimeout(60_000)

/** The password of an account that an operator sets, signed in with. */
async function signIn(machine: Machine, name: string) {
  const { password } = JSON.parse(await machine.run(`pds account reset-password ${name} --generate --json`)) as {
    password: string
  }
  const { body } = await request(`${machine.url}/xrpc/com.atproto.server.createSession`, {
    json: { identifier: `${name}.pds.example.com`, password },
  })
  return body as { did: string; accessJwt: string }
}
const post = async ({ url }: Machine, { did, accessJwt }: { did: string; accessJwt: string }) =>
  (
    await request(`${url}/xrpc/com.atproto.repo.createRecord`, {
      headers: { authorization: `Bearer ${accessJwt}` },
      json: { repo: did, collection: 'com.example.note', record: { text: 'hello' } },
    })
  ).body as { uri: string; cid: string }
const readable = async ({ url }: Machine, uri: string) => {
  const [repo, collection, rkey] = uri.slice('at://'.length).split('/')
  return (await fetch(`${url}/xrpc/com.atproto.repo.getRecord?repo=${repo}&collection=${collection}&rkey=${rkey}`)).ok
}

test('the guide to backups ends with a server that is restored', async () => {
  await using machine = await startMachine()
  const { uri } = await post(machine, await signIn(machine, 'alice'))
  const [made, rehearsed, restored] = await machine.follow('backups.md')
  expect(made).toContain('0 old backups deleted')
  expect(rehearsed).toMatch(/^accounts +1 +1\nrecords +1 +1$/m)
  expect(rehearsed).toContain('The backup can be restored.')
  expect(restored).toContain('1 accounts announced again')
  expect(await readable(machine, uri)).toBe(true)
})

test('the guide to quotas sets them, and takes them back', async () => {
  await using machine = await startMachine()
  const [all, one, back] = await machine.follow('quotas.md')
  expect(all).toMatch(
    /^records +no limit \(default\)\nblobs +1\.1 GB \(default\)$[^]*^records +500000\nblobs +5\.0 GB$/m,
  )
  expect(one).toMatch(/^records +0 of no limit\nblobs +0 B of 50\.0 GB\n$/m)
  expect(back).toMatch(/^records +0 of 500000 \(default\)\nblobs +0 B of 5\.0 GB \(default\)$/m)
})

test('the guide to invites gives out codes, and takes one back', async () => {
  await using machine = await startMachine()
  const code = (await machine.run('pds invite create')).trim()
  const [made] = await machine.follow('invites.md', () => ({ CODE: code }))
  expect(made!.match(/^pds-example-com-\S+$/gm)).toHaveLength(9)
  expect(JSON.parse(await machine.run('pds invite list --json'))).not.toContainEqual(expect.objectContaining({ code }))
  expect((await signIn(machine, 'carol')).did).toStartWith('did:plc:')
})

test('the guide to moderation takes an account and a record down', async () => {
  await using machine = await startMachine()
  const session = await signIn(machine, 'alice')
  const { uri, cid } = await post(machine, session)
  const printed = await machine.follow('moderation.md', () => ({ URI: uri, CID: cid }))
  expect(printed[1]).toContain('is takendown')
  expect(printed[2]).toContain('is active')
  expect(JSON.parse(printed[3]!)).toMatchObject({ takedown: { applied: true, ref: 'case 18' } })
  expect(JSON.parse(printed.at(-1)!).events.map(({ action }: { action: string }) => action)).toEqual([
    'account_deleted',
    'account_restore',
    'account_takedown',
    'password_updated',
    'claim_codes_minted',
  ])
})

test('the guide to mail ends with a mail that arrives', async () => {
  await using machine = await startMachine()
  await using mailbox = await startMailbox({ tls: 'none' })
  // What the guide's own mail server would be.
  const here = `SERVICE_EMAIL_SMTP_HOST=127.0.0.1\nSERVICE_EMAIL_SMTP_PORT=${mailbox.port}\nSERVICE_EMAIL_SMTP_TLS=none\nSERVICE_EMAIL_SMTP_USERNAME=\nSERVICE_EMAIL_SMTP_PASSWORD=`
  await machine.follow('mail.md', () => (machine.configure(here), {}))
  expect(mailbox.received).toContainEqual(expect.objectContaining({ from: 'pds@example.com', to: ['you@example.com'] }))
})
