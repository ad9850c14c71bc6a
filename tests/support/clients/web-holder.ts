/** Somebody with a did:web and a domain, who moves in. */
import { randomBytes } from 'node:crypto'
import { createAccount, type TestAccount } from './account.ts'
import type { WebHost } from '../servers/did-web-host.ts'
import type { FakeDns } from '../servers/dns.ts'
import { bearer, request } from './http.ts'
import type { TestPds } from '../servers/pds.ts'
import { deviceKey, type DeviceKey } from './wallet.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import { formatServiceToken } from '../../../src/protocol/service-token.ts'

export interface WebHolder extends TestAccount {
  host: string
  device: DeviceKey
  /** What the domain publishes, before and after the move. */
  document: ReturnType<typeof webDocument>
}

export interface World {
  pds: TestPds
  web: WebHost
  dns: FakeDns
}

export const method = (did: string, name: string, key: string) => ({
  id: `${did}#${name}`,
  type: 'Multikey',
  controller: did,
  publicKeyMultibase: key.slice('did:key:'.length),
})

export function webDocument(pds: Pick<TestPds, 'url'>, did: string, handle: string, keys: Record<string, string>) {
  return {
    '@context': ['https://www.w3.org/ns/did/v1'],
    id: did,
    alsoKnownAs: [`at://${handle}`],
    verificationMethod: Object.entries(keys).map(([name, key]) => method(did, name, key)),
    service: [{ id: `${did}#atproto_pds`, type: 'AtprotoPersonalDataServer', serviceEndpoint: pds.url }],
  }
}

/**
 * Arrives with a proof by the key that the domain publishes, publishes the key of this server, and becomes active.
 * `input.did` spells the DID otherwise.
 */
export async function arrive(
  { pds, web, dns }: World,
  host: string,
  input: Record<string, unknown> = {},
): Promise<WebHolder> {
  const { did = `did:web:${host}` } = input as { did?: string }
  const handle = `${host.split('.')[0]}.pds.test`
  const device = deviceKey()
  const old = deviceKey('k256')
  const service = { url: pds.ctx.config.publicUrl }
  dns.setAddresses(host, '127.0.0.1')
  web.publishDidDocument(host, webDocument(service, did, handle, { device: device.did, atproto: old.did }))
  const secs = Math.floor(pds.clock.now() / 1000)
  const claims = {
    iss: did as Did,
    aud: pds.ctx.config.serverDid,
    lxm: 'com.atproto.server.createAccount',
    iat: secs,
    exp: secs + 60,
    jti: randomBytes(16).toString('hex'),
  }
  const headers = bearer(formatServiceToken(old.key, claims))
  const account = await createAccount(pds, host.split('.')[0]!, { did, handle, ...input }, headers)
  const { body } = await account.call('com.atproto.identity.getRecommendedDidCredentials')
  const document = webDocument(service, did, handle, { device: device.did, atproto: body.verificationMethods.atproto })
  web.publishDidDocument(host, document)
  const activated = await account.call('com.atproto.server.activateAccount', { method: 'POST' })
  if (activated.status !== 200)
    throw new Error(`activation answered ${activated.status} ${JSON.stringify(activated.body)}`)
  return { ...account, host, device, document }
}

/** The domain now points at this server, through a proxy that says which host was asked for. */
export function pointAt(pds: Pick<TestPds, 'url'>, web: WebHost, host: string): void {
  web.publish(host, '/.well-known/did.json', async () => {
    const { status, body } = await fetch(`${pds.url}/.well-known/did.json`, { headers: { 'x-forwarded-host': host } })
    return new Response(body, { status })
  })
}

export const askHost = (pds: Pick<TestPds, 'url'>, host: string, init: Parameters<typeof request>[1] = {}) =>
  request(`${pds.url}/.well-known/did.json`, { ...init, headers: { host } })
