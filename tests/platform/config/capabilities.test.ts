/** What the server description promises, held against what is there. */
import { expect, test } from 'bun:test'
import { builtBy } from '../../../src/app.ts'
import { features } from '../../../src/features.ts'
import { endpointName } from '../../../src/http/endpoint.ts'
import { capabilities, offeredCapabilities, type Built } from '../../../src/platform/configuration/capabilities.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { Secret } from '../../../src/base/secret.ts'
import { type ConfigOverrides, testConfig } from '../../support/servers/config.ts'
import { request } from '../../support/clients/http.ts'
import { startPds } from '../../support/servers/pds.ts'

const everything: Built = {
  capabilities: new Set(capabilities.map(({ name }) => name)),
  endpoints: new Set(capabilities.flatMap(({ endpoints }) => endpoints)),
}
const offered = (overrides: ConfigOverrides, built = everything) => [
  ...offeredCapabilities(
    testConfig({ dataDir: '/nowhere', port: 0, publicUrl: 'http://localhost:2583' }, overrides),
    built,
  ),
]

const ALWAYS = [
  'sovereignSessions',
  'walletConsent',
  'walletAccountDelete',
  'didWebHosting',
  'appPasswordPersonalDetails',
  'scopedAppPasswords',
] as const
const EVERY_SWITCH: ConfigOverrides = {
  signingKeyMasterKey: new Secret(new Uint8Array(32)),
  accounts: { passwordOptional: true },
  waitlist: { enabled: true },
  cases: { noticeAuthorities: ['did:web:authority.test' as Did] },
  agentAuth: { serviceAuthEnabled: true, anonymousEnabled: true },
  spaces: { enabled: true },
}

test('without configuration only what needs none is offered', () => {
  expect(offered({})).toEqual([...ALWAYS])
})

test.each([
  ['the master key', { signingKeyMasterKey: new Secret(new Uint8Array(32)) }, ['createCeremony', 'escrow']],
  ['optional passwords', { accounts: { passwordOptional: true } }, ['optionalPassword']],
  ['the waitlist', { waitlist: { enabled: true } }, ['waitlist']],
  ['spaces', { spaces: { enabled: true } }, ['spaces']],
  ['an authority of notices', { cases: { noticeAuthorities: ['did:web:authority.test' as Did] } }, ['abuseNotices']],
  ['service registration of agents', { agentAuth: { serviceAuthEnabled: true } }, ['agents']],
  ['anonymous registration of agents', { agentAuth: { anonymousEnabled: true } }, ['agents']],
  [
    'a trusted issuer',
    {
      agentAuth: {
        trustedIssuers: [
          { issuer: 'a', audience: null, algorithm: 'ES256', keys: { source: 'jwks', url: 'https://a.example' } },
        ],
      },
    },
    ['agents'],
  ],
] satisfies [string, ConfigOverrides, string[]][])('%s adds its capabilities', (_, overrides, added) => {
  expect(offered(overrides).toSorted()).toEqual([...ALWAYS, ...added].toSorted() as never)
})

test.each(capabilities.map((capability) => [capability.name, capability] as const))(
  '%s is not offered when its feature or any of its endpoints is missing',
  (name, { endpoints }) => {
    expect(offered(EVERY_SWITCH)).toContain(name)
    expect(
      offered(EVERY_SWITCH, { ...everything, capabilities: everything.capabilities.difference(new Set([name])) }),
    ).not.toContain(name)
    for (const endpoint of endpoints) {
      expect(
        offered(EVERY_SWITCH, { ...everything, endpoints: everything.endpoints.difference(new Set([endpoint])) }),
      ).not.toContain(name)
    }
  },
)

test('what a feature says it can do has all of its endpoints', () => {
  const built = builtBy(features)
  const missing = capabilities
    .filter(({ name }) => built.capabilities.has(name))
    .flatMap(({ name, endpoints }) =>
      endpoints.filter((one) => !built.endpoints.has(one)).map((one) => `${name}: ${one}`),
    )
  expect(missing).toEqual([])
})

test('an endpoint that depends on a capability is one that the capability consists of, or a page about it', () => {
  const built = builtBy(features)
  const stray = features
    .flatMap(({ routes = [] }) => routes)
    .flatMap((endpoint) =>
      'spec' in endpoint && endpoint.spec.capability !== undefined
        ? [{ name: endpoint.spec.capability, endpoint: endpointName(endpoint) }]
        : [],
    )
    .filter(({ endpoint }) => !/^\w+ \/account\//.test(endpoint))
    .filter(
      ({ name, endpoint }) =>
        !built.capabilities.has(name) ||
        !capabilities.some((one) => one.name === name && (one.endpoints as readonly string[]).includes(endpoint)),
    )
  expect(stray).toEqual([])
})

test('what a server says it offers is served, with every switch on and with none', async () => {
  for (const switches of [EVERY_SWITCH, {}]) {
    await using pds = await startPds(switches, { alone: 'without switches it has no master key' })
    const { body } = await request(`${pds.url}/xrpc/com.atproto.server.describeServer`)
    expect(body.extension).toEqual(body.custos)
    expect(body.extension.capabilities).toEqual(offered(switches, builtBy(features)))
    for (const { name, endpoints } of capabilities) {
      for (const [method, path] of endpoints
        .map((endpoint) => endpoint.split(' '))
        .filter((parts) => parts.length === 2)) {
        const { status } = await request(`${pds.url}${path}`, { method })
        if (body.extension.capabilities.includes(name)) expect([path, status]).not.toEqual([path, 404])
      }
    }
  }
})
