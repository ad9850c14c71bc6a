/** The vector of a rotation, through the endpoint and with a real directory. */
import { beforeAll, expect, test } from 'bun:test'
import { addAccount } from '../../../src/features/identity/accounts/accounts.ts'
import { putStagedKey } from '../../../src/features/identity/repo-keys/staged-key-store.ts'
import { createRepo } from '../../../src/features/data/repo/repo.ts'
import type { Did, Handle } from '../../../src/protocol/identifiers.ts'
import { signingKey } from '../../../src/protocol/keys.ts'
import { operationCid, parseOperation, unsignedBytes } from '../../../src/protocol/plc.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { sessionToken } from '../../support/clients/session-token.ts'
import { withMasterKey } from '../../support/clients/recovery.ts'
import { Subscriber } from '../../support/clients/subscriber.ts'
import keys from '../../vectors/keys.json' with { type: 'json' }
import vector from '../../vectors/plc-repo-key-rotation-v1.json' with { type: 'json' }
import { useWorld } from '../../support/world.ts'

const did = vector.did as Did
const secretOf = (label: string) => Buffer.from(keys.keys.find((key) => key.label === label)!.privateKeyHex, 'hex')

const { pds, plc: directory } = useWorld({
  plc: true,
  config: { publicUrl: 'https://pds.holdfast.test', ...withMasterKey },
})
beforeAll(async () => {
  for (const { operation } of vector.auditLogBefore) await request(`${directory.url}/${did}`, { json: operation })
  const { ctx } = pds
  const wrapped = ctx.vault.wrap(secretOf('repo'))
  const present = vector.auditLogBefore[0]!.operation.verificationMethods.atproto
  await ctx.db.transaction(async (tx) => {
    await addAccount(tx, {
      did,
      handle: 'alice.holdfast.test' as Handle,
      email: null,
      passwordHash: null,
      signingKey: present,
      wrapped,
      createdAt: 0,
      deactivatedAt: null,
      deleteAfter: null,
    })
    await createRepo(ctx, tx, did, signingKey('p256', secretOf('repo')))
    await putStagedKey(tx, did, { signingKey: vector.stagedKey, wrapped: ctx.vault.wrap(secretOf('repo-staged')) }, 0)
  })
})

const complete = async (operation: unknown) =>
  request(`${pds.url}/v1/repo-keys/rotation/complete`, {
    json: { operation },
    headers: bearer(await sessionToken(pds, did)),
  })
const log = async () => (await request(`${directory.url}/${did}/log/audit`)).body.map(({ cid }: { cid: string }) => cid)

test('its bytes are those that are signed here', () => {
  const operation = parseOperation(vector.accept.operation)!
  expect(Buffer.from(unsignedBytes(operation)).toString('hex')).toBe(vector.accept.unsignedCborHex)
  expect(operationCid(operation).toString()).toBe(vector.accept.cid)
})

test.each(vector.reject.map((one) => [one.name, one] as const))('it is refused: %s', async (_, { operation }) => {
  expect(await complete(operation)).toMatchObject({ status: 400, body: { error: { code: 'InvalidRequest' } } })
  expect(await log()).toEqual(vector.auditLogBefore.map(({ cid }) => cid))
})

test('it is accepted, and once more when the directory has it', async () => {
  const accepted = { status: 200, body: { signingKey: vector.stagedKey } }
  const events = new Subscriber(pds.url)
  await events.opened
  expect(await complete(vector.accept.operation)).toMatchObject(accepted)
  expect(await log()).toEqual(vector.auditLogAfter.map(({ cid }) => cid))
  expect(await complete(vector.accept.operation)).toMatchObject(accepted)
  expect(await log()).toEqual(vector.auditLogAfter.map(({ cid }) => cid))
  expect((await events.until(2)).map(({ type }) => type)).toEqual(['#identity', '#sync'])
  events.close()
})
