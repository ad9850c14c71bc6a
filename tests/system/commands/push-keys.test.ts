/** The operator's commands about the keys that seal push notifications. */
import { expect, test } from 'bun:test'
import { runProgram } from '../../support/servers/program.ts'
import { ADMIN_TOKEN, MASTER_KEY } from '../../support/servers/pds.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { notifications: { relay: 'ab'.repeat(32) }, signingKeyMasterKey: MASTER_KEY } })

const run = (words: string[], at = pds.url) => runProgram([...words, '--url', at], { SERVICE_ADMIN_TOKEN: ADMIN_TOKEN })
const json = async (words: string[]) => JSON.parse((await run([...words, '--json'])).out)
const time = '1970-01-01|\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d'

test('keys are listed, rotated, retired and revoked', async () => {
  expect(await json(['push', 'key', 'list'])).toEqual([])
  const rotated = await run(['push', 'key', 'rotate'])
  expect(rotated).toMatchObject({ code: 0, err: '' })
  expect(rotated.out).toStartWith('Key 1 now seals push notifications.\n\nKEY  STATE')
  expect(rotated.out).toMatch(new RegExp(`^1    active  (${time})  (${time})  did:key:zDn\\w+$`, 'm'))

  expect(await run(['push', 'key', 'retire', '1'])).toMatchObject({
    code: 1,
    out: '',
    err: expect.stringContaining('rotate the keys'),
  })
  expect(await json(['push', 'key', 'rotate'])).toMatchObject([
    { kid: 2, state: 'active' },
    { kid: 1, state: 'retired' },
  ])
  expect((await run(['push', 'key', 'retire', '1'])).out).toStartWith('Key 1 is retired.\n')
  expect((await run(['push', 'key', 'revoke', '1'])).out).toMatch(
    new RegExp(`^1    revoked  (${time})  (${time})  -$`, 'm'),
  )
  expect(await json(['push', 'key', 'list'])).toMatchObject([
    { kid: 2, state: 'active', publicKey: expect.stringMatching(/^did:key:/) },
    { kid: 1, state: 'revoked' },
  ])
})

test('a key that there is not, and one that is not named, are refused', async () => {
  expect(await run(['push', 'key', 'revoke', '77'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('no sender key with this number'),
  })
  expect(await run(['push', 'key', 'revoke', '../rotate'])).toMatchObject({
    code: 1,
    err: expect.stringContaining('number of a key'),
  })
  expect((await run(['push', 'key', 'revoke'])).code).toBe(2)
})
