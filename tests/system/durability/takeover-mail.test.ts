/**
 * Mails that are under way when the machine dies and another one takes over: who was promised one gets it, as the same
 * mail, and what was sent and noted before is not sent again.
 */
import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { request } from '../../support/clients/http.ts'
import { startMailbox } from '../../support/clients/mailbox.ts'
import { freePort } from '../../support/ports.ts'
import { beginProgram, startProgram } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'

const MAX_MILLIS = 60_000

test(
  'over a takeover, a mail under way arrives as the same one, and one that was sent is not sent again',
  async () => {
    const scratch = mkdtempSync(join(tmpdir(), 'holdfast-takeover-mail-'))
    await using box = await startMailbox({ tls: 'none' })
    const machine = async (name: string) => {
      const folder = join(scratch, name)
      mkdirSync(folder)
      const port = await freePort()
      return { folder, url: `http://localhost:${port}`, env: { ...shared, PORT: String(port) } }
    }
    const shared = {
      SERVICE_PUBLIC_URL: `http://localhost:${await freePort()}`,
      SERVICE_RATE_LIMIT_ENABLED: 'false',
      SERVICE_BACKUP_CONTINUOUS: join(scratch, 'destination'),
      SERVICE_BACKUP_CONTINUOUS_PROMISE: 'sync',
      SERVICE_BACKUP_CONTINUOUS_LAG_MS: '100',
      SERVICE_BACKUP_TAKEOVER_SECS: '3',
      SERVICE_EMAIL_PROVIDER: 'smtp',
      SERVICE_EMAIL_FROM: 'pds@example.org',
      SERVICE_EMAIL_SMTP_HOST: 'localhost',
      SERVICE_EMAIL_SMTP_PORT: String(box.port),
      SERVICE_EMAIL_SMTP_TLS: 'none',
    }
    const to = (email: string) => box.received.filter((mail) => mail.to.includes(email))
    const idsOf = (email: string) => to(email).map(({ source }) => /^Message-ID: (.*)\r$/im.exec(source)![1]!)
    const readyz = async (url: string) => (await request(`${url}/readyz`)).body
    const call = (url: string, method: string, json: object) =>
      request(`${url}/xrpc/com.atproto.server.${method}`, { keepalive: false, json })
    const signUp = (url: string, name: string) =>
      call(url, 'createAccount', { handle: `${name}.test`, email: `${name}@example.com`, password: 'the old password' })
    try {
      const [one, two] = [await machine('one'), await machine('two')]
      await using first = await startProgram(['dev'], one.env, one.folder)
      await until(async () => (await readyz(one.url)).continuousBackup?.promise === 'sync')
      expect(await readyz(one.url)).toMatchObject({ role: 'serving' })
      for (const name of ['sent', 'underway']) expect((await signUp(one.url, name)).status).toBe(200)
      expect((await call(one.url, 'requestPasswordReset', { email: 'sent@example.com' })).status).toBe(200)
      const isReset = ({ source }: { source: string }) => /^[A-Z2-7]{5}-[A-Z2-7]{5}\r$/m.test(source)
      await until(() => to('sent@example.com').some(isReset))

      await using second = beginProgram(['follow', '--dev'], two.env, two.folder)
      second.listening.catch(() => undefined)
      await until(async () => {
        try {
          return (await readyz(two.url)).behindMillis !== null
        } catch {
          return false
        }
      })
      expect(await readyz(two.url)).toMatchObject({ role: 'follower' })
      box.held = new Promise<void>(() => {})
      expect((await call(one.url, 'requestPasswordReset', { email: 'underway@example.com' })).status).toBe(200)
      // The mail server has it, and has not said so.
      await until(() => to('underway@example.com').some(isReset))
      const before = { sent: idsOf('sent@example.com'), underway: idsOf('underway@example.com') }
      first.signal('SIGKILL')
      await first.exited
      box.held = null

      await second.listening
      await until(() => idsOf('underway@example.com').length > before.underway.length)
      const token = /^([A-Z2-7]{5}-[A-Z2-7]{5})\r$/m.exec(to('underway@example.com').at(-1)!.source)![1]!
      expect((await call(two.url, 'resetPassword', { token, password: 'the new password' })).status).toBe(200)
      // A mail that is asked for now comes after all that were left.
      expect((await call(two.url, 'requestPasswordReset', { email: 'sent@example.com' })).status).toBe(200)
      await until(() => idsOf('sent@example.com').length > before.sent.length)
      expect(idsOf('sent@example.com').slice(0, -1)).toEqual(before.sent)
      expect(before.sent).not.toContain(idsOf('sent@example.com').at(-1)!)
      const again = idsOf('underway@example.com').filter((id) => before.underway.includes(id))
      expect(again).toHaveLength(before.underway.length + 1)
      expect(await readyz(two.url)).toMatchObject({ role: 'serving' })
    } finally {
      rmSync(scratch, { recursive: true, force: true })
    }
  },
  MAX_MILLIS,
)
