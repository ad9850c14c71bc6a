import { expect, test } from 'bun:test'
import { offeredCapabilities } from '../../src/platform/capabilities.ts'
import { Secret } from '../../src/platform/secret.ts'
import { type ConfigOverrides, testConfig } from '../harness/config.ts'

const offered = (overrides: ConfigOverrides) => offeredCapabilities(testConfig({ dataDir: '/nowhere', port: 0, publicUrl: 'http://localhost:2583' }, overrides))

const ALWAYS = ['sovereignSessions', 'walletConsent', 'walletAccountDelete', 'didWebHosting', 'appPasswordPersonalDetails'] as const

test('without configuration only what needs none is advertised', () => {
  expect(offered({})).toEqual([...ALWAYS])
})

test.each([
  ['the master key', { signingKeyMasterKey: new Secret(new Uint8Array(32)) }, ['createCeremony', 'escrow']],
  ['optional passwords', { accounts: { passwordOptional: true } }, ['optionalPassword']],
  ['the waitlist', { waitlist: { enabled: true } }, ['waitlist']],
  ['service registration of agents', { agentAuth: { serviceAuthEnabled: true } }, ['agents']],
  ['anonymous registration of agents', { agentAuth: { anonymousEnabled: true } }, ['agents']],
  [
    'a trusted issuer',
    { agentAuth: { trustedIssuers: [{ issuer: 'a', audience: null, algorithm: 'ES256', keys: { source: 'jwks', url: 'https://a.example' } }] } },
    ['agents'],
  ],
] satisfies [string, ConfigOverrides, string[]][])('%s adds its capabilities', (_, overrides, added) => {
  expect(offered(overrides).toSorted()).toEqual([...ALWAYS, ...added].toSorted() as never)
})
