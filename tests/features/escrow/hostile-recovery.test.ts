/** Ten thousand requests that were changed at random: none is a fault of the server, and none gets a share. */
import { expect, setDefaultTimeout, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import { bearer, request } from '../../support/clients/http.ts'
import { startPds } from '../../support/servers/pds.ts'
import { Random } from '../../support/random.ts'
import {
  escrowEvents,
  newRecoveryCode,
  newShare,
  putShare,
  recoveryCodes,
  release,
  withMasterKey,
} from '../../support/clients/recovery.ts'
import { walletSession } from '../../support/clients/wallet.ts'

setDefaultTimeout(300_000)

const REQUESTS = 10_000
const AT_ONCE = 16

test('nothing that is nearly right opens anything', async () => {
  await using pds = await startPds({
    ...withMasterKey,
    recovery: { releaseDelaySecs: 0 },
    rateLimit: { enabled: false },
  })
  const alice = await createAccount(pds, 'alice')
  const wallet = await walletSession(pds, alice.did)
  const share = newShare()
  await putShare(pds, wallet, share)
  const code = await newRecoveryCode(pds, alice)
  const random = new Random(14)

  const values = [
    null,
    0,
    -1,
    1e308,
    true,
    '',
    ' ',
    [],
    {},
    [alice.did],
    { otp: code },
    '\u0000',
    '💥',
    'x'.repeat(70_000),
    alice.did,
  ]
  /** Never gives back what it was given. */
  const changedText = (text: string): string => {
    const at = random.below(text.length)
    const kinds = [
      () => text.slice(0, at) + random.of(['A', 'é', '\n', '\u0000', '%', '=', '-', '_', '.']) + text.slice(at + 1),
      () => text.slice(0, at) + text.slice(at + 1),
      () => text.slice(0, at) + random.of(['A', '=', ' ', '\u0000']) + text.slice(at),
      () => `${text}${random.of(['=', '==', '\n', 'A', '\u0000'])}`,
      () => text + text,
      () => text.split('').toReversed().join(''),
    ]
    for (;;) {
      const changed = random.of(kinds)()
      // A handle has no case, and a share no white space.
      if (changed.trim() !== text && changed.replaceAll(/\s/g, '') !== text) return changed
    }
  }
  const right: Record<string, Record<string, string>> = {
    'POST initiate': { identifier: alice.did, otp: code },
    'POST release': { identifier: alice.did, otp: code },
    'PUT escrow-share': { share: newShare() },
    'POST release/cancel': { share },
    'DELETE escrow-share': { share },
  }
  const mutated = (body: Record<string, string>): string => {
    const member = random.of(Object.keys(body))
    const { [member]: value, ...others } = body
    const kinds = [
      () => JSON.stringify({ ...others, [member]: changedText(value!) }),
      () => JSON.stringify({ ...others, [member]: random.of(values.filter((other) => other !== value)) }),
      () => JSON.stringify({ ...others, [changedText(member)]: value }),
      () => JSON.stringify([body]),
      () => JSON.stringify(body).slice(0, -1 - random.below(40)),
      () => '['.repeat(random.below(400)) + ']'.repeat(random.below(400)),
      () => JSON.stringify(Object.fromEntries(Object.entries(body).map(([name, text]) => [name, changedText(text)]))),
    ]
    return random.of(kinds)()
  }

  const statuses = new Set<number>()
  const one = async () => {
    const [name, body] = random.of(Object.entries(right))
    const [method, path] = name.split(' ') as [string, string]
    const isOwners = path !== 'initiate' && path !== 'release'
    // Cancelling and deleting read no body, so it is the token that is changed.
    const token =
      isOwners && path !== 'escrow-share' ? changedText(wallet) : method === 'DELETE' ? changedText(wallet) : wallet
    const headers = {
      'content-type': random.of([
        'application/json',
        'application/json',
        'application/json',
        'text/plain',
        'application/x-www-form-urlencoded',
      ]),
      ...(isOwners ? bearer(token.replaceAll(/[^\x21-\x7e]/g, '') + (token === wallet ? '' : '~')) : {}),
    }
    const answer = await request(`${pds.url}/v1/recovery/${path}`, { method, body: mutated(body), headers })
    statuses.add(answer.status)
    if (answer.status >= 500 || JSON.stringify(answer.body).includes(share))
      throw new Error(`${name} answered ${answer.status}`)
  }
  for (let sent = 0; sent < REQUESTS; sent += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, one))

  expect([...statuses].toSorted((a, b) => a - b)).toEqual([200, 400, 401, 415, 422])
  // Some of the requests for a code were those of her, by what was left out.
  expect((await recoveryCodes(pds, alice.email)).length).toBeLessThanOrEqual(5)
  expect(await escrowEvents(pds, alice.did)).toEqual(['deposited'])
  expect(pds.log.filter(({ level }) => level === 'error')).toEqual([])
  expect((await release(pds, alice.did, code)).body).toEqual({ status: 'released', share })
})
