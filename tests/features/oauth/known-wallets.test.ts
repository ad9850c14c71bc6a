/**
 * Where no account has a wallet, no page speaks of wallets; where one has, every page offers them, whoever is meant.
 */
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { deleteAccount } from '../../../src/features/identity/account-changes/account-changes.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { createAccount } from '../../support/clients/account.ts'
import { bring } from '../../support/clients/brought.ts'
import { bear, forCeremonies, newWallet } from '../../support/clients/ceremony.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { OAuthClient } from '../../support/clients/oauth-client.ts'
import { askSession, sessionRequest, sovereignAccount, walletSession } from '../../support/clients/wallet.ts'
import { useWorld } from '../../support/world.ts'

/** A server on a busy machine takes its time to start. */
setDefaultTimeout(60_000)

const { pds } = useWorld({
  eachTest: true,
  config: { ...forCeremonies, accounts: { passwordOptional: true }, agentAuth: { anonymousEnabled: true } },
})

/** The pages that offer a wallet, to somebody of whom nothing is known. */
async function offering(): Promise<string[]> {
  const app = new OAuthClient(pds)
  const pages = {
    consent: app.authorizeUrl(await app.requestUri()),
    'sign-in': `${pds.url}/account/sign-in`,
    claim: `${pds.url}/agent/claim`,
  }
  const shown = await Promise.all(
    Object.entries(pages).map(async ([name, url]) => [name, String((await request(url)).body)] as const),
  )
  return shown.filter(([, body]) => body.includes('Use your wallet instead')).map(([name]) => name)
}

const EVERYWHERE = ['consent', 'sign-in', 'claim']

test('a server whose accounts all have passwords offers none', async () => {
  await createAccount(pds, 'alice')
  await createAccount(pds, 'bob')
  expect(await offering()).toEqual([])
})

describe('a wallet is offered once there is an account', () => {
  test('a wallet is offered once there is an account without a password', async () => {
    await sovereignAccount(pds, 'quinn', { password: undefined })
    expect(await offering()).toEqual(EVERYWHERE)
  })

  test('with a password and the key of a wallet, until it is deleted', async () => {
    const both = await sovereignAccount(pds, 'both')
    expect(await offering()).toEqual(EVERYWHERE)
    await deleteAccount(pds, both.did as Did)
    expect(await offering()).toEqual([])
  })

  test('whose identity its wallet has made', async () => {
    const { plcOp } = await bring(pds, 'brought')
    await createAccount(pds, 'brought', { plcOp })
    expect(await offering()).toEqual(EVERYWHERE)
  })

  test('that a wallet has made step by step', async () => {
    await bear(pds, 'born')
    expect(await offering()).toEqual(EVERYWHERE)
  })

  test('that leaves a share of a recovery key', async () => {
    const both = await sovereignAccount(pds, 'both')
    const session = await walletSession(pds, both.did)
    await pds.lose('known_wallet')
    const deposited = await request(`${pds.url}/v1/recovery/escrow-share`, {
      method: 'PUT',
      json: { share: newWallet('both').share },
      headers: bearer(session),
    })
    expect([deposited.status, await offering()]).toEqual([200, EVERYWHERE])
  })

  test('that signs in with a key which the server had not known of', async () => {
    const late = await sovereignAccount(pds, 'late')
    await pds.lose('known_wallet')
    expect(await offering()).toEqual([])
    expect(await askSession(pds, sessionRequest(pds, late))).toMatchObject({ status: 200 })
    expect(await offering()).toEqual(EVERYWHERE)
  })
})
