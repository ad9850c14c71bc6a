/** What a running server says of its configuration: values, where they come from, and which of them it can replace. */
import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bearer, request } from '../../support/clients/http.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { freePort } from '../../support/ports.ts'
import { runProgram, startProgram } from '../../support/servers/program.ts'

const folder = mkdtempSync(join(tmpdir(), 'holdfast-configuration-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const PASSWORD = 'the password of the mail server'

test('each value is shown with where it comes from, without secrets', async () => {
  writeFileSync(
    join(folder, 'pds.toml'),
    `service_name = "Here"
[repos]
max_records_per_account = 10
[email]
provider = "smtp"
from = "pds@example.com"
smtp_host = "mail.example.com"
smtp_username = "pds"
smtp_password = "${PASSWORD}"
[alerts]
webhook_url = "https://hooks.example.com/a-secret-path"
webhook_secret = "whsec_${'A'.repeat(44)}"
[blob_hook]
url = "https://scanner.example.com/another-secret-path"
secret = "whsec_${'A'.repeat(44)}"
`,
  )
  const env = { PORT: String(await freePort()), SERVICE_ADMIN_TOKEN: ADMIN_TOKEN, SERVICE_INVITES_EPOCH_SECS: '7' }
  await using server = await startProgram(['dev'], env, folder)
  const run = (words: string[]) => runProgram([...words, '--url', server.url], { SERVICE_ADMIN_TOKEN: ADMIN_TOKEN })
  const shown = await run(['config', 'show'])
  expect(shown.code).toBe(0)
  for (const line of [
    /^port +\d+ +environment, PORT +restart$/m,
    /^service_name +"Here" +file +restart$/m,
    /^admin_token +"\*\*\*" +environment, SERVICE_ADMIN_TOKEN +restart$/m,
    /^invites.epoch_secs +7 +environment, SERVICE_INVITES_EPOCH_SECS +restart$/m,
    /^repos.max_records_per_account +10 +file +holdfast quota set$/m,
    /^blobs.max_storage_per_account +\d+ +default +holdfast quota set$/m,
    /^email.smtp_password +"\*\*\*" +file +restart$/m,
    /^alerts.webhook_url +"https:\/\/hooks.example.com\/…" +file +restart$/m,
    /^blob_hook.url +"https:\/\/scanner.example.com\/…" +file +restart$/m,
  ])
    expect(shown.out).toMatch(line)
  const { body } = await request(`${server.url}/v1/admin/configuration`, { headers: bearer(ADMIN_TOKEN) })
  for (const secret of [ADMIN_TOKEN, PASSWORD, 'AAAAAAAAAA', 'a-secret-path', 'another-secret-path'])
    expect(JSON.stringify(body) + shown.out).not.toContain(secret)

  expect((await run(['quota', 'set', '--records', '20'])).code).toBe(0)
  const { out } = await run(['config', 'show', '--changed'])
  expect(out).toMatch(/^repos.max_records_per_account +20 +run time +holdfast quota set$/m)
  expect(out).not.toContain('max_storage_per_account')
})
