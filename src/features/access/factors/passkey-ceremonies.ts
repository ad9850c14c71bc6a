/**
 * The two ceremonies of WebAuthn, registration and authentication. Responses are checked here against the request:
 * challenge, origin, RP ID, and user verification by PIN, fingerprint or face.
 *
 * Source: Web Authentication Level 3, sections 7.1 and 7.2. No attestation is requested or accepted: this
 * server does not care which authenticators people use.
 */
import { createHash } from 'node:crypto'
import { isIP } from 'node:net'
import { Type, type Static } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import type { Config } from '../../../platform/configuration/config.ts'
import type { Context } from '../../../platform/context.ts'
import { base64url, parseBase64url } from '../../../protocol/base64url.ts'
import type { Did, Millis } from '../../../protocol/identifiers.ts'
import type { Account } from '../../identity/accounts/accounts.ts'
import { expiryOf, newChallenge, type PasskeyUse } from './passkey-challenges.ts'
import type { StoredPasskey } from './passkey-store.ts'

/** COSE algorithms: Ed25519, P-256 with SHA-256, and RSA with SHA-256, which older Windows uses. */
const algorithms = [-8, -7, -257]
/** Time that the person at the device has, in milliseconds. Browsers take it as a hint. */
const TIMEOUT_MILLIS = 5 * 60_000
/** Longest response of a browser, in characters of JSON. */
const MAX_ANSWER_CHARS = 16_384
/** Also bounds the nesting of CBOR. The largest public key needs half of this. */
const MAX_MEMBER_CHARS = 4096
/** Web Authentication Level 3, 5.8.3: a credential id has at most 1023 bytes. */
const MAX_ID_CHARS = 1364
const MAX_PUBLIC_KEY_BYTES = 1024

type Library = typeof import('./webauthn-library.ts')

/** Loaded by the first ceremony. */
const library = (): Promise<Library> => import('./webauthn-library.ts')

// Where passkeys work

/**
 * Whether browsers let pages of this server use passkeys: they require https or localhost, and a host that is a name,
 * not an IP address.
 */
export function hasPasskeyOrigin({ publicUrl }: Pick<Config, 'publicUrl'>): boolean {
  const { protocol, hostname } = new URL(publicUrl)
  return hostname === 'localhost' || (protocol === 'https:' && isIP(hostname.replace(/^\[|\]$/g, '')) === 0)
}

/**
 * The host to which passkeys are bound. No other host can ask for them, not even a handle's or a former host of this
 * server.
 */
export const rpIdOf = ({ publicUrl }: Pick<Config, 'publicUrl'>): string => new URL(publicUrl).hostname

/** What devices store to identify the account. It tells someone who reads the device nothing. At most 64 bytes. */
const userHandleOf = (did: Did): string => createHash('sha256').update(`passkeys of ${did}`).digest('base64url')

// What a browser is asked

type Descriptor = { type: 'public-key'; id: string; transports: string[] }

const descriptorOf = ({ credentialId, transports }: StoredPasskey): Descriptor => ({
  type: 'public-key',
  id: credentialId,
  transports: transports === '' ? [] : transports.split(' '),
})

/** Options of `navigator.credentials`, with bytes in base64url. */
export type PasskeyOptions = Readonly<Record<string, unknown>>

