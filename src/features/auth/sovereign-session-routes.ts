/**
 * POST /v1/sessions/sovereign: a session for whoever proves to hold a key of the identity. It is as good as one that was
 * opened with the account's password.
 *
 * Whatever is wrong with a proof, the answer is the same. Only trouble with the directory has a status of its own, and
 * then nothing is written. A nonce is spent in the transaction that opens the session, so a failed attempt leaves it
 * usable.
 */
import { Type } from '@sinclair/typebox'
import { route, type Exchange } from '../../http/endpoint.ts'
import { Refusal } from '../../http/errors.ts'
import { readJson } from '../../http/json-input.ts'
import { originOf } from '../../http/origin.ts'
import { parseDid } from '../../protocol/identifiers.ts'
import { sovereignSessionEnvelope } from '../../protocol/signed-envelope.ts'
import { accountOf, announceSignIn, noteFailedSignIn, statusOf, type Account } from '../accounts/accounts.ts'
import { INVALID_HANDLE } from '../identity/identity.ts'
import { parseProof, proofMembers, provenBy, spendNonce, type GivenProof } from '../wallet-proofs/wallet-proofs.ts'
import { openSession, sessionTokens } from './sessions.ts'

const sovereignRequest = Type.Object({ did: Type.String(), ...proofMembers }, { additionalProperties: false })

const proofRefused = () => new Refusal(401, 'AuthenticationRequired', 'The proof was not accepted', { code: 'AUTHENTICATION_REQUIRED' })

/** What the log says of a refused proof. */
type ProofFault =
  | 'malformed or untimely proof'
  | 'no such account'
  | 'account not active'
  | 'wrong signature, or not a key of the identity'
  | 'proof used before'

type Outcome = { ok: true; account: Account; tokenId: string } | { ok: false; fault: ProofFault; account: Account | null }

async function openWithProof(exchange: Exchange, claimedDid: string, given: GivenProof): Promise<Outcome> {
  const { ctx } = exchange
  const did = parseDid(claimedDid)
  const proof = did && parseProof(ctx, did, given)
  if (!proof) return { ok: false, fault: 'malformed or untimely proof', account: null }
  const known = await accountOf(ctx.db, did)
  if (known === null || statusOf(known) !== 'active') return { ok: false, ...absence(known) }
  if (!(await provenBy(ctx, proof, sovereignSessionEnvelope(proof.signer))))
    return { ok: false, fault: 'wrong signature, or not a key of the identity', account: known }
  const origin = originOf(exchange)
  return ctx.db.transaction(async (tx): Promise<Outcome> => {
    const account = await accountOf(tx, did)
    if (account === null || statusOf(account) !== 'active') return { ok: false, ...absence(account) }
    if (!(await spendNonce(ctx, tx, proof))) return { ok: false, fault: 'proof used before', account }
    return { ok: true, account, tokenId: await openSession(tx, did, null, origin, { byPassword: false }) }
  })
}

const absence = (account: Account | null) => ({ fault: account ? 'account not active' : 'no such account', account }) as const

export const sovereignSessionRoutes = [
  route('POST', '/v1/sessions/sovereign', {
    limit: 'createSession',
    capability: 'sovereignSessions',
    async handler(call) {
      const { did: claimedDid, ...given } = await readJson(call.body, sovereignRequest)
      const opened = await openWithProof(call, claimedDid, given)
      if (!opened.ok) {
        noteFailedSignIn(call, opened.fault, opened.account)
        throw proofRefused()
      }
      const { did, handle, email } = opened.account
      announceSignIn(call, did, 'wallet')
      return { ...(await sessionTokens(call.ctx, did, null, opened.tokenId)), handle: handle ?? INVALID_HANDLE, did, email }
    },
  }),
]
