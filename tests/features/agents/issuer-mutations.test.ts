/** Thousands of tokens that were changed in one place or several, none of which may count, or break anything. */
import { beforeAll, expect, test } from 'bun:test'
import { createAccount } from '../../support/clients/account.ts'
import type { Answer } from '../../support/clients/http.ts'
import {
  ASSERTION_REVOKED,
  fixedIssuer,
  identityAssertion,
  issuerKey,
  notifyEvent,
  presentIdentity,
  revocation,
  startKeyHost,
} from '../../support/servers/issuer.ts'
import { Random } from '../../support/random.ts'
import { countOf } from '../../support/agent-rows.ts'
import { setUp } from '../../support/set-up.ts'
import { useWorld } from '../../support/world.ts'

const ROUNDS = 1250
const BATCH = 25
const PUBLISHED = 'https://jwks.example.net'

const key = issuerKey('k')
const host = setUp(() => startKeyHost([key.jwk]))
const { pds } = useWorld({
  config: () => ({
    agentAuth: { trustedIssuers: [fixedIssuer([key]), host.entry({ issuer: PUBLISHED })] },
    rateLimit: { enabled: false },
  }),
})
beforeAll(async () => {
  await createAccount(pds, 'alice')
})

const CHARS = 'ABCXYZabcxyz0189-_.=+/ \n\0é'

/** Changes characters, moves or cuts parts. Never returns the text itself. */
function mangled(random: Random, text: string): string {
  const at = random.below(text.length)
  const parts = text.split('.')
  const mutant = random.of([
    () => text.slice(0, at) + random.of([...CHARS]) + text.slice(at + 1),
    () => text.slice(0, at) + text.slice(at + 1),
    () => text.slice(0, at) + random.of([...CHARS]) + text.slice(at),
    () => text.slice(0, at),
    () => parts.toReversed().join('.'),
    () => `${text}.${parts[random.below(3)]}`,
    () => parts.with(random.below(3), '').join('.'),
    () => parts.with(random.below(3), parts[random.below(3)]!).join('.'),
    () => parts.with(1, Buffer.from(hostile(random)).toString('base64url')).join('.'),
    () => text.toLowerCase(),
  ])()
  return mutant.trim() === text ? mangled(random, text) : mutant
}

const values: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1e308,
  -1e308,
  2 ** 53,
  1e-7,
  '',
  ' ',
  '\0',
  '\ud800',
  'x'.repeat(5000),
  [],
  [null],
  {},
  { sub: { sub: 'a' } },
  { __proto__: null, toString: 1 },
  '__proto__',
  'did:plc:aaaaaaaaaaaaaaaaaaaaaaaa',
  [['a']],
]

const hostile = (random: Random): string => JSON.stringify(random.of(values) ?? null)

const names = [
  'aud',
  'sub',
  'exp',
  'nbf',
  'iat',
  'jti',
  'auth_time',
  'email_verified',
  'events',
  'iss',
  'scope',
  '__proto__',
  'constructor',
]

/** Members with values of all kinds; whose signature is right. */
function altered(random: Random, from: readonly string[]): Record<string, unknown> {
  const count = 1 + random.below(3)
  return Object.fromEntries(Array.from({ length: count }, () => [random.of(from), random.of(values)]))
}

async function attack(seed: number, attempt: (random: Random) => Promise<Answer>): Promise<Map<number, number>> {
  const random = new Random(seed)
  const statuses = new Map<number, number>()
  for (let done = 0; done < ROUNDS; done += BATCH) {
    const answers = await Promise.all(Array.from({ length: BATCH }, () => attempt(random)))
    for (const { status, body } of answers) {
      if (status >= 500) throw new Error(`${status} ${JSON.stringify(body)}`)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  return statuses
}

const issuers = [{}, { iss: PUBLISHED }]

test('no assertion whose text was changed counts', async () => {
  const before = await countOf(pds)
  const statuses = await attack(1, (random) =>
    presentIdentity(pds, mangled(random, identityAssertion(pds, key, { claims: random.of(issuers) }))),
  )
  expect([...statuses.keys()].toSorted()).toEqual([400, 401, 403])
  expect(await countOf(pds)).toEqual(before)
})

test('no assertion with members of the wrong kind breaks anything', async () => {
  const before = await countOf(pds)
  const statuses = await attack(2, (random) => {
    const claims = { ...random.of(issuers), email: 'nobody@example.com', ...altered(random, names) }
    const header =
      random.below(3) === 0 ? altered(random, ['alg', 'kid', 'typ', 'crit', 'b64', 'jwk', 'zip', 'enc']) : {}
    return presentIdentity(pds, identityAssertion(pds, key, { claims, header }))
  })
  expect([...statuses.keys()].toSorted()).toEqual([400, 401, 403])
  expect(await countOf(pds)).toEqual(before)
})

test('no event whose text was changed ends anybody', async () => {
  await presentIdentity(pds, identityAssertion(pds, key))
  const before = await countOf(pds)
  const statuses = await attack(3, (random) =>
    notifyEvent(pds, mangled(random, revocation(pds, key, { claims: random.of(issuers) }))),
  )
  expect([...statuses.keys()]).toEqual([400])
  expect(await countOf(pds)).toEqual(before)
})

test('no event with members of the wrong kind breaks anything', async () => {
  const before = await countOf(pds)
  const statuses = await attack(4, (random) => {
    const events = { [ASSERTION_REVOKED]: random.of(values) }
    const claims = {
      ...random.of(issuers),
      sub: 'nobody',
      ...(random.below(2) === 0 && { events }),
      ...altered(random, names),
    }
    return notifyEvent(pds, revocation(pds, key, { claims }))
  })
  expect([...statuses.keys()].toSorted()).toEqual([202, 400])
  expect(await countOf(pds)).toEqual(before)
  expect((await presentIdentity(pds, identityAssertion(pds, key))).body.error).toBe('interaction_required')
})