/** Returns what a browser needs to make a passkey for the account. `known` are the passkeys that the account has. */
export async function creationOptions(
  ctx: Context,
  { did, handle }: Account,
  known: readonly StoredPasskey[],
  use: PasskeyUse,
): Promise<PasskeyOptions> {
  const name = handle ?? did
  return {
    challenge: await newChallenge(ctx, use),
    rp: { id: rpIdOf(ctx.config), name: ctx.config.serviceName },
    user: { id: userHandleOf(did), name, displayName: name },
    pubKeyCredParams: algorithms.map((alg) => ({ type: 'public-key', alg })),
    excludeCredentials: known.map(descriptorOf),
    authenticatorSelection: { residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
    attestation: 'none',
    timeout: TIMEOUT_MILLIS,
  }
}

/**
 * Returns what a browser needs to sign with one of these passkeys; with any that it has for this host, if none are
 * given.
 */
export const requestOptions = async (
  ctx: Context,
  passkeys: readonly StoredPasskey[],
  use: PasskeyUse,
): Promise<PasskeyOptions> => ({
  challenge: await newChallenge(ctx, use),
  rpId: rpIdOf(ctx.config),
  allowCredentials: passkeys.map(descriptorOf),
  userVerification: 'required',
  timeout: TIMEOUT_MILLIS,
})

// What it answers

const bytesText = Type.String({ maxLength: MAX_MEMBER_CHARS, pattern: '^[A-Za-z0-9_-]+$' })
const credentialId = Type.String({ maxLength: MAX_ID_CHARS, pattern: '^[A-Za-z0-9_-]+$' })
const answered = <Response extends Parameters<typeof Type.Object>[0]>(response: Response) =>
  Type.Object({
    id: credentialId,
    rawId: credentialId,
    type: Type.Literal('public-key'),
    response: Type.Object(response),
  })

const creationAnswer = answered({
  clientDataJSON: bytesText,
  attestationObject: bytesText,
  transports: Type.Optional(Type.Array(Type.String({ maxLength: 20, pattern: '^[a-z-]+$' }), { maxItems: 8 })),
})
const requestAnswer = answered({
  clientDataJSON: bytesText,
  authenticatorData: bytesText,
  signature: bytesText,
  userHandle: Type.Optional(Type.Union([bytesText, Type.Null()])),
})
const clientData = Type.Object({ challenge: Type.String(), crossOrigin: Type.Optional(Type.Boolean()) })

/** Returns the JSON of a text if it fits the schema, else null. */
function parsed<Schema extends typeof creationAnswer | typeof requestAnswer | typeof clientData>(
  schema: Schema,
  text: string,
): Static<Schema> | null {
  if (text.length > MAX_ANSWER_CHARS) return null
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
  return Value.Check(schema, value) ? value : null
}

/** Returns the challenge in a response; null if it is malformed, or made in a frame on a page of another site. */
function challengeIn({ clientDataJSON }: { clientDataJSON: string }): string | null {
  const bytes = parseBase64url(clientDataJSON)
  const data = bytes && parsed(clientData, Buffer.from(bytes).toString())
  return data && data.crossOrigin !== true ? data.challenge : null
}

export type CeremonyFault = 'refused' | 'late'

export interface CheckedChallenge {
  challenge: string
  expiresAt: Millis
}

export type NewPasskey = Pick<
  StoredPasskey,
  'credentialId' | 'publicKey' | 'signCount' | 'transports' | 'isSynced' | 'rpId'
>

/** Check an answer to `creationOptions`. The caller spends the challenge. */
export async function checkCreation(
  ctx: Context,
  text: string,
  use: PasskeyUse,
): Promise<CeremonyFault | (CheckedChallenge & { passkey: NewPasskey })> {
  const answer = parsed(creationAnswer, text)
  const challenge = answer && challengeIn(answer.response)
  if (!answer || !challenge) return 'refused'
  const expiresAt = await expiryOf(ctx, challenge, use)
  if (expiresAt === null) return 'late'
  const { decodeAttestationObject, verifyRegistrationResponse } = await library()
  const rpId = rpIdOf(ctx.config)
  const found = await outcomeOf(ctx, async () => {
    const attestation = parseBase64url(answer.response.attestationObject)
    // Check this before the library verifies the attestation: for a certificate, it would call any address that the
    // certificate names.
    if (attestation === null || decodeAttestationObject(Uint8Array.from(attestation)).get('fmt') !== 'none') return null
    return verifyRegistrationResponse({
      response: { ...answer, response: { ...answer.response, transports: [] }, clientExtensionResults: {} },
      expectedChallenge: challenge,
      expectedOrigin: ctx.config.publicUrl,
      expectedRPID: rpId,
      requireUserVerification: true,
      supportedAlgorithmIDs: algorithms,
    })
  })
  if (!found?.verified) return 'refused'
  const { credential, credentialDeviceType } = found.registrationInfo
  const { id, publicKey, counter } = credential
  if (id !== answer.id || publicKey.byteLength > MAX_PUBLIC_KEY_BYTES) return 'refused'
  return {
    challenge,
    expiresAt,
    passkey: {
      credentialId: id,
      publicKey: base64url(publicKey),
      signCount: counter,
      transports: (answer.response.transports ?? []).join(' '),
      isSynced: credentialDeviceType === 'multiDevice',
      rpId,
    },
  }
}

/** Returns the id of the passkey that a response names, which proves nothing; null if it is malformed. */
export const passkeyIn = (text: string): string | null => parsed(requestAnswer, text)?.id ?? null

/**
 * Verify a response to `requestOptions` by this passkey. The caller spends the challenge and compares the signature
 * counter, which means nothing before the signature is verified.
 */
export async function checkSignature(
  ctx: Context,
  text: string,
  use: PasskeyUse,
  passkey: StoredPasskey,
): Promise<CeremonyFault | (CheckedChallenge & { signCount: number })> {
  const answer = parsed(requestAnswer, text)
  const challenge = answer && challengeIn(answer.response)
  if (!answer || !challenge || answer.id !== passkey.credentialId) return 'refused'
  const { userHandle } = answer.response
  if (userHandle && userHandle !== userHandleOf(passkey.did)) return 'refused'
  const expiresAt = await expiryOf(ctx, challenge, use)
  if (expiresAt === null) return 'late'
  const { verifyAuthenticationResponse } = await library()
  const found = await outcomeOf(ctx, () =>
    verifyAuthenticationResponse({
      response: {
        ...answer,
        response: { ...answer.response, userHandle: userHandle ?? undefined },
        clientExtensionResults: {},
      },
      expectedChallenge: challenge,
      expectedOrigin: ctx.config.publicUrl,
      expectedRPID: rpIdOf(ctx.config),
      requireUserVerification: true,
      credential: {
        id: passkey.credentialId,
        publicKey: Uint8Array.from(parseBase64url(passkey.publicKey)!),
        counter: 0,
      },
    }),
  )
  return found?.verified ? { challenge, expiresAt, signCount: found.authenticationInfo.newCounter } : 'refused'
}

/** Returns null if verification fails: the library throws, and its message says why. */
async function outcomeOf<Outcome>({ log }: Context, verify: () => Promise<Outcome>): Promise<Outcome | null> {
  try {
    return await verify()
  } catch (error) {
    log.debug('passkey refused', { error })
    return null
  }
}
