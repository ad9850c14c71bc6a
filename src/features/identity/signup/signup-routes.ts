/**
 * com.atproto.server.createAccount and com.atproto.temp.checkSignupQueue, and the endpoint that says what a sign-up
 * requires.
 */
import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { procedure, query, route } from '../../../http/endpoint.ts'
import { invalidRequest } from '../../../http/errors.ts'
import { requestOrigin } from '../../../http/origin.ts'
import type { Context } from '../../../platform/context.ts'
import { renderDidDocument, type DidDocument } from '../../../protocol/did-document.ts'
import { stateOf } from '../../../protocol/plc.ts'
import { access, optionalServiceAuth } from '../../access/auth/auth.ts'
import { openSession, sessionTokens } from '../../access/sessions/sessions.ts'
import { resolveDid } from '../identity/identity.ts'
import { createAccount, signupNeeds, type GateAnswers, type NewIdentity } from './signup.ts'

const Answers = Type.Object({
  answer: Type.Optional(Type.String()),
  proofOfWork: Type.Optional(Type.Object({ challenge: Type.String(), nonce: Type.String() })),
})

/** Reads the member `signUp` of the extension. Throws `InvalidRequest`. */
function gateAnswers(extension: Record<string, unknown> | undefined): GateAnswers | undefined {
  const given = extension?.['signUp']
  if (given === undefined) return undefined
  if (!Value.Check(Answers, given)) throw invalidRequest('extension.signUp must have an answer, a proofOfWork, or both')
  return { answer: given.answer ?? null, proof: given.proofOfWork ?? null }
}

/** Returns undefined if the DID does not resolve; the account exists nevertheless. */
async function documentOf(ctx: Context, { did, genesis }: NewIdentity<unknown>): Promise<DidDocument | undefined> {
  const state = genesis && stateOf(genesis)
  if (state) return renderDidDocument(did, state)
  const resolution = await resolveDid(ctx, did, { live: true })
  return resolution.ok ? resolution.document : undefined
}

export const signupRoutes = [
  procedure('com.atproto.server.createAccount', {
    auth: optionalServiceAuth,
    limit: 'createAccount',
    async handler(call) {
      const { ctx, caller, input } = call
      const { extension, custos, ...request } = input
      const origin = requestOrigin(call)
      const byPassword = input.password !== undefined
      const made = await createAccount(
        call,
        { ...request, gates: gateAnswers(custos ?? extension) },
        caller?.service === null ? caller.iss : null,
        (tx, did) => openSession(tx, did, null, origin, { byPassword }),
      )
      const tokens = await sessionTokens(ctx, made.did, null, made.entry)
      return { handle: made.handle, did: made.did, didDoc: await documentOf(ctx, made), ...tokens }
    },
  }),
  /** What the gates of this server require of a sign-up, with a fresh challenge for the proof of work. */
  route('GET', '/v1/sign-up', {
    async handler({ ctx }) {
      const { question, proofOfWork } = await signupNeeds(ctx)
      return {
        inviteCodeRequired: ctx.config.inviteCodeRequired,
        question: question ?? undefined,
        proofOfWork: proofOfWork ?? undefined,
      }
    },
  }),
  query('com.atproto.temp.checkSignupQueue', {
    auth: access(),
    handler: () => ({ activated: true }),
  }),
]
