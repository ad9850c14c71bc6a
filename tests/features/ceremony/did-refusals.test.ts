/** What is refused at the end of a ceremony, in which order, and that a refusal leaves nothing behind. */
import { beforeAll, describe, expect, test } from 'bun:test'
import { base64url } from '../../../src/protocol/base64url.ts'
import { genesisOperation, signOperation } from '../../../src/protocol/plc.ts'
import {
  begin,
  bear,
  didRequest,
  forCeremonies,
  genesisOf,
  prepared,
  sendDid,
  signingKeyFor,
} from '../../support/clients/ceremony.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { deviceKey } from '../../support/clients/wallet.ts'
import shares from '../../vectors/contract/shamir-share-v2.json' with { type: 'json' }
import webVectors from '../../vectors/contract/did-web-ceremony-v1.json' with { type: 'json' }
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

let keyId: string
const { pds, line } = useWorld({ line: true, config: forCeremonies })
const wallet = setUp(() => begin(pds, 'alice'))
beforeAll(async () => {
  keyId = (await signingKeyFor(pds, wallet)).body.keyId
})

const refused = (status: number, code: string) => ({ status, body: { error: { code } } })
const invalid = refused(400, 'INVALID_CLAIM')
const send = (changes: Record<string, unknown>) =>
  sendDid(pds, wallet, { ...didRequest(pds, wallet, keyId), ...changes })
const sent = () => line.arrived.length

/** Nothing was told to the directory, nothing is stored, and the ceremony can go on. */
async function expectUntouched(): Promise<void> {
  expect(sent()).toBe(0)
  expect(await pds.rows('ceremony', { handle: wallet.handle }, ['did'])).toEqual([{ did: null }])
  expect(await pds.rows('account', {}, ['did'])).toEqual([])
}

describe('a request', () => {
  test('needs the session of an account in the making', async () => {
    const json = didRequest(pds, wallet, keyId)
    const ask = (headers: Record<string, string>) => request(`${pds.url}/v1/dids`, { json, headers })
    expect(await ask({})).toMatchObject(refused(401, 'AUTHENTICATION_REQUIRED'))
    for (const token of [
      '',
      'x',
      base64url(new Uint8Array(32)),
      `${wallet.token}=`,
      wallet.token.slice(1),
      `${wallet.token} x`,
    ])
      expect({ token, ...(await ask({ authorization: `Bearer ${token}` })) }).toMatchObject(
        refused(401, 'UNAUTHORIZED'),
      )
    for (const scheme of ['DPoP', 'Basic'])
      expect(await ask({ authorization: `${scheme} ${wallet.token}` })).toMatchObject(refused(401, 'UNAUTHORIZED'))
    // The session opens nothing else.
    for (const [path, method] of [
      ['/v1/did-web/document', 'POST'],
      ['/v1/handles', 'POST'],
      ['/v1/recovery/escrow-share', 'PUT'],
      ['/xrpc/com.atproto.server.getSession', 'GET'],
    ] as const)
      expect(
        (
          await request(`${pds.url}${path}`, {
            method,
            headers: bearer(wallet.token),
            ...(method !== 'GET' && { json: {} }),
          })
        ).status,
      ).toBeOneOf([400, 401])
    await expectUntouched()
  })

  test('has the members that belong to it, of the right types', async () => {
    for (const [name, value] of [
      ['rotationKeyPublic', undefined],
      ['rotationKeyPublic', null],
      ['rotationKeyPublic', 1],
      ['signedCreationOp', 'x'],
      ['signedCreationOp', []],
      ['didWebDocument', {}],
      ['password', 1],
      ['recoveryKey', 1],
      ['escrowShare', {}],
    ] as const)
      expect({ name, value, ...(await send({ [name]: value })) }).toMatchObject({
        name,
        ...refused(422, 'InvalidRequest'),
      })
    const plain = await fetch(`${pds.url}/v1/dids`, { method: 'POST', headers: bearer(wallet.token), body: '{}' })
    expect(plain.status).toBe(415)
    await expectUntouched()
  })

  test('comes after the signing key was asked for', async () => {
    const hasty = await begin(pds, 'hasty')
    expect(await sendDid(pds, hasty, didRequest(pds, hasty, keyId))).toMatchObject(invalid)
    expect((await sendDid(pds, hasty, didRequest(pds, hasty, keyId))).body.error.message).toContain('signing key')
  })

  test('has a password unless the server does without', async () => {
    for (const password of [undefined, null, '', 'short', 'x'.repeat(257)])
      expect(await send({ password })).toMatchObject(invalid)
    await pds.restart({ accounts: { passwordOptional: true } })
    for (const password of ['', 'short']) expect(await send({ password })).toMatchObject(invalid)
    await pds.restart({ accounts: { passwordOptional: false } })
    await expectUntouched()
  })

  test('has share and recovery key if its DID is a did:plc, and neither if it is a did:web', async () => {
    const web = { signedCreationOp: undefined, didWebDocument: webVectors.request.didWebDocument }
    const none = { recoveryKey: undefined, escrowShare: undefined }
    for (const changes of [
      none,
      { recoveryKey: undefined },
      { escrowShare: undefined },
      { ...web },
      { ...web, recoveryKey: undefined },
      { ...web, escrowShare: undefined },
      { ...none, signedCreationOp: undefined },
      { signedCreationOp: undefined },
      { didWebDocument: web.didWebDocument },
      { ...none, didWebDocument: web.didWebDocument },
    ])
      expect({ changes: Object.keys(changes), ...(await send(changes)) }).toMatchObject(invalid)
    await expectUntouched()
  })

  test.each([...shares.reject, ...shares.wrongIndexForEscrow])('has share 2, whole: $name', async (vector) => {
    const answer = await send({ escrowShare: vector.base32 })
    expect(answer).toMatchObject(invalid)
    expect(answer.body.error.message).toMatch(
      /^escrowShare (is not a share: (format|version|checksum|index)|must be share 2)$/,
    )
    await expectUntouched()
  })

  test('is told of the first fault', async () => {
    const broken = { password: '', escrowShare: 'x', signedCreationOp: {} }
    expect((await send(broken)).body.error.message).toContain('password')
    expect((await send({ ...broken, password: 'long enough' })).body.error.message).toContain('escrowShare')
    expect((await send({ signedCreationOp: {} })).body.error.message).toContain('operation')
  })
})

