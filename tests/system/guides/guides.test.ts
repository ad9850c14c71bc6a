/** The guides for operators, followed word for word: what they do with a server that runs. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { request } from '../../support/clients/http.ts'
import { startMailbox } from '../../support/clients/mailbox.ts'
import { until } from '../../support/until.ts'
import { blocksOf, GUIDES, MASTER_KEY_HEX, runnable, startMachine } from './machine.ts'
import { notRun } from './not-run.ts'
import { post, readable, remove, signIn } from './people.ts'

// Each guide is followed on a machine of its own, whose server is started again and again.
setDefaultTimeout(60_000)

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

test('the guide to invites gives out codes, takes one back, and invites from the waiting list', async () => {
  await using mailbox = await startMailbox({ tls: 'none' })
  await using machine = await startMachine()
  const mail = {
    PROVIDER: 'smtp',
    FROM: 'pds@example.com',
    SMTP_HOST: '127.0.0.1',
    SMTP_PORT: mailbox.port,
    SMTP_TLS: 'none',
  }
  // The second is the domain of the guide's community.
  machine.configure('SERVICE_AVAILABLE_USER_DOMAINS=pds.example.com,club.example.com')
  machine.configure(
    Object.entries(mail)
      .map(([name, value]) => `SERVICE_EMAIL_${name}=${value}`)
      .join('\n'),
  )
  const code = (await machine.run('pds invite create')).trim()
  const claimCode = (await machine.run('pds claim-code create')).trim()
  const printed = await machine.follow('invites.md', {
    async values({ text }) {
      if (text.includes('waitlist invite'))
        for (const name of ['dora', 'emil'])
          await request(`${machine.url}/waitlist`, { json: { email: `${name}@example.com` } })
      return { CLAIM_CODE: claimCode, CODE: code }
    },
  })
  expect(printed[0]!.match(/^pds-example-com-\S+$/gm)).toHaveLength(9)
  expect(printed.find((each) => each.includes('dora@example.com'))).toContain('emil@example.com')
  expect(await machine.run('pds waitlist list')).not.toContain('@example.com')
  await until(() => mailbox.received.some(({ to }) => to.includes('dora@example.com')))
  expect(JSON.parse(await machine.run('pds invite list --json'))).not.toContainEqual(expect.objectContaining({ code }))
  expect((await signIn(machine, 'carol')).did).toStartWith('did:plc:')
})

test('the guide to moderation takes an account and a record down', async () => {
  await using machine = await startMachine()
  const session = await signIn(machine, 'alice')
  const { uri, cid } = await post(machine, session)
  const printed = await machine.follow('moderation.md', { values: () => ({ URI: uri, CID: cid }) })
  expect(printed[1]).toContain('is taken down')
  expect(printed[2]).toContain('is active')
  expect(JSON.parse(printed[3]!)).toMatchObject({ takedown: { applied: true, ref: 'case 18' } })
  expect(JSON.parse(printed.at(-1)!).events.map(({ action }: { action: string }) => action)).toEqual([
    'account_deleted',
    'case_decided',
    'case_noted',
    'case_opened',
    'record_takedown',
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
  await machine.follow('mail.md', {
    values({ language }) {
      if (language === 'sh') machine.configure(here)
      return {}
    },
  })
  expect(mailbox.received).toContainEqual(expect.objectContaining({ from: 'pds@example.com', to: ['you@example.com'] }))
})

test('the guide to what is wrong finds what is wrong', async () => {
  // Nothing listens at the public address.
  await using machine = await startMachine()
  const [printed] = await machine.follow('when-something-is-wrong.md', { mayFail: true })
  expect(printed).toMatch(/^FAULT +proxy +[^]*^FAULT +relays +no relay is configured$[^]*^KIND /m)
})

test('the guide to secrets changes the master key', async () => {
  await using machine = await startMachine()
  const session = await signIn(machine, 'alice')
  const newKey = 'ab'.repeat(32)
  const [changed] = await machine.follow('secrets.md', {
    values({ text }) {
      if (text.includes('systemctl start')) machine.configure(`SERVICE_SIGNING_KEY_MASTER_KEY=${newKey}`)
      return { OLD_KEY: MASTER_KEY_HEX, NEW_KEY: newKey }
    },
  })
  expect(changed).toMatch(/^account\.signing_key_wrapped: 1$/m)
  const { uri } = await post(machine, session)
  expect(await readable(machine, uri)).toBe(true)
})

test('the guide to exports makes an archive, and restores from it what was deleted', async () => {
  await using machine = await startMachine()
  const session = await signIn(machine, 'alice')
  const { uri } = await post(machine, session)
  const [exported, imported] = await machine.follow('export.md', {
    async values({ text }) {
      if (text.includes('import-archive')) await remove(machine, session, uri)
      return {}
    },
  })
  expect(exported).toMatch(/is exported to \S+\/alice\.pds\.example\.com\.zip .*\n.* is exported to \S+\/alice\.zip /)
  expect(imported).toContain('is restored: its repository')
  expect(await readable(machine, uri)).toBe(true)
})

test('every guide is followed, except for the lines that a table names', () => {
  const guides = readdirSync(GUIDES).filter((name) => name.endsWith('.md'))
  const unnamed = guides.filter((guide) =>
    runnable(guide).some(({ language, text }) => language === 'sh' && text !== ''),
  )
  const sources = readdirSync(import.meta.dir).map((name) => readFileSync(join(import.meta.dir, name), 'utf8'))
  expect(unnamed.filter((guide) => !sources.some((source) => source.includes(`follow('${guide}'`)))).toEqual([])
  const gone = Object.entries(notRun).flatMap(([guide, lines]) => {
    const written = new Set(blocksOf(guide).flatMap(({ text }) => text.split('\n')))
    return Object.keys(lines).filter((line) => !written.has(line))
  })
  expect(gone).toEqual([])
})
