import { expect, test } from 'bun:test'
import deletion from '../../tests/vectors/contract/account-delete-envelope-v1.json' with { type: 'json' }
import consent from '../../tests/vectors/contract/oauth-consent-envelope-v1.json' with { type: 'json' }
import scopes from '../../tests/vectors/contract/scope-hash-v1.json' with { type: 'json' }
import proofs from '../../tests/vectors/contract/signed-proofs-v1.json' with { type: 'json' }
import session from '../../tests/vectors/contract/sovereign-session-envelope-v1.json' with { type: 'json' }
import type { Did } from './identifiers.ts'
import { accountDeletionEnvelope, consentEnvelope, scopeHash, sovereignSessionEnvelope, type Signer } from './signed-envelope.ts'

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
  expect(text(consentEnvelope({ ...signerOf(consent), request, client, decision: decision as 'approve', grantedScope }))).toBe(
    consent.envelope,
  )
})

test('the envelopes of the signed examples have exactly these bytes', () => {
  const made = proofs.accept.map(({ kind, requestBody, clientId }) => {
    const body = requestBody as Record<string, any>
    const proof = body.custos?.proof ?? body
    const signer = { aud: proofs.serverDid, did: body.did, key: proof.signingKey, timestamp: proof.timestamp, nonce: proof.nonce }
    if (kind === 'sovereign') return sovereignSessionEnvelope(signer)
    if (kind === 'account-delete') return accountDeletionEnvelope(signer)
    const { requestId: request, decision, grantedScope = '' } = body
    return consentEnvelope({ ...signer, request, client: clientId!, decision, grantedScope })
  })
  expect(made.map(text)).toEqual(proofs.accept.map(({ envelope }) => envelope))
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
