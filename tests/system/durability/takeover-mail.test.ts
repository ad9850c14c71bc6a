/**
 * Mails that are under way when the machine is lost and another one takes over: who was promised one gets it, as the
 * same mail, and what was sent and noted before is not sent again, also if the first machine lives on.
 */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { request } from '../../support/clients/http.ts'
import { startMailbox } from '../../support/clients/mailbox.ts'
import { freePort } from '../../support/ports.ts'
import { startBucket } from '../../support/servers/bucket-host.ts'
import { until } from '../../support/until.ts'
import { Machine } from './machines.ts'

const MAX_MILLIS = 60_000

test.each(['kill', 'freeze', 'cut off'] as const)(
  'over a takeover (%s), a mail under way arrives as the same one, and one that was sent is not sent again',
  async (fault) => {
    const scratch = mkdtempSync(join(tmpdir(), 'holdfast-takeover-mail-'))
    await using bucket = await startBucket()
    await using box = await startMailbox({ tls: 'none' })
    const shared = {
      SERVICE_PUBLIC_URL: `http://localhost:${await freePort()}`,
      SERVICE_EMAIL_PROVIDER: 'smtp',
      SERVICE_EMAIL_FROM: 'pds@example.org',
      SERVICE_EMAIL_SMTP_HOST: 'localhost',
      SERVICE_EMAIL_SMTP_PORT: String(box.port),
      SERVICE_EMAIL_SMTP_TLS: 'none',
    }
    const to = (email: string) => box.received.filter((mail) => mail.to.includes(email))
    const idsOf = (email: string) => to(email).map(({ source }) => /^Message-ID: (.*)\r$/im.exec(source)![1]!)
    const call = (url: string, method: string, json: object) =>
      request(`${url}/xrpc/com.atproto.server.${method}`, { keepalive: false, json })
    const signUp = (url: string, name: string) =>
      call(url, 'createAccount', { handle: `${name}.test`, email: `${name}@example.com`, password: 'the old password' })
    const one = await Machine.make(scratch, 'one', bucket, shared)
    const two = await Machine.make(scratch, 'two', bucket, shared)
    try {
      one.begin('dev')
      await until(() => one.promises())
      expect(await one.state()).toMatchObject({ role: 'serving' })
      for (const name of ['sent', 'underway']) expect((await signUp(one.url, name)).status).toBe(200)
      expect((await call(one.url, 'requestPasswordReset', { email: 'sent@example.com' })).status).toBe(200)
      const isReset = ({ source }: { source: string }) => /^[A-Z2-7]{5}-[A-Z2-7]{5}\r$/m.test(source)
      await until(() => to('sent@example.com').some(isReset))

      two.begin('follow')
      await until(() => two.hasCopy())
      const held = Promise.withResolvers<void>()
      box.held = held.promise
      expect((await call(one.url, 'requestPasswordReset', { email: 'underway@example.com' })).status).toBe(200)
      // The mail server has it, and has not said so.
      await until(() => to('underway@example.com').some(isReset))
      const before = { sent: idsOf('sent@example.com'), underway: idsOf('underway@example.com') }
      one.strike(fault)
      box.held = null

      await two.server!.listening
      await until(() => idsOf('underway@example.com').length > before.underway.length)
      const token = /^([A-Z2-7]{5}-[A-Z2-7]{5})\r$/m.exec(to('underway@example.com').at(-1)!.source)![1]!
      expect((await call(two.url, 'resetPassword', { token, password: 'the new password' })).status).toBe(200)
      // The first machine lives again, and learns that its mail was taken: it can neither note that nor send another.
      held.resolve()
      await one.recover()
      // A mail that is asked for now comes after all that were left.
      expect((await call(two.url, 'requestPasswordReset', { email: 'sent@example.com' })).status).toBe(200)
      await until(() => idsOf('sent@example.com').length > before.sent.length)
      expect(idsOf('sent@example.com').slice(0, -1)).toEqual(before.sent)
      expect(before.sent).not.toContain(idsOf('sent@example.com').at(-1)!)
      const again = idsOf('underway@example.com').filter((id) => before.underway.includes(id))
      expect(again).toHaveLength(before.underway.length + 1)
      expect(await two.state()).toMatchObject({ role: 'serving' })
    } finally {
      await one.end()
      await two.end()
      rmSync(scratch, { recursive: true, force: true })
    }
  },
  MAX_MILLIS,
)
