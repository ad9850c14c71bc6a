/** The entries of `agent_auth.trusted_issuers`: issuers whose assertions about agents are trusted, and their keys. */
import { type KeyObject, createPublicKey } from 'node:crypto'
import { fitsAlgorithm, foreignAlgorithms, type ForeignAlgorithm } from '../../protocol/foreign-keys.ts'
import { type EntryReader, distinct, tableKind } from './config-entries.ts'
import { type Kind, bad, checked, choice, httpUrl, listOf, text } from './config-kinds.ts'

export interface TrustedIssuer {
  /** Compared with the token's `iss` byte for byte. */
  issuer: string
  /** The expected `aud`; `null` means the public URL. */
  audience: string | null
  algorithm: ForeignAlgorithm
  keys: { source: 'fixed'; publicKeysPem: readonly string[] } | { source: 'jwks'; url: string }
}

const httpsUrl: Kind<string> = checked(httpUrl, (url) =>
  url.startsWith('https://') ? [] : [{ at: '', fault: 'must start with https://' }],
)

const publicKeyPem: Kind<string> = checked(text, (pem) =>
  parsePublicKey(pem) === null ? [{ at: '', fault: 'expected a public key in PEM form' }] : [],
)

const trustedIssuer = tableKind<TrustedIssuer>(
  'issuer',
  (entry) => {
    const issuer = entry.required('issuer', text)
    const audience = entry.optional('audience', text)
    const algorithm = entry.has('algorithm') ? entry.optional('algorithm', choice(...foreignAlgorithms)) : 'ES256'
    const keys = readKeys(entry)
    if (issuer === null || algorithm === null || keys === null) return null
    if (keys.source === 'fixed' && !keys.publicKeysPem.every((pem) => fitsAlgorithm(parsePublicKey(pem)!, algorithm))) {
      return entry.fault('', `public key does not match ${algorithm}`)
    }
    return { issuer, audience, algorithm, keys }
  },
  () => bad('can be set in the file only'),
)

export const trustedIssuers = distinct(listOf(trustedIssuer), 'issuer', (entry) => entry.issuer)

/** Reads the keys, which must be given in exactly one of three ways. */
function readKeys(entry: EntryReader): TrustedIssuer['keys'] | null {
  const given = ['public_key_pem', 'public_keys_pem', 'jwks_url'].filter((name) => entry.has(name))
  if (given.length !== 1) return entry.fault('', 'needs exactly one of public_key_pem, public_keys_pem and jwks_url')
  const pem = entry.optional('public_key_pem', publicKeyPem)
  if (pem !== null) return { source: 'fixed', publicKeysPem: [pem] }
  const pems = entry.optional('public_keys_pem', listOf(publicKeyPem))
  if (pems !== null) return { source: 'fixed', publicKeysPem: pems }
  const url = entry.optional('jwks_url', httpsUrl)
  return url === null ? null : { source: 'jwks', url }
}

/** Returns null unless the text is an SPKI public key. A private key is rejected: it should not be in the file. */
function parsePublicKey(pem: string): KeyObject | null {
  if (!pem.trimStart().startsWith('-----BEGIN PUBLIC KEY-----')) return null
  try {
    return createPublicKey(pem)
  } catch {
    return null
  }
}
