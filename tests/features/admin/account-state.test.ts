/** What operators see of an account: how its holder signs in, its names, and how its share and its document stand. */
import { expect, test } from 'bun:test'
import { insertFurtherHandle } from '../../../src/features/identity/accounts/further-handle-store.ts'
import type { Did, Handle } from '../../../src/protocol/identifiers.ts'
import { createAccount } from '../../support/clients/account.ts'
import { bear, forCeremonies, operate } from '../../support/clients/ceremony.ts'
import { ADMIN_TOKEN } from '../../support/servers/pds.ts'
import { runProgram } from '../../support/servers/program.ts'
import { useWorld } from '../../support/world.ts'

const { pds } = useWorld({ config: { ...forCeremonies, accounts: { passwordOptional: true } } })

const lookUp = async (account: string) => (await operate(pds, '/v1/admin/accounts/lookup', { account })).body
const shown = async (account: string) =>
  (
    await runProgram(['account', 'show', account, '--url', pds.url], { SERVICE_ADMIN_TOKEN: ADMIN_TOKEN })
  ).out.replaceAll(/ {2,}/g, ': ')

test('an account that a wallet made: no password, a share in escrow, several handles', async () => {
  const kim = await bear(pds, 'kim', { password: null })
  await pds.ctx.db.transaction((tx) => insertFurtherHandle(tx, kim.did as Did, 'kimberly.test' as Handle, 1))
  const found = await lookUp(kim.did)
  expect(found).toMatchObject({
    hasPassword: false,
    furtherHandles: ['kimberly.test'],
    escrow: 'held',
    didWebHosting: false,
  })
  // Neither the share, nor its keys, nor when it was deposited.
  expect(JSON.stringify(found)).not.toContain(kim.share)
  expect(JSON.stringify(found)).not.toContain('did:key')
  const told = await shown(kim.did)
  for (const fact of ['password: none', 'recovery share: held', 'further handles: kimberly.test'])
    expect(told).toContain(fact)
  expect(told).not.toContain('document')
})

test('an account with a password and nothing else', async () => {
  const lee = await createAccount(pds, 'lee')
  expect(await lookUp(lee.did)).toMatchObject({
    hasPassword: true,
    furtherHandles: [],
    escrow: 'none',
    didWebHosting: false,
  })
  const told = await shown(lee.did)
  for (const fact of ['password: yes', 'recovery share: none']) expect(told).toContain(fact)
  expect(told).not.toContain('further handles')
})

test('a did:web whose document is served here, and one whose is not', async () => {
  const webster = await createAccount(pds, 'webster')
  const did = 'did:web:webster.example.com' as Did
  await pds.damage('account', { did: webster.did }, { did })
  await pds.plant('web_document', { did, document: '{}' })
  const listed = async () =>
    (await operate(pds, '/v1/admin/accounts')).body.accounts.find((account: { did: string }) => account.did === did)
      .didWebHosting
  expect([await listed(), (await lookUp(did)).didWebHosting]).toEqual([false, false])
  expect(await shown(did)).toContain('document: not served here')
  await pds.damage('web_document', { did }, { hosted_since: pds.clock.now() })
  expect([await listed(), (await lookUp(did)).didWebHosting]).toEqual([true, true])
  expect(await shown(did)).toContain('document: served here')
})
