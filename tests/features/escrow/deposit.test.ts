/** A share in escrow: how it is stored, and that it ends with the account. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { Secret } from '../../../src/base/secret.ts'
import { deleteAccount } from '../../../src/features/identity/account-changes/account-changes.ts'
import { depositShare } from '../../../src/features/identity/escrow/escrow.ts'
import { parseShare } from '../../../src/protocol/escrow-share.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount } from '../../support/clients/account.ts'
import { newRecoveryCode } from '../../support/clients/recovery.ts'
import vector from '../../vectors/contract/escrow-at-rest-v1.json' with { type: 'json' }
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'
import { thrownBy } from '../../support/thrown.ts'

let did: Did

const { pds } = useWorld({ config: { signingKeyMasterKey: new Secret(Buffer.from(vector.masterKeyHex, 'hex')) } })
const alice = setUp(() => createAccount(pds, 'alice'))
beforeAll(() => {
  did = alice.did as Did
})

const stored = async () => (await pds.rows('escrow_share', { did }))[0]?.share_wrapped ?? null
const events = () => pds.rows('escrow_audit', { did }, ['event', 'detail'])

describe('depositing', () => {
  const outcome = parseShare(vector.submittedShareBase32)
  if (!outcome.ok) throw new Error(outcome.fault)
  const deposit = () => pds.ctx.db.transaction((tx) => depositShare(pds.ctx, tx, did, outcome.share))

  test('a share is stored under the master key', async () => {
    expect(await deposit()).toBe('deposited')
    const wrapped = (await stored())!
    expect(wrapped).toHaveLength(vector.storedLength)
    expect(Buffer.from(pds.ctx.vault.unwrap(wrapped)).toString('hex')).toBe(vector.plaintextHex)
    expect(Buffer.from(pds.ctx.vault.unwrap(vector.stored)).toString('hex')).toBe(vector.plaintextHex)
  })

  test('a second one replaces it', async () => {
    const before = await stored()
    expect(await deposit()).toBe('rotated')
    expect(await stored()).not.toBe(before)
    const detail = JSON.stringify({ set_id: 16909060, version: 2 })
    expect(await events()).toEqual([
      { event: 'deposited', detail },
      { event: 'rotated', detail },
    ])
  })

  test('nothing is written if the transaction fails', async () => {
    const before = [await stored(), await events()]
    const failing = pds.ctx.db.transaction(async (tx) => {
      await depositShare(pds.ctx, tx, did, outcome.share)
      throw new Error('lost')
    })
    expect(await thrownBy(failing)).toThrow('lost')
    expect([await stored(), await events()]).toEqual(before)
  })

  test('share, codes and audit log end with the account', async () => {
    await newRecoveryCode(pds, alice)
    const codes = () => pds.rows('recovery_code', {}, ['did'])
    expect(await codes()).toEqual([{ did }])
    expect(await deleteAccount({ ctx: pds.ctx }, did)).toBe(true)
    expect([await stored(), await events(), await codes()]).toEqual([null, [], []])
  })
})
