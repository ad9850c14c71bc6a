/**
 * POST /v1/sessions/sovereign: a session for the holder of a key of the identity. It is equivalent to a session opened
 * with the account's password.
 *
 * The response is the same whatever is wrong with a proof. Only a failure of the directory has a status of its own, and
 * then nothing is written. A nonce is spent in the transaction that opens the session, so a failed attempt leaves it
 * usable.
 */
import { Type } from '@sinclair/typebox'
import { route, type Exchange } from '../../../http/endpoint.ts'
import { Refusal } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import { requestOrigin } from '../../../http/origin.ts'
import type { Reader } from '../../../platform/database/database.ts'
import { INVALID_HANDLE, parseDid, type Did } from '../../../protocol/identifiers.ts'
import { sovereignSessionEnvelope } from '../../../protocol/signed-envelope.ts'
import { accountOf, type Account } from '../../identity/accounts/accounts.ts'
import { announceSignIn } from '../../identity/account-events/account-events.ts'
import { noteFailedSignIn } from '../../identity/passwords/passwords.ts'
import { statusOf } from '../../../protocol/account-status.ts'
import { parentOf } from '../../agents/children/children.ts'
import {
  checkProof,
  proofMembers,
  spendNonce,
  type GivenProof,
  type ProofFault,
} from '../wallet-proofs/wallet-proofs.ts'
import { openSession, sessionTokens } from '../sessions/sessions.ts'

const sovereignRequest = Type.Object({ did: Type.String(), ...proofMembers }, { additionalProperties: false })

const proofRefused = () =>
  new Refusal(401, 'AuthenticationRequired', 'The proof was not accepted', { code: 'AUTHENTICATION_REQUIRED' })

/** Admits an active account, and an account that its parent is deleting, because its keys may undo the deletion. */
async function maySignIn(reader: Reader, account: Account): Promise<boolean> {
  const status = statusOf(account)
  if (status !== 'deactivated' || account.deleteAfter === null) return status === 'active'
  return (await parentOf(reader, account.did)) !== null
}

type Outcome =
  { ok: true; account: Account; tokenId: string } | { ok: false; fault: ProofFault; account: Account | null }

async function openWithProof(exchange: Exchange, did: Did | null, given: GivenProof): Promise<Outcome> {
  const { ctx } = exchange
  const checked = await checkProof(ctx, {
    did,
    given,
    envelopeOf: sovereignSessionEnvelope,
    isAdmitted: (account) => maySignIn(ctx.db, account),
  })
  if (!checked.ok) return checked
  const { proof } = checked
  const origin = requestOrigin(exchange)
  return ctx.db.transaction(async (tx): Promise<Outcome> => {
    const account = await accountOf(tx, proof.signer.did)
    if (account === null || !(await maySignIn(tx, account)))
      return { ok: false, fault: account ? 'account not active' : 'no such account', account }
    if (!(await spendNonce(ctx, tx, proof))) return { ok: false, fault: 'proof used before', account }
    await announceSignIn(tx, exchange, account.did, 'wallet')
    return { ok: true, account, tokenId: await openSession(tx, account.did, null, origin, { byPassword: false }) }
  })
}

export const sovereignSessionRoutes = [
  route('POST', '/v1/sessions/sovereign', {
    limit: 'createSession',
    capability: 'sovereignSessions',
    async handler(call) {
      const { did: claimedDid, ...given } = await readJson(call.body, sovereignRequest)
      const opened = await openWithProof(call, parseDid(claimedDid), given)
      if (!opened.ok) {
        noteFailedSignIn(call, opened.fault, opened.account)
        throw proofRefused()
      }
      const { did, handle, email } = opened.account
      return {
        ...(await sessionTokens(call.ctx, did, null, opened.tokenId)),
        handle: handle ?? INVALID_HANDLE,
        did,
        email,
      }
    },
  }),
]
