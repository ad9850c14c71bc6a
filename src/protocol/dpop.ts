/**
 * Demonstrating Proof of Possession: a token is only valid together with a fresh signature by its key.
 *
 * The check runs on every request of an app. It caches keys, and verifies signatures on the threads of WebCrypto,
 * because a signature takes longer than the rest of the request. With `verify` of `node:crypto` on the server's own
 * thread, a busy server handles half as many requests, although both take the same time when measured alone.
 *
 * Source: RFC 9449, section 4.3; RFC 7638 for thumbprints.
 */
import { createHash, createHmac } from 'node:crypto'
import { BoundedCache } from '../base/bounded-cache.ts'
import type { Millis } from './identifiers.ts'
import { parseP256Jwk, thumbprint } from './jwk.ts'
import { decodeObject } from './jws.ts'
import { hasLongHost } from './url-host.ts'

/** The bounds that the network uses: a proof is valid for 10 s, and either clock may be off by 180 s. */
const TOLERANCE_SECS = 180
const MAX_AGE_SECS = 10 + TOLERANCE_SECS
/** Another nonce is issued with each step of the clock. */
const NONCE_STEP_SECS = 60
/** How many nonces are accepted at a time: those of the next step, of the present one, and of the one before. */
const ACCEPTED_NONCES = 3
/**
 * How long a `jti` must be remembered: as long as its proof may be accepted, plus a tenth. A proof is accepted only
 * while its nonce is.
 */
export const PROOF_MEMORY_SECS = ACCEPTED_NONCES * (NONCE_STEP_SECS + 6)

/** Of proofs, by their names in JOSE. */
export const dpopAlgorithms: readonly string[] = ['ES256']
const MAX_PROOF_CHARS = 4096
const proofAlgorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

export interface DpopRequest {
  /** The `DPoP` header; null if there is none. Several headers are joined by commas, which no proof contains. */
  proof: string | null
  method: string
  /** The request's URL as the client sees it; query and fragment are ignored. */
  url: string
  /** Hash of the access token in the request; null at the authorization server, where a proof must not have `ath`. */
  accessTokenHash: string | null
  now: Millis
  isNonce(nonce: string): boolean
}

export type DpopOutcome =
  { ok: true; jkt: string; jti: string } | { ok: false; error: 'invalid_dpop_proof' | 'use_dpop_nonce'; reason: string }

/**
 * Check a proof against the request that carries it. Never throws on bad input. Returns the thumbprint of the key and
 * the `jti`, or the fault to report. The caller must remember the `jti`.
 */
export async function checkDpop({
  proof,
  method,
  url,
  accessTokenHash,
  now,
  isNonce,
}: DpopRequest): Promise<DpopOutcome> {
  if (proof === null || proof === '') return invalid('a DPoP proof is required')
  if (proof.length > MAX_PROOF_CHARS) return invalid('the DPoP proof is too long')
  const parts = proof.split('.')
  if (parts.length !== 3 || proof.includes(',')) return invalid('exactly one DPoP proof is required')
  const [header, payload, signature] = parts as [string, string, string]
  const key = await proofKey(header)
  if (typeof key === 'string') return invalid(key)
  const signed = Buffer.from(proof.slice(0, proof.lastIndexOf('.')), 'latin1')
  if (!(await crypto.subtle.verify(proofAlgorithm, key.key, Buffer.from(signature, 'base64url'), signed)))
    return invalid('the signature is invalid')
  const claims = decodeObject(payload)
  if (claims === null) return invalid('the claims are not a JSON object')
  const { iat, jti, htm, htu, nonce, ath } = claims

  const nowSecs = now / 1000
  if (typeof iat !== 'number' || !Number.isFinite(iat)) return invalid('iat is required')
  if (iat < nowSecs - MAX_AGE_SECS)
    return invalid(`the proof is too old: iat is ${apart(nowSecs, iat)} s behind the clock of this server`)
  if (iat > nowSecs + TOLERANCE_SECS)
    return invalid(`the proof is from the future: iat is ${apart(nowSecs, iat)} s ahead of the clock of this server`)
  if (typeof jti !== 'string' || jti === '') return invalid('jti is required')
  if (htm !== method) return invalid('htm does not match the request')
  if (typeof htu !== 'string' || !isSameResource(htu, url)) return invalid('htu does not match the request')
  if (accessTokenHash === null && ath !== undefined) return invalid('ath is not allowed here')
  if (accessTokenHash !== null && ath !== accessTokenHash) return invalid('ath does not match the access token')
  if (nonce !== undefined && typeof nonce !== 'string') return invalid('nonce must be a string')
  // Checked last: a client that only lacks a nonce has not used up its `jti`.
  if (nonce === undefined || !isNonce(nonce))
    return { ok: false, error: 'use_dpop_nonce', reason: 'the proof must contain the nonce of this response' }
  return { ok: true, jkt: key.jkt, jti }
}

