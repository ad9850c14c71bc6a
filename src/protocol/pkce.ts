/** Proof Key for Code Exchange with S256, the only supported method. Source: RFC 7636. */
import { createHash } from 'node:crypto'

/** RFC 7636, 4.1. */
export const isCodeVerifier = (text: string): boolean => /^[A-Za-z0-9\-._~]{43,128}$/.test(text)

/** Base64url of a SHA-256. */
export const isCodeChallenge = (text: string): boolean => /^[A-Za-z0-9_-]{43}$/.test(text)

/** RFC 7636, 4.6. */
export const codeChallengeOf = (verifier: string): string => createHash('sha256').update(verifier).digest('base64url')
