/** What the doctor says of the archive of PostgreSQL's log, whichever database the suite runs on. */
import { expect, test } from 'bun:test'
import { checks, examine, type Finding } from '../../../src/features/operations/doctor/doctor.ts'
import type { Patient } from '../../../src/features/operations/doctor/finding.ts'
import { startServer } from '../../support/servers/postgres.ts'
import { until } from '../../support/until.ts'

const find = (databaseUrl: string, destination: string | null = null): Promise<Finding> =>
  examine(
    checks.find(({ name }) => name === 'log-archive')!,
    { config: { databaseUrl, backup: { destination } } } as Patient,
  )

test('the doctor says whether PostgreSQL archives its log, whether that fails, and for which standby commits wait', async () => {
  const server = await startServer()
  try {
    await server.createDatabase('archived')
    const url = server.url('archived')
    expect(await find(url)).toMatchObject({ state: 'warning', text: expect.stringContaining('archive_mode is off') })
    expect(await find(url, '/var/backups')).toMatchObject({
      state: 'ok',
      text: expect.stringMatching(/archive_mode is off: .* commits wait for no standby$/),
    })

    await server.configure({ archive_mode: 'on' })
    await server.crash()
    await server.restart()
    expect(await find(url)).toMatchObject({ state: 'fault', text: expect.stringContaining('archive_command is empty') })

    await server.configure({ archive_command: 'false' })
    await server.endLogFile()
    await until(async () => (await find(url)).text.startsWith('PostgreSQL fails to archive its log'))

    await server.configure({ archive_command: 'true' })
    await until(
      async () =>
        (await find(url)).text ===
        'archive_mode is on; synchronous_standby_names is empty, so commits wait for no standby',
    )

    await server.configure({ synchronous_standby_names: 'second' })
    await until(async () => (await find(url)).text === 'archive_mode is on; commits wait for second')

    await server.configure({ synchronous_commit: 'local' })
    await until(async () =>
      (await find(url)).text.endsWith('synchronous_commit is local, so commits wait for no standby'),
    )
  } finally {
    server.stop()
  }
})

test('a role that may not read settings or statistics of PostgreSQL is told so, and no green finding', async () => {
  const server = await startServer()
  try {
    await server.createDatabase('archived')
    await server.configure({ archive_mode: 'on', archive_command: 'true' })
    await server.crash()
    await server.restart()
    const url = await server.createRole('plain', 'archived')
    // Without any right of its own, a role may read them.
    expect(await find(url)).toEqual(await find(server.url('archived')))
    expect(await find(url)).toMatchObject({ state: 'ok' })
    for (const view of ['pg_stat_archiver', 'pg_settings']) {
      await server.withhold(view, 'archived')
      expect(await find(url)).toMatchObject({ state: 'warning', text: expect.stringContaining('cannot tell whether') })
    }
    expect(await find(server.url('archived'))).toMatchObject({ state: 'ok' })
  } finally {
    server.stop()
  }
})

test('the doctor expects no archive of a SQLite database', async () => {
  expect(await find('/var/lib/holdfast/holdfast.sqlite')).toMatchObject({ state: 'ok' })
})