/** Hash of an access token, as in the proof's `ath` (RFC 9449, 4.2). */
export const accessTokenHash = (token: string): string => createHash('sha256').update(token).digest('base64url')

const apart = (nowSecs: number, iat: number): number => Math.round(Math.abs(nowSecs - iat))

const invalid = (reason: string): DpopOutcome => ({ ok: false, error: 'invalid_dpop_proof', reason })

interface ProofKey {
  key: CryptoKey
  jkt: string
}

/** Most memory for known keys, and the estimated memory of one key in addition to its header. */
const MAX_KNOWN_BYTES = 24 * 1024 ** 2
const KEY_BYTES = 1024

/** Keys by their encoded header, which a client sends unchanged every time. */
const knownKeys = new BoundedCache<ProofKey>(MAX_KNOWN_BYTES, (encoded) => encoded.length + KEY_BYTES)

/** Returns the key of a proof, or the fault of its header. */
async function proofKey(encoded: string): Promise<ProofKey | string> {
  const known = knownKeys.get(encoded)
  if (known) return known
  const header = decodeObject(encoded)
  if (header === null) return 'the header is not a JSON object'
  if (header.typ !== 'dpop+jwt') return 'typ must be dpop+jwt'
  if (header.alg !== 'ES256') return 'alg must be ES256'
  if ('crit' in header) return 'crit is not supported'
  const jwk = parseP256Jwk(header.jwk)
  if (jwk === null) return 'jwk must be a public key of P-256'
  try {
    const made = {
      key: await crypto.subtle.importKey('jwk', jwk, proofAlgorithm, false, ['verify']),
      jkt: thumbprint(jwk)!,
    }
    knownKeys.set(encoded, made)
    return made
  } catch {
    return 'jwk is not a point of P-256'
  }
}

/** RFC 9449, 4.3 (9): equal after normalisation, without query and fragment. */
function isSameResource(htu: string, url: string): boolean {
  if (htu === url) return true
  if (hasLongHost(htu)) return false
  const claimed = URL.parse(htu)
  const asked = URL.parse(url)
  if (!claimed || !asked || !/^https?:$/.test(claimed.protocol) || claimed.username !== '' || claimed.password !== '')
    return false
  return claimed.origin === asked.origin && claimed.pathname === asked.pathname
}

// Nonces: an HMAC of a counter of minutes. Nothing is stored, and all processes accept the same nonces.

/** The counter whose nonce is issued at `now`: the next one, which stays valid longest. */
export const nonceCounter = (now: Millis): number => Math.floor(now / 1000 / NONCE_STEP_SECS) + 1

/** Counters whose nonces are accepted at `now`. */
export const acceptedCounters = (now: Millis): readonly number[] => {
  const next = nonceCounter(now)
  return Array.from({ length: ACCEPTED_NONCES }, (_, step) => next - step)
}

/** `secret` has 32 bytes. */
export function dpopNonce(secret: Uint8Array, counter: number): string {
  const message = Buffer.alloc(8)
  message.writeBigUInt64BE(BigInt(counter))
  return createHmac('sha256', secret).update(message).digest('base64url')
}
