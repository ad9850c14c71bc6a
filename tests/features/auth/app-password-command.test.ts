/** `holdfast app-password`, at a running server. */
import { expect, test } from 'bun:test'
import { createAccount, logIn, PASSWORD } from '../../support/clients/account.ts'
import { startLyingHost } from '../../support/faults/lying-host.ts'
import { PROGRAM, runProgram } from '../../support/servers/program.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { rateLimit: { enabled: false } } })
const alice = setUp(() => createAccount(pds, 'alice'))
const run = ([verb, ...words]: string[], password = PASSWORD) =>
  runProgram(
    ['app-password', verb!, '@alice.test', ...words, '--server', pds.url, '--password-stdin'],
    {},
    PROGRAM,
    `${password}\n`,
  )

const sessions = () => pds.rows('session', { did: alice.did }, ['id'])

test('a person makes a limited app password, sees it in the list, and revokes it', async () => {
  const made = await run(['create', 'weather bot', '--presets', 'post,upload-images', '--days', '30'])
  expect(made).toMatchObject({ code: 0 })
  await logIn(pds, alice, made.out.trim())
  const listed = await run(['list', '--json'])
  expect(JSON.parse(listed.out)).toMatchObject([
    {
      name: 'weather bot',
      scope: 'atproto repo:app.bsky.feed.post?action=create blob:image/*',
      expiresAt: expect.any(String),
      lastUsedAt: expect.any(String),
    },
  ])
  const before = await sessions()
  expect((await run(['list'])).out).toContain('weather bot')
  expect(await sessions()).toEqual(before)
  expect(await run(['revoke', 'weather bot'])).toMatchObject({ code: 0 })
  expect(JSON.parse((await run(['list', '--json'])).out)).toEqual([])
  expect(await run(['revoke', 'weather bot'])).toMatchObject({ code: 1 })
})

test('an app password is printed although the server does not end the session', async () => {
  await using host = startLyingHost()
  host.to = pds.url
  const { promise: ending, resolve } = Promise.withResolvers<Response>()
  host.lie = (nsid) => (nsid === 'com.atproto.server.deleteSession' ? ending : null)
  const words = ['app-password', 'create', 'alice.test', 'slow', '--server', host.url, '--password-stdin']
  const program = Bun.spawn([...PROGRAM, ...words], {
    stdin: Buffer.from(`${PASSWORD}\n`),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const { value } = await program.stdout.getReader().read()
  await logIn(pds, alice, new TextDecoder().decode(value).trim())
  resolve(new Response(null, { status: 502 }))
  expect(await program.exited).toBe(0)
  expect(await new Response(program.stderr).text()).toContain('could not end the session')
})

test('a wrong password and a wrong preset are told, and nothing is made', async () => {
  expect(await run(['create', 'other'], 'wrong')).toMatchObject({ code: 1, out: '' })
  const wrong = await run(['create', 'other', '--presets', 'everything'])
  expect(wrong).toMatchObject({ code: 1, out: '' })
  expect(wrong.err).toContain('presets must be some of')
  expect(await run(['create', 'other', '--days', '0'])).toMatchObject({ code: 2 })
})
