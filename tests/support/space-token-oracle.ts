/**
 * A second reading of the tokens and signed requests of permissioned data, written for plainness from the same text and
 * with other libraries than the server's.
 */
import type { PublicKey } from '../../src/protocol/keys.ts'
import { didPattern, isShortDid, isSigned, spaceAuthority } from './space-oracle.ts'

type Claims = Record<string, any>

function partsOf(
  text: string,
  typ: string,
  maxSecs: number,
  nowSecs: number,
): { header: Claims; claims: Claims } | null {
  const parts = text.split('.')
  if (parts.length !== 3 || text.length > 8192) return null
  if (!parts.every((part) => part !== '' && !/[^A-Za-z0-9_-]/.test(part))) return null
  if (Buffer.from(parts[2]!, 'base64url').toString('base64url') !== parts[2]) return null
  let header: Claims
  let claims: Claims
  try {
    ;[header, claims] = parts.slice(0, 2).map((part) => JSON.parse(Buffer.from(part, 'base64url').toString())) as [
      Claims,
      Claims,
    ]
  } catch {
    return null // no JSON
  }
  if (![header, claims].every((part) => Object.prototype.toString.call(part) === '[object Object]')) return null
  const { iat, exp, jti } = claims
  const hasLife = [iat, exp].every((secs) => Number.isSafeInteger(secs) && secs >= 0) && exp > iat
  if (!hasLife || exp - iat > maxSecs || iat > nowSecs + 5 || nowSecs >= exp + 5) return null
  if (typeof jti !== 'string' || jti === '' || jti.length > 128 || [...jti].some((c) => c < ' ' || c > '~')) return null
  return header['typ'] === typ && !('crit' in header) ? { header, claims } : null
}

async function isTokenOf(text: string, { header }: { header: Claims }, by: PublicKey): Promise<boolean> {
  const end = text.lastIndexOf('.')
  return (
    header['alg'] === { p256: 'ES256', k256: 'ES256K' }[by.curve] &&
    isSigned(Buffer.from(text.slice(0, end)), Buffer.from(text.slice(end + 1), 'base64url'), by, false)
  )
}

export async function isDelegation(text: string, nowSecs: number, by: PublicKey): Promise<boolean> {
  const read = partsOf(text, 'atproto-space-delegation+jwt', 300, nowSecs)
  if (read === null) return false
  const { header, claims } = read
  const authority = typeof claims['sub'] === 'string' ? spaceAuthority(claims['sub']) : null
  return (
    header['kid'] === '#atproto' &&
    typeof claims['iss'] === 'string' &&
    isShortDid(claims['iss']) &&
    new RegExp(`^${didPattern}$`).test(claims['iss']) &&
    authority !== null &&
    claims['aud'] === `${authority}#atproto_space_host` &&
    !('lxm' in claims) &&
    isTokenOf(text, read, by)
  )
}

/** `holders` are the keys that may be named. */
export async function isCredential(
  text: string,
  nowSecs: number,
  by: PublicKey,
  holders: readonly string[],
): Promise<boolean> {
  const read = partsOf(text, 'atproto-space-credential+jwt', 3600, nowSecs)
  if (read === null) return false
  const { header, claims } = read
  return (
    ['#atproto', '#atproto_space'].includes(header['kid']) &&
    typeof claims['sub'] === 'string' &&
    claims['iss'] === spaceAuthority(claims['sub']) &&
    !('aud' in claims) &&
    holders.includes(claims['cnf']?.kid) &&
    isTokenOf(text, read, by)
  )
}

/** An attestation for the host of `authority`; the client names its key, which is looked up elsewhere. */
export async function isAttestation(text: string, authority: string, nowSecs: number, by: PublicKey): Promise<boolean> {
  const read = partsOf(text, 'atproto-client-attestation+jwt', 300, nowSecs)
  if (read === null) return false
  const { header, claims } = read
  const isName = (name: unknown) => typeof name === 'string' && name.length > 0 && name.length <= 2048
  return (
    isName(header['kid']) &&
    isName(claims['iss']) &&
    claims['sub'] === claims['iss'] &&
    claims['aud'] === `${authority}#atproto_space_host` &&
    isTokenOf(text, read, by)
  )
}

// Signed requests

/**
 * Whether the values of `Signature-Input` and `Signature` sign these components with the key, of P-256 and with this
 * name. Reads dictionaries by their expressions.
 */
export async function isSignedRequest(
  { input, signature }: { input: string; signature: string },
  components: readonly (readonly [string, string])[],
  by: PublicKey,
  name: string,
  needsName: boolean,
): Promise<boolean> {
  const ownOf = (field: string): string | null => {
    const members = field.match(/(?:"(?:\\[^]|[^"\\])*("|\\?$)|[^",])+|(?<=,|^)(?=,|$)/g) ?? []
    const own = members.map((member) => member.trim()).filter((member) => /^atproto-space(?![a-z0-9_.*-])/.test(member))
    return own.length === 1 && own[0]!.startsWith('atproto-space=') ? own[0]!.slice('atproto-space='.length) : null
  }
  const own = ownOf(input)
  const bytes = /^:([A-Za-z0-9+/]{86})(?:==)?:$/.exec(ownOf(signature) ?? '')?.[1]
  const start = `(${components.map(([component]) => JSON.stringify(component)).join(' ')})`
  if (!bytes || Buffer.from(bytes, 'base64').toString('base64') !== `${bytes}==` || !own?.startsWith(start))
    return false
  const value = String.raw`"(?:[ !#-\[\]-~]|\\["\\])*"|-?[1-9]\d{0,14}|0|\?0|[A-Za-z*][\w!#$%&'*+.^|~:/` + '`-]*'
  if (!new RegExp(`^(?:;[a-z*][a-z0-9_.*-]*(?:=(?:${value}))?)*$`).test(own.slice(start.length))) return false
  const parameters = [...own.slice(start.length).matchAll(new RegExp(`;([a-z*][a-z0-9_.*-]*)(?:=(${value}))?`, 'g'))]
  const names = parameters.map(([, parameter]) => parameter)
  if (new Set(names).size < names.length || (needsName && !names.includes('keyid'))) return false
  const expected: Record<string, string> = { keyid: `"${name}"`, alg: '"ecdsa-p256-sha256"' }
  if (parameters.some(([, parameter, given]) => (expected[parameter!] ?? given) !== given)) return false
  const base = [...components, ['@signature-params', own]].map(([component, text]) => `"${component}": ${text}`)
  return isSigned(Buffer.from(base.join('\n')), Buffer.from(bytes, 'base64'), by, true)
}
