/** Checks DPoP proofs on requests: issues the nonces that they need, and remembers those that were used. RFC 9449. */
import type { Exchange } from '../../../http/endpoint.ts'
import { OAuthError } from '../../../http/errors.ts'
import { askedUrl } from '../../../platform/configuration/service-names.ts'
import { perContext, type Context } from '../../../platform/context.ts'
import { resumed } from '../../../platform/running/request-scope.ts'
import { serverSecret } from '../../../platform/secrets/vault.ts'
import { acceptedCounters, checkDpop, dpopNonce, nonceCounter } from '../../../protocol/dpop.ts'
import type { Millis } from '../../../protocol/identifiers.ts'
import { ProofMemory } from './proof-memory.ts'
import { SharedProofs } from './shared-proofs.ts'

/**
 * The nonces that are accepted at the moment. They are computed from a secret and the time, and cached until they
 * change, once a minute.
 */
class Nonces {
  #counter = 0
  #accepted: readonly string[] = []

  constructor(
    readonly secret: Uint8Array,
    readonly now: () => Millis,
  ) {}

  /** The nonce to issue. */
  get next(): string {
    return this.#now()[0]!
  }

  accepts = (nonce: string): boolean => this.#now().includes(nonce)

  #now(): readonly string[] {
    const now = this.now()
    const counter = nonceCounter(now)
    if (counter !== this.#counter) {
      this.#counter = counter
      this.#accepted = acceptedCounters(now).map((accepted) => dpopNonce(this.secret, accepted))
    }
    return this.#accepted
  }
}

/**
 * Returns the time of nonces: the wall clock at startup plus the monotonic time since then. If the wall clock is set
 * back later, expired nonces do not become valid again. Otherwise proofs that the memory has already forgotten could be
 * replayed.
 *
 * On a cluster, it is the time of the database, which also decides when used proofs are forgotten. A nonce is then
 * valid for the same time at all nodes, whatever their clocks show and whenever these are set.
 */
function timeOfNonces({ db: { cluster }, clock }: Pick<Context, 'db' | 'clock'>): () => Millis {
  if (cluster !== null) return () => clock.now() - cluster.aheadOfDatabase
  const origin = clock.now() - clock.monotonic()
  return () => origin + clock.monotonic()
}

export const proofState = perContext(async ({ db, vault, clock }) => ({
  // Stored, so that nonces stay valid across a restart.
  nonces: new Nonces(await serverSecret(db, vault, 'dpop-nonce'), timeOfNonces({ db, clock })),
  memory: new ProofMemory(clock.monotonic()),
  shared: db.cluster && new SharedProofs(db.cluster),
}))

/** Set the `DPoP-Nonce` header of the response, refusals included, for the client's next proof. RFC 9449, 8.2. */
export async function offerNonce({ ctx, replyHeaders }: Exchange): Promise<void> {
  replyHeaders.set('DPoP-Nonce', (await proofState(ctx)).nonces.next)
}

export type ProofOutcome =
  { ok: true; jkt: string } | { ok: false; error: 'invalid_dpop_proof' | 'use_dpop_nonce'; reason: string }

const usedProof: ProofOutcome = { ok: false, error: 'invalid_dpop_proof', reason: 'the proof has already been used' }

/**
 * Check the request's DPoP proof and record its use. `accessTokenHash` is the expected `ath`; null if the request has
 * no access token.
 *
 * Returns the thumbprint of the proof's key, or the error to report. Throws `temporarily_unavailable` (503) when the
 * memory of used proofs is full.
 *
 * Source: RFC 9449, 4.3; sections 8 and 9 for nonces; 11.1 for replay.
 */
export async function useProof(exchange: Exchange, accessTokenHash: string | null): Promise<ProofOutcome> {
  const { ctx, request, rawPath } = exchange
  const { nonces, memory, shared } = await proofState(ctx)
  const outcome = await checkDpop({
    proof: request.headers.get('dpop'),
    method: request.method,
    url: askedUrl(ctx.config, request) + rawPath,
    accessTokenHash,
    now: ctx.clock.now(),
    isNonce: nonces.accepts,
  })
  resumed()
  if (!outcome.ok) return outcome
  switch (memory.use(outcome.jkt, outcome.jti, ctx.clock.monotonic())) {
    case 'fresh':
      return shared === null || (await shared.use(outcome.jkt, outcome.jti))
        ? { ok: true, jkt: outcome.jkt }
        : usedProof
    case 'used':
      return usedProof
    case 'full':
      throw new OAuthError(503, 'temporarily_unavailable', 'Too many requests at the moment')
  }
}
