/** Shares in escrow and their release, for wallets, and the list of releases for operators. */
import { Type } from '@sinclair/typebox'
import { perAccount, route } from '../../../http/endpoint.ts'
import { authenticationRequired, invalidRequest } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import { requireMasterKey } from '../../../http/master-key-guard.ts'
import { byPair, pageOf, type Pages } from '../../../http/paged-list.ts'
import { formatShare, parseShare, shareIndexes, type EscrowShare } from '../../../protocol/escrow-share.ts'
import { wireTime } from '../../../protocol/identifiers.ts'
import { owner } from '../../access/auth/auth.ts'
import { operator } from '../../operations/operators/operators.ts'
import { deleteShare, takeShare } from './escrow-shares.ts'
import { listReleases, type ReleasePlace } from './escrow-store.ts'
import { requestRecovery } from './recovery-codes.ts'
import { cancelRelease, releaseShare, type ReleaseAnswer } from './share-releases.ts'

const releasePages: Pages<ReleasePlace> = {
  cursor: byPair('requestedAt', '::', 'did', 'did:'),
  maxRows: 100,
  usualRows: 100,
}

const recoveryMembers = Type.Object({
  identifier: Type.String(),
  otp: Type.Optional(Type.String()),
  code: Type.Optional(Type.Literal('required')),
})

/** Throws `InvalidRequest` unless the text is a share with the number 2. */
function escrowShareFrom(text: string): EscrowShare {
  const outcome = parseShare(text)
  if (!outcome.ok) throw invalidRequest(`share is not valid: ${outcome.fault}`)
  if (outcome.share.index !== shareIndexes.escrow) throw invalidRequest(`share must be share ${shareIndexes.escrow}`)
  return outcome.share
}

/** Throws the refusal of recovery, which is the same for every reason. */
function shown(answer: ReleaseAnswer | null) {
  if (answer === null) throw authenticationRequired('Unknown account, wrong or expired code, or no open release')
  return answer.status === 'pending'
    ? { status: answer.status, availableAt: wireTime(answer.collectableAt) }
    : { status: answer.status, share: formatShare(answer.share) }
}

export const escrowRoutes = [
  route('PUT', '/v1/recovery/escrow-share', {
    auth: owner,
    limit: perAccount('depositShare'),
    async handler(call) {
      const { share: text } = await readJson(call.body, Type.Object({ share: Type.String() }))
      const share = escrowShareFrom(text)
      requireMasterKey(call.ctx)
      return { status: await takeShare(call, call.caller.did, share) }
    },
  }),

  route('DELETE', '/v1/recovery/escrow-share', {
    auth: owner,
    async handler(call) {
      await deleteShare(call, call.caller.did)
      return { status: 'deleted' }
    },
  }),

  route('POST', '/v1/recovery/release/cancel', {
    auth: owner,
    async handler(call) {
      await cancelRelease(call, call.caller.did)
      return { status: 'cancelled' }
    },
  }),

  route('POST', '/v1/recovery/initiate', {
    limit: 'recovery',
    async handler(call) {
      const { identifier, otp, code } = await readJson(call.body, recoveryMembers)
      if (otp === undefined) return requestRecovery(call, identifier)
      requireMasterKey(call.ctx)
      return shown(await releaseShare(call, { identifier, code: otp, needsCode: code === 'required' }))
    },
  }),

  route('POST', '/v1/recovery/release', {
    limit: 'recovery',
    async handler(call) {
      requireMasterKey(call.ctx)
      const { identifier, otp, code } = await readJson(call.body, recoveryMembers)
      return shown(await releaseShare(call, { identifier, code: otp, needsCode: code === 'required' }))
    },
  }),

  route('GET', '/v1/admin/recovery-releases', {
    auth: operator(),
    async handler({ ctx: { db, clock }, url: { searchParams } }) {
      const { rows, cursor } = await pageOf(searchParams, releasePages, (after, limit) =>
        listReleases(db, after, limit),
      )
      const now = clock.now()
      return {
        releases: rows.map(({ did, requestedAt, collectableAt }) => ({
          did,
          requestedAt: wireTime(requestedAt),
          availableAt: wireTime(collectableAt),
          available: collectableAt <= now,
        })),
        cursor,
      }
    },
  }),
]
