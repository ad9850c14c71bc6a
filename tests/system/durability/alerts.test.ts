/** Alerts while the server is killed, and while its disk is full. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { startMailbox, type Mailbox, type Received } from '../../support/clients/mailbox.ts'
import { freePort } from '../../support/ports.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { startProgram, type RunningServer } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'

setDefaultTimeout(60_000)

const messageId = ({ source }: Received) => /^Message-ID: (.*)\r$/im.exec(source)![1]!
const subjectOf = ({ source }: Received) => /^Subject: (.*)\r$/im.exec(source)![1]!
const pass = ({ url }: RunningServer) =>
  request(`${url}/v1/admin/sweeps/alerts/run`, { method: 'POST', headers: bearer(ADMIN_TOKEN) })

/** A server that mails alerts to the box, and whose disk counts as nearly full below so many bytes. */
const settingsFor = async (box: Mailbox, diskFreeBytes = 2 ** 50): Promise<Record<string, string>> => ({
  PORT: String(await freePort()),
  SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
  SERVICE_RATE_LIMIT_ENABLED: 'false',
  SERVICE_ALERTS_MAIL_TO: 'operator@example.org',
  SERVICE_ALERTS_DISK_FREE_BYTES: String(diskFreeBytes),
  SERVICE_EMAIL_PROVIDER: 'smtp',
  SERVICE_EMAIL_FROM: 'pds@example.org',
  SERVICE_EMAIL_SMTP_HOST: 'localhost',
  SERVICE_EMAIL_SMTP_PORT: String(box.port),
  SERVICE_EMAIL_SMTP_TLS: 'none',
})

test('an alert whose server is killed before the mail server has answered is told once', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-alert-'))
  await using box = await startMailbox({ tls: 'none' })
  const env = await settingsFor(box)
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

test('a disk that takes no more is mailed although nothing can be stored, once, and that it is over', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-alert-'))
  await using box = await startMailbox({ tls: 'none' })
  try {
    await using server = await startProgram(['dev'], await settingsFor(box, 0), folder, { maxFileBytes: 4_000_000 })
    const account = await createAccount(server, 'alice')
    const write = () =>
      account.call('com.atproto.repo.createRecord', {
        json: {
          repo: account.did,
          collection: 'org.example.note',
          record: { $type: 'org.example.note', text: 'x'.repeat(100_000) },
        },
      })
    const isHealthy = async () => (await request(`${server.url}/xrpc/_health`)).status === 200
    await until(async () => (await write()).status !== 200)
    await until(async () => !(await isHealthy()))
    for (let look = 0; look < 3; look++) expect((await pass(server)).body).toEqual({ failing: 1 })
    expect(box.received.map(subjectOf)).toEqual([expect.stringContaining('Alert: nothing can be written')])

    server.liftFileLimit()
    await until(isHealthy)
    await pass(server)
    await until(() => box.received.length === 2)
    expect(box.received.map(subjectOf).at(-1)).toContain('Over: nothing can be written')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
