/** DPoP proofs on requests: the nonces that they need and the memory of those that were used. */
import type { Exchange } from '../../http/endpoint.ts'
import { OAuthError } from '../../http/errors.ts'
import type { Clock } from '../../platform/running/clock.ts'
import { perContext } from '../../platform/context.ts'
import { serverSecret } from '../../platform/secrets/vault.ts'
import { acceptedCounters, checkDpop, dpopNonce, nonceCounter } from '../../protocol/dpop.ts'
import type { Millis } from '../../protocol/identifiers.ts'
import { ProofMemory } from './proof-memory.ts'

/**
 * Nonces of now. Stateless but for the last values computed, which change once a minute.
 *
 * They follow the wall clock as it was at the start: set back later, it does not bring back nonces, and with them proofs,
 * that the memory of used ones has forgotten.
 */
class Nonces {
  readonly #origin: Millis
  #counter = 0
  #accepted: readonly string[] = []

  constructor(
    readonly secret: Uint8Array,
    readonly clock: Clock,
  ) {
    this.#origin = clock.now() - clock.monotonic()
  }

  /** The one to hand out. */
  get next(): string {
    return this.#now()[0]!
  }

  accepts = (nonce: string): boolean => this.#now().includes(nonce)

  #now(): readonly string[] {
    const now = this.#origin + this.clock.monotonic()
    const counter = nonceCounter(now)
    if (counter !== this.#counter) {
      this.#counter = counter
      this.#accepted = acceptedCounters(now).map((accepted) => dpopNonce(this.secret, accepted))
    }
    return this.#accepted
  }
}

export const proofState = perContext(async ({ db, vault, clock }) => ({
  // Kept, so that nonces hold across a restart.
  nonces: new Nonces(await serverSecret(db, vault, 'dpop-nonce'), clock),
  memory: new ProofMemory(clock.monotonic()),
}))

/** Give the answer a nonce for the client's next proof, whatever the answer is. */
export async function offerNonce({ ctx, replyHeaders }: Exchange): Promise<void> {
  replyHeaders.set('DPoP-Nonce', (await proofState(ctx)).nonces.next)
}

export type ProofOutcome = { ok: true; jkt: string } | { ok: false; error: 'invalid_dpop_proof' | 'use_dpop_nonce'; reason: string }

/** Check the proof that a request carries and use it up. `accessTokenHash` is null where the proof stands alone. */
export async function useProof(exchange: Exchange, accessTokenHash: string | null): Promise<ProofOutcome> {
  const { ctx, request, rawPath } = exchange
  const { nonces, memory } = await proofState(ctx)
  const outcome = await checkDpop({
    proof: request.headers.get('dpop'),
    method: request.method,
    url: ctx.config.publicUrl + rawPath,
    accessTokenHash,
    now: ctx.clock.now(),
    isNonce: nonces.accepts,
  })
  if (!outcome.ok) return outcome
  switch (memory.use(outcome.jkt, outcome.jti, ctx.clock.monotonic())) {
    case 'fresh':
      return { ok: true, jkt: outcome.jkt }
    case 'used':
      return { ok: false, error: 'invalid_dpop_proof', reason: 'the proof was used before' }
    case 'full':
      throw new OAuthError(503, 'temporarily_unavailable', 'Too many requests at the moment')
  }
}
