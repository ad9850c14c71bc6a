import { expect, test } from 'bun:test'
import deletion from '../../tests/vectors/contract/account-delete-envelope-v1.json' with { type: 'json' }
import consent from '../../tests/vectors/contract/oauth-consent-envelope-v1.json' with { type: 'json' }
import scopes from '../../tests/vectors/contract/scope-hash-v1.json' with { type: 'json' }
import proofs from '../../tests/vectors/contract/signed-proofs-v1.json' with { type: 'json' }
import session from '../../tests/vectors/contract/sovereign-session-envelope-v1.json' with { type: 'json' }
import { parseBase64url } from './base64url.ts'
import type { Did } from './identifiers.ts'
import { parseDidKey } from './keys.ts'
import {
  accountDeletionEnvelope,
  consentEnvelope,
  scopeHash,
  sovereignSessionEnvelope,
  type Signer,
} from './signed-envelope.ts'

const text = (envelope: Uint8Array) => Buffer.from(envelope).toString()

const signerOf = (vector: typeof session): Signer => ({
  aud: vector.serverDid,
  did: vector.accountDid as Did,
  key: vector.signingKeyDid,
  timestamp: vector.timestamp,
  nonce: vector.nonce,
})

test('the envelopes of the three proofs have exactly these bytes', () => {
  expect(text(sovereignSessionEnvelope(signerOf(session)))).toBe(session.envelope)
  expect(text(accountDeletionEnvelope(signerOf(deletion)))).toBe(deletion.envelope)
  const { requestId: request, clientId: client, decision, grantedScope } = consent
  expect(
    text(consentEnvelope({ ...signerOf(consent), request, client, decision: decision as 'approve', grantedScope })),
  ).toBe(consent.envelope)
})

type Example = (typeof proofs.accept)[number]

/** The envelope of a request: of an accepted one, or of a refused one in the context of the accepted one. */
function envelopeOf(requestBody: object, { kind, clientId }: Example): Uint8Array {
  const body = requestBody as Record<string, any>
  const proof = body.custos?.proof ?? body
  const signer = {
    aud: proofs.serverDid,
    did: body.did,
    key: proof.signingKey,
    timestamp: proof.timestamp,
    nonce: proof.nonce,
  }
  if (kind === 'sovereign') return sovereignSessionEnvelope(signer)
  if (kind === 'account-delete') return accountDeletionEnvelope(signer)
  const { requestId: request, decision, grantedScope = '' } = body
  return consentEnvelope({ ...signer, request, client: clientId!, decision, grantedScope })
}

/** Whether nonce and signature have the only form that counts, and the key signed the envelope. */
function isSigned(requestBody: object, example: Example): boolean {
  const body = requestBody as Record<string, any>
  const { signingKey, nonce, signature } = body.custos?.proof ?? body
  const bytes = parseBase64url(signature)
  if (parseBase64url(nonce)?.byteLength !== 32 || bytes?.byteLength !== 64) return false
  return parseDidKey(signingKey)!.verify(envelopeOf(requestBody, example), bytes)
}

test('the envelopes of the signed examples have exactly these bytes', () => {
  const made = proofs.accept.map((example) => text(envelopeOf(example.requestBody, example)))
  expect(made).toEqual(proofs.accept.map(({ envelope }) => envelope))
})

test.each(proofs.accept)('$name is signed', (example) => {
  expect(isSigned(example.requestBody, example)).toBe(true)
})

test.each(proofs.reject)('$name is not signed, or by a key without authority', ({ of, requestBody, ...vector }) => {
  const example = proofs.accept.find(({ name }) => name === of)!
  expect(isSigned(requestBody, example)).toBe('failsAt' in vector)
})

test('the length counts bytes, so a value can imitate no other field', () => {
  const signer = { ...signerOf(session), nonce: 'é\nnonce:1:x' }
  expect(text(sovereignSessionEnvelope(signer))).toEndWith('nonce:12:é\nnonce:1:x\n')
})

test('scopes are hashed as they are spelled, and a denial hashes nothing', () => {
  for (const { grantedScope, scopeHash: expected } of scopes.cases) expect(scopeHash(grantedScope)).toBe(expected)
  const deny = { ...signerOf(consent), request: 'r', client: 'c', decision: 'deny' as const }
  expect(consentEnvelope({ ...deny, grantedScope: 'atproto' })).toEqual(consentEnvelope({ ...deny, grantedScope: '' }))
})
