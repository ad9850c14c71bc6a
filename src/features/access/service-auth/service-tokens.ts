/**
 * Service tokens: JWTs with which other services, and accounts on other servers, act here. The issuer's key signs them.
 *
 * The checks are in the order of the reference implementation, because services rely on its error names. If a signature
 * does not verify, it is checked once more against a freshly fetched DID document, because the key may have changed.
 */
import { authenticationRequired, Refusal } from '../../../http/errors.ts'
import { isOwnDid } from '../../../platform/configuration/service-names.ts'
import type { Context } from '../../../platform/context.ts'
import { verifierOf } from '../../../platform/secrets/signing-keys.ts'
import { verificationKey } from '../../../protocol/did-document.ts'
import { parseDid } from '../../../protocol/identifiers.ts'
import { decodeJws, verifyJws, type Jws } from '../../../protocol/jws.ts'
import { parseDidKey } from '../../../protocol/keys.ts'
import type { ServiceCaller } from '../callers/callers.ts'
import { resolveDid } from '../../identity/identity/identity.ts'

interface ServiceToken {
  jws: Jws
  iss: string
  aud: string
  exp: number
  lxm: string | null
  jti: string | null
}

const refused = (name: string, message: string) => new Refusal(401, name, message)
const poorlyFormatted = () => refused('BadJwt', 'poorly formatted jwt')

/** Types of other tokens, which must not be mistaken for service tokens. */
const foreignTypes: readonly unknown[] = ['at+jwt', 'refresh+jwt', 'dpop+jwt']
/** Service fragment of a labeler, which has its own signing key. */
export const LABELER = 'atproto_labeler'

/**
 * Verify a service token. Returns its issuer. `lxm` is the method that the token must name, or null for any; `accepts`
 * returns whether to trust the issuer, or throws. It runs before the issuer's key is fetched.
 *
 * Throws (401) `BadJwt`, `BadJwtType`, `JwtExpired`, `BadJwtLexiconMethod`, `BadJwtIss`, `UntrustedIss`,
 * `BadJwtSignature` or `BadJwtAudience`, and `AuthenticationRequired` if the issuer's key cannot be resolved.
 *
 * Source: atproto "HTTP API (XRPC)", "Inter-Service Authentication (JWT)".
 */
export async function verifyServiceToken(
  ctx: Context,
  text: string,
  { lxm, accepts }: { lxm: string | null; accepts?: (caller: ServiceCaller) => boolean | Promise<boolean> },
): Promise<ServiceCaller> {
  const token = parseServiceToken(text)
  if (ctx.clock.now() >= token.exp * 1000) throw refused('JwtExpired', 'jwt expired')
  if (lxm !== null && token.lxm !== lxm) {
    const fault = token.lxm === null ? 'missing' : 'bad'
    throw refused('BadJwtLexiconMethod', `${fault} jwt lexicon method ("lxm"). must match: ${lxm}`)
  }
  const [did = '', service = null] = token.iss.split('#')
  const iss = parseDid(did)
  if (iss === null) throw refused('BadJwtIss', 'jwt iss is not a valid did')
  const caller: ServiceCaller = { iss, service, jti: token.jti, exp: token.exp }
  if (accepts && !(await accepts(caller))) throw refused('UntrustedIss', 'Untrusted issuer')
  if (!(await isSigned(ctx, token, caller))) throw refused('BadJwtSignature', 'jwt signature does not match jwt issuer')
  if (!isOwnDid(ctx.config, token.aud)) throw refused('BadJwtAudience', 'jwt audience does not match service did')
  return caller
}

function parseServiceToken(text: string): ServiceToken {
  const jws = decodeJws(text)
  if (!jws) throw poorlyFormatted()
  const { typ } = jws.header
  if (foreignTypes.includes(typ)) throw refused('BadJwtType', `Invalid jwt type "${String(typ)}"`)
  const { iss, aud, exp, lxm, jti } = jws.payload
  if (typeof iss !== 'string' || typeof aud !== 'string' || typeof exp !== 'number') throw poorlyFormatted()
  return { jws, iss, aud, exp, lxm: typeof lxm === 'string' ? lxm : null, jti: typeof jti === 'string' ? jti : null }
}

async function isSigned(ctx: Context, token: ServiceToken, caller: ServiceCaller): Promise<boolean> {
  const known = await issuerKey(ctx, caller, false)
  if (known !== null && verifies(token, known)) return true
  const current = await issuerKey(ctx, caller, true)
  if (current === null) throw authenticationRequired('missing or bad key in did doc')
  return current !== known && verifies(token, current)
}

async function issuerKey(ctx: Context, { iss, service }: ServiceCaller, live: boolean): Promise<string | null> {
  const resolution = await resolveDid(ctx, iss, { live })
  if (!resolution.ok) throw authenticationRequired('could not resolve iss did')
  return verificationKey(resolution.document, service === LABELER ? 'atproto_label' : 'atproto')
}

function verifies({ jws }: ServiceToken, didKey: string): boolean {
  const key = parseDidKey(didKey)
  return key !== null && verifyJws(jws, key, verifierOf(key))
}
