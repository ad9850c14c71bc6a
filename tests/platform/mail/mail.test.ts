/** Mail over real connections: SMTP with and without TLS, a provider's HTTP interface, and what must not be sent. */
import { expect, test } from 'bun:test'
import type { Config } from '../../../src/platform/configuration/config.ts'
import { createLog } from '../../../src/platform/running/log.ts'
import { createMailer, MailRefused } from '../../../src/platform/network/mailer.ts'
import { createOutbound } from '../../../src/platform/network/outbound.ts'
import { systemResolver } from '../../../src/platform/network/resolver.ts'
import { Secret } from '../../../src/base/secret.ts'
import { createAccount } from '../../support/clients/account.ts'
import { testAuthority } from '../../support/certificates.ts'
import { testConfig } from '../../support/servers/config.ts'
import { startMailbox } from '../../support/clients/mailbox.ts'
import { startPds } from '../../support/servers/pds.ts'
import { startUpstream } from '../../support/servers/upstream.ts'
import { errorOf, thrownBy } from '../../support/thrown.ts'

const lines: string[] = []
const log = createLog({ format: 'json', level: 'debug', now: Date.now, write: (line) => void lines.push(line) })
const upstream = createOutbound({ resolver: systemResolver(), reach: 'anywhere' })
const mailerOf = (email: Partial<Config['email']>, authority: string | null = testAuthority) => {
  const place = { dataDir: '/nowhere', port: 0, publicUrl: 'http://localhost:1' }
  return createMailer(
    testConfig(place, {
      email: { from: 'pds@example.org', fromName: 'The PDS, with a comma', smtpHost: 'localhost', ...email },
    }),
    { upstream, log, ...(authority === null ? {} : { authority }) },
  )
}
const mail = { to: 'ann@example.org', subject: 'Grüße', text: 'Hello.\n\nCODE-1\n' }

test('STARTTLS with a login delivers, under the configured name', async () => {
  await using box = await startMailbox({ tls: 'starttls', login: { user: 'pds', password: 'secret' } })
  const mailer = mailerOf({
    provider: 'smtp',
    smtpPort: box.port,
    smtpUsername: 'pds',
    smtpPassword: new Secret('secret'),
  })
  expect(await mailer.check()).toBeNull()
  await mailer.send(mail)
  expect(box.received).toMatchObject([{ from: 'pds@example.org', to: ['ann@example.org'], user: 'pds', secure: true }])
  expect(box.received[0]!.source).toContain('"The PDS, with a comma" <pds@example.org>')
  expect(box.received[0]!.source).toContain('\r\nCODE-1\r\n')
})

test('implicit TLS and none are as configured', async () => {
  await using box = await startMailbox({ tls: 'implicit' })
  await mailerOf({ provider: 'smtp', smtpPort: box.port, smtpTls: 'implicit' }).send(mail)
  expect(box.received).toMatchObject([{ secure: true }])
  await using open = await startMailbox({ tls: 'none' })
  await mailerOf({ provider: 'smtp', smtpPort: open.port, smtpTls: 'none' }).send(mail)
  expect(open.received).toMatchObject([{ secure: false }])
})

test('nothing is sent to a server without the encryption asked for, an unknown certificate, or another password', async () => {
  await using open = await startMailbox({ tls: 'none' })
  expect(await thrownBy(mailerOf({ provider: 'smtp', smtpPort: open.port }).send(mail))).toThrow()
  await using box = await startMailbox({ tls: 'starttls', login: { user: 'pds', password: 'secret' } })
  expect(await thrownBy(mailerOf({ provider: 'smtp', smtpPort: box.port }, null).send(mail))).toThrow()
  const wrong = mailerOf({
    provider: 'smtp',
    smtpPort: box.port,
    smtpUsername: 'pds',
    smtpPassword: new Secret('guess'),
  })
  expect(await thrownBy(wrong.send(mail))).toThrow()
  expect(await wrong.check()).toContain('535')
  expect([...open.received, ...box.received]).toEqual([])
})

test('a line break in an address or subject is no mail', async () => {
  await using box = await startMailbox({ tls: 'starttls' })
  const mailer = mailerOf({ provider: 'smtp', smtpPort: box.port })
  for (const change of [{ to: 'ann@example.org\r\nBcc: eve@example.org' }, { subject: 'x\nBcc: eve@example.org' }])
    expect(await thrownBy(mailer.send({ ...mail, ...change }))).toThrow('line break')
  await mailer.send({ ...mail, to: '"ann, eve@example.net" <ann@example.org>' }).catch(() => undefined)
  expect(box.received.flatMap(({ to }) => to)).not.toContain('eve@example.net')
})

