/** `kill -9` while an alert is on its way: the same mail comes again, and the alert is not told anew. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bearer, request } from '../../support/clients/http.ts'
import { startMailbox, type Received } from '../../support/clients/mailbox.ts'
import { freePort } from '../../support/ports.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { startProgram, type RunningServer } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'

setDefaultTimeout(60_000)

const messageId = ({ source }: Received) => /^Message-ID: (.*)\r$/im.exec(source)![1]!
const pass = ({ url }: RunningServer) =>
  request(`${url}/v1/admin/sweeps/alerts/run`, { method: 'POST', headers: bearer(ADMIN_TOKEN) })

test('an alert whose server is killed before the mail server has answered is told once', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-alert-'))
  await using box = await startMailbox({ tls: 'none' })
  const env = {
    PORT: String(await freePort()),
    SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
    SERVICE_ALERTS_MAIL_TO: 'operator@example.org',
    SERVICE_ALERTS_DISK_FREE_BYTES: String(2 ** 50),
    SERVICE_EMAIL_PROVIDER: 'smtp',
    SERVICE_EMAIL_FROM: 'pds@example.org',
    SERVICE_EMAIL_SMTP_HOST: 'localhost',
    SERVICE_EMAIL_SMTP_PORT: String(box.port),
    SERVICE_EMAIL_SMTP_TLS: 'none',
  }
  try {
    {
      await using server = await startProgram(['dev'], env, folder)
      box.held = new Promise<void>(() => {})
      expect((await pass(server)).body).toMatchObject({ begun: 1 })
      await until(() => box.received.length === 1)
      server.signal('SIGKILL')
      await server.exited
    }
    box.held = null
    await using server = await startProgram(['dev'], env, folder)
    await until(() => box.received.length === 2)
    expect((await pass(server)).body).toMatchObject({ begun: 0, reminded: 0 })
    expect(new Set(box.received.map(messageId)).size).toBe(1)
    expect(box.received[0]!.source).toContain('Alert: the disk is nearly full')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
