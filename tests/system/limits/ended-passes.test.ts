/**
 * A stop does not wait for sweeps that have much to do: the next pass goes on. On a file, because connections to
 * PostgreSQL may close before a pass hears of the stop.
 */
import { expect, test } from 'bun:test'
import { deleteAccount } from '../../../src/features/identity/account-changes/account-changes.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount } from '../../support/clients/account.ts'
import { startPdsOnFile } from '../../support/servers/file-pds.ts'
import { thrownBy } from '../../support/thrown.ts'

test.each(['firehose-gc', 'abandoned-repos', 'admin-nonce-sweep', 'spaces'])(
  'a pass of %s ends with the server',
  async (name) => {
    await using pds = await startPdsOnFile({ spaces: { enabled: true } })
    const { did } = await createAccount(pds, 'leaver')
    await deleteAccount(pds, did as Did)
    const pass = thrownBy(pds.runSweep(name))
    await pds.stop()
    expect(await pass).toThrow('the server is shutting down')
  },
)

test.each(['name-claims', 'ceremonies'])(
  'a pass of %s, which asks the directory, ends with the server',
  async (name) => {
    await using pds = await startPdsOnFile()
    const did = 'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa'
    await pds.plant('name_claim', { handle: 'left.test', did, held_until: 0 })
    await pds.plant('ceremony', {
      id: 'left',
      handle: 'left-too.test',
      email: 'left@example.com',
      tier: 'free',
      invite_code: 'left',
      created_at: 0,
      did,
    })
    const pass = thrownBy(pds.runSweep(name))
    await pds.stop()
    expect(await pass).toThrow('the server is shutting down')
  },
)
