/** Services that sign their own tokens, with a key that their DID documents publish from then on. */
import { formatServiceToken } from '../../../src/protocol/service-token.ts'
import type { Did } from '../../../src/protocol/identifiers.ts'
import type { WebHost } from '../servers/did-web-host.ts'
import type { TestPds } from '../servers/pds.ts'
import type { Upstream } from '../servers/upstream.ts'
import { deviceKey, type DeviceKey } from './wallet.ts'
import { method, webDocument } from './web-holder.ts'

export const NOTICE = 'com.atproto.moderation.sendAbuseNotice'

function token({ ctx }: TestPds, iss: Did, lxm: string, key: DeviceKey): string {
  const iat = Math.floor(ctx.clock.now() / 1000)
  const claims = { iss, aud: ctx.config.serverDid, lxm, iat, exp: iat + 60, jti: crypto.randomUUID() }
  return formatServiceToken(key.key, claims)
}

/** A token of the service for one method, good for a minute. */
export function signedAs({ did, document }: Upstream, pds: TestPds, lxm = NOTICE): string {
  const key = deviceKey()
  document['verificationMethod'] = [method(did, 'atproto', key.did)]
  return token(pds, did, lxm, key)
}

const AUTHORITY_HOST = 'authority.web.test'
/** A moderation service on the web, whose notices a server may accept. */
export const NOTICE_AUTHORITY = `did:web:${AUTHORITY_HOST}` as Did

/** Its token for a notice. `pds` reaches the web. */
export function authorityToken({ pds, web }: { pds: TestPds; web: WebHost }): string {
  const key = deviceKey()
  pds.dns.setAddresses(AUTHORITY_HOST, '127.0.0.1')
  web.publishDidDocument(AUTHORITY_HOST, webDocument(pds, NOTICE_AUTHORITY, AUTHORITY_HOST, { atproto: key.did }))
  return token(pds, NOTICE_AUTHORITY, NOTICE, key)
}