test('what a server says of a recipient is written down without the address', async () => {
  const ann = 'ann@example.com'
  await using box = await startMailbox({ tls: 'none', unknown: [ann] })
  await using pds = await startPds(
    {
      email: { provider: 'smtp', from: 'pds@example.org', smtpHost: 'localhost', smtpPort: box.port, smtpTls: 'none' },
    },
    { mailer: undefined },
  )
  const { call } = await createAccount(pds, 'ann', { email: ann })
  expect(await call('com.atproto.server.requestEmailConfirmation', { method: 'POST' })).toMatchObject({
    status: 400,
    body: { message: 'The mail was refused permanently. The server will not try again.' },
  })
  const [step] = await pds.rows('step', { kind: 'mail' }, ['last_error'])
  expect(step).toEqual({ last_error: expect.stringContaining('550 [address] there is nobody of this name') })
  const written = pds.log.map((line) => JSON.stringify(line))
  expect(written.filter((line) => line.includes('there is nobody of this name'))).toHaveLength(1)
  expect(written.filter((line) => line.includes(ann))).toEqual([])
})

test.each([
  ['550 nobody of this name', true],
  ['450 later', false],
  ['999 what', false],
  ['hello there', false],
])(
  'a mail whose recipient a server answers with "%s" is given up only after a permanent refusal',
  async (answer, isGivenUp) => {
    using server = Bun.listen({
      hostname: '127.0.0.1',
      port: 0,
      socket: {
        open: (socket) => void socket.write('220 welcome\r\n'),
        data: (socket, line) => void socket.write(`${line.toString().startsWith('RCPT') ? answer : '250 ok'}\r\n`),
      },
    })
    const mailer = mailerOf({ provider: 'smtp', smtpPort: server.port, smtpTls: 'none' })
    expect((await errorOf(mailer.send(mail))) instanceof MailRefused).toBe(isGivenUp)
  },
)

test('a server that answers for ever, a line at a time, is left', async () => {
  const { promise: isLeft, resolve } = Promise.withResolvers<void>()
  let drip: Timer | undefined
  using server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open: (socket) => void socket.write('220 welcome\r\n'),
      data: (socket) => void (drip ??= setInterval(() => socket.write('250-wait\r\n'), 10)),
      close() {
        clearInterval(drip)
        resolve()
      },
    },
  })
  const mailer = mailerOf({ provider: 'smtp', smtpPort: server.port, smtpTls: 'none', smtpTimeoutSecs: 0.1 })
  expect(await thrownBy(mailer.send(mail))).toThrow()
  await isLeft
})

test('the HTTP provider gets the message and the token, and its refusal is one', async () => {
  await using provider = startUpstream()
  const bodies: unknown[] = []
  provider.answer('send', async (request) => (bodies.push(await request.json()), Response.json({ success: true })))
  const mailer = mailerOf({
    provider: 'mailtrap',
    httpApiUrl: `${provider.url}/xrpc/send`,
    httpToken: new Secret('token-1'),
  })
  await mailer.send(mail)
  expect(bodies).toEqual([
    {
      from: { email: 'pds@example.org', name: 'The PDS, with a comma' },
      to: [{ email: 'ann@example.org' }],
      subject: 'Grüße',
      text: mail.text,
    },
  ])
  expect(provider.received[0]!.headers.get('authorization')).toBe('Bearer token-1')
  provider.answer('send', () => new Response('no such token', { status: 401 }))
  expect(await thrownBy(mailer.send(mail))).toThrow('401')
  expect(lines.join('')).not.toContain('token-1')
})

test('a server with a mailbox mails codes, and what has happened', async () => {
  await using box = await startMailbox({ tls: 'none' })
  await using pds = await startPds(
    {
      email: { provider: 'smtp', from: 'pds@example.org', smtpHost: 'localhost', smtpPort: box.port, smtpTls: 'none' },
    },
    { mailer: undefined },
  )
  const ann = await createAccount(pds, 'ann')
  expect(await ann.call('com.atproto.server.requestEmailConfirmation', { method: 'POST' })).toMatchObject({
    status: 200,
  })
  const [, code] = /^([A-Z2-7]{5}-[A-Z2-7]{5})\r?$/m.exec(box.received[0]!.source)!
  expect(await ann.call('com.atproto.server.confirmEmail', { json: { email: ann.email, token: code } })).toMatchObject({
    status: 200,
  })
  await ann.call('com.atproto.server.createAppPassword', { json: { name: 'Léser' } })
  await pds.ctx.background.settled()
  await pds.runSteps()
  const { to, source } = box.received[1]!
  expect(to).toEqual([ann.email])
  expect(source).toMatch(/^Subject: An app password was created \(localhost:\d+\)\r$/m)
  expect(source).toMatch(/^When: \d+ \w+ \d{4} at \d\d:\d\d UTC\r$/m)
})