describe('an operation', () => {
  const cases: Record<string, () => Record<string, unknown>> = {
    'without did:key': () => ({ rotationKeyPublic: wallet.device.did.slice('did:key:'.length) }),
    'of another device': () => ({ rotationKeyPublic: deviceKey().did }),
    'with a member too many': () => ({ signedCreationOp: { ...genesisOf(pds, wallet, keyId), nonce: 'x' } }),
    'without signature': () => ({ signedCreationOp: { ...genesisOf(pds, wallet, keyId), sig: undefined } }),
    'with a padded signature': () => {
      const operation = genesisOf(pds, wallet, keyId)
      return { signedCreationOp: { ...operation, sig: `${operation.sig}==` } }
    },
    'with prev': () => ({
      signedCreationOp: genesisOf(pds, wallet, keyId, {
        prev: 'bafyreifrgjw4tpjxylzjesl7fxvfvsgymrkastojjb7mgz6pkzx6ymjseq',
      }),
    }),
    'of no rotation keys': () => ({ signedCreationOp: genesisOf(pds, wallet, keyId, { rotationKeys: [] }) }),
    'with the device second': () => ({
      signedCreationOp: genesisOf(pds, wallet, keyId, {
        rotationKeys: [wallet.recovery.did, wallet.device.did, keyId],
      }),
    }),
    'with six rotation keys': () => ({
      signedCreationOp: genesisOf(pds, wallet, keyId, {
        rotationKeys: [
          wallet.device.did,
          wallet.recovery.did,
          keyId,
          deviceKey().did,
          deviceKey().did,
          deviceKey().did,
        ],
      }),
    }),
    'for another handle': () => ({
      signedCreationOp: genesisOf(pds, wallet, keyId, { alsoKnownAs: ['at://mallory.test'] }),
    }),
    'for the handle in capitals': () => ({
      signedCreationOp: genesisOf(pds, wallet, keyId, { alsoKnownAs: ['at://Alice.test'] }),
    }),
    'for another server': () => ({
      signedCreationOp: genesisOf(pds, wallet, keyId, {
        services: { atproto_pds: { type: 'AtprotoPersonalDataServer', endpoint: 'https://pds.example' } },
      }),
    }),
    'with a slash after the server': () => ({
      signedCreationOp: genesisOf(pds, wallet, keyId, {
        services: { atproto_pds: { type: 'AtprotoPersonalDataServer', endpoint: `${pds.url}/` } },
      }),
    }),
    'without a service': () => ({ signedCreationOp: genesisOf(pds, wallet, keyId, { services: {} }) }),
    'with another signing key': () => ({ signedCreationOp: genesisOf(pds, wallet, deviceKey().did) }),
    'without the recovery key': () => ({ recoveryKey: deviceKey().did }),
    'signed by the recovery key': () => {
      const { handle, device, recovery } = wallet
      const operation = genesisOperation({
        signingKey: keyId,
        handle,
        rotationKeys: [device.did, recovery.did],
        pdsEndpoint: pds.url,
      })
      return { signedCreationOp: signOperation(operation, recovery.key) }
    },
  }

  test.each(Object.keys(cases))('%s is refused before anybody hears of it', async (name) => {
    expect(await send(cases[name]!())).toMatchObject(invalid)
    await expectUntouched()
  })

  test('that is right makes the account after all of this', async () => {
    expect(await send({})).toMatchObject({ status: 200 })
    expect(line.arrived.map(({ method }) => method)).toEqual(['POST'])
  })
})

test('the session of an account ends no ceremony', async () => {
  const { session } = await bear(pds, 'bob')
  const carol = await begin(pds, 'carol')
  expect(await sendDid(pds, { ...carol, token: session }, await prepared(pds, carol))).toMatchObject(
    refused(401, 'UNAUTHORIZED'),
  )
})

test('nothing of what is secret is in the log', () => {
  const lines = JSON.stringify(pds.log)
  for (const secret of [wallet.token, wallet.code, wallet.share, wallet.email, 'correct horse'])
    expect(lines).not.toContain(secret)
})
