/** `kill -9` at each operation of a rename: the next start goes on where the directory stands. */
import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAccount, type TestAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { holdPosts, startFaultyLine } from '../../support/faults/faulty-line.ts'
import { freePort } from '../../support/ports.ts'
import { ADMIN_TOKEN } from '../../support/servers/config.ts'
import { startPlcServer } from '../../support/servers/plc-server.ts'
import { startProgram, type RunningServer } from '../../support/servers/program.ts'
import { until } from '../../support/until.ts'

test('a rename goes on after every kill, and changes no identity twice', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-rename-'))
  await using plc = await startPlcServer()
  await using line = await startFaultyLine(plc.url)
  const port = await freePort()
  const [former, present] = [`http://localhost:${port}`, `http://renamed.localhost:${port}`]
  const env = {
    PORT: String(port),
    SERVICE_PUBLIC_URL: former,
    SERVICE_DATA_DIR: join(folder, 'data'),
    SERVICE_PLC_DIRECTORY_URL: line.url,
    SERVICE_SIGNING_KEY_MASTER_KEY: '07'.repeat(32),
    SERVICE_ADMIN_TOKEN: ADMIN_TOKEN,
    SERVICE_RATE_LIMIT_ENABLED: 'false',
  }
  const start = (changes = {}) => startProgram(['dev'], { ...env, ...changes }, folder)
  const startRenamed = () => start({ SERVICE_PUBLIC_URL: present, SERVICE_FORMER_URLS: former })
  const admin = async (json?: object) =>
    (await request(`${former}/v1/admin/host-rename`, { headers: bearer(ADMIN_TOKEN), ...(json && { json }) })).body
  let server: RunningServer = await start()
  try {
    const people: TestAccount[] = []
    for (const name of ['alice', 'bob', 'carol']) people.push(await createAccount({ url: former }, name))
    const moved = async () => {
      const found = await Promise.all(people.map(({ did }) => request(`${plc.url}/${did}/data`)))
      return found.filter(({ body }) => body.services.atproto_pds.endpoint === present).length
    }
    await server[Symbol.asyncDispose]()

    for (const [kills] of people.entries()) {
      const { reached, open } = holdPosts(line)
      server = await startRenamed()
      if (kills === 0) expect(await admin({ url: present, handles: 'keep' })).toMatchObject({ rename: {} })
      await reached
      await server[Symbol.asyncDispose]()
      // The directory gets the operation of a process that is gone.
      open()
      await until(async () => (await moved()) === kills + 1)
    }
    line.fate = () => 'answered'
    server = await startRenamed()
    // An operation whose answer was lost may still be under way, so its account is looked at again minutes later.
    await until(async () => Object.values((await admin()).rename.states as object).reduce((sum, n) => sum + n, 0) === 3)
    expect(await admin()).toMatchObject({ rename: { url: present, accounts: 3 } })
    for (const { did } of people) expect((await request(`${plc.url}/${did}/log`)).body).toHaveLength(2)
  } finally {
    await server[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  }
})
