/**
 * The one table behind the server description and the mounting of routes: an endpoint that names a capability exists
 * exactly when it is advertised. Some are advertised for which there is no endpoint yet. Names are wire identifiers and
 * never change.
 */
import type { Config } from './config.ts'

interface Capability {
  readonly name: string
  readonly offered: (config: Config) => boolean
}

const always = () => true
const withMasterKey = (config: Config) => config.signingKeyMasterKey !== null

export const capabilities = [
  { name: 'createCeremony', offered: withMasterKey },
  { name: 'escrow', offered: withMasterKey },
  { name: 'sovereignSessions', offered: always },
  {
    name: 'agents',
    offered: ({ agentAuth }) => agentAuth.serviceAuthEnabled || agentAuth.anonymousEnabled || agentAuth.trustedIssuers.length > 0,
  },
  { name: 'walletConsent', offered: always },
  { name: 'optionalPassword', offered: ({ accounts }) => accounts.passwordOptional },
  { name: 'walletAccountDelete', offered: always },
  { name: 'didWebHosting', offered: always },
  { name: 'appPasswordPersonalDetails', offered: always },
  { name: 'waitlist', offered: ({ waitlist }) => waitlist.enabled },
] as const satisfies readonly Capability[]

export type CapabilityName = (typeof capabilities)[number]['name']

/** The names to advertise, in the order of the table. */
export const offeredCapabilities = (config: Config): CapabilityName[] =>
  capabilities.filter(({ offered }) => offered(config)).map(({ name }) => name)

export const isOffered = (config: Config, name: CapabilityName): boolean => offeredCapabilities(config).includes(name)
