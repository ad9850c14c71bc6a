/** com.atproto.server.createAccount and com.atproto.temp.checkSignupQueue. */
import { procedure, query } from '../../../http/endpoint.ts'
import { requestOrigin } from '../../../http/origin.ts'
import type { Context } from '../../../platform/context.ts'
import { renderDidDocument, type DidDocument } from '../../../protocol/did-document.ts'
import { stateOf } from '../../../protocol/plc.ts'
import { access, optionalServiceAuth } from '../../access/auth/auth.ts'
import { openSession, sessionTokens } from '../../access/sessions/sessions.ts'
import { resolveDid } from '../identity/identity.ts'
import { createAccount, type NewIdentity } from './signup.ts'

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
      const origin = requestOrigin(call)
      const byPassword = input.password !== undefined
      const made = await createAccount(call, input, caller?.iss ?? null, (tx, did) =>
        openSession(tx, did, null, origin, { byPassword }),
      )
      const tokens = await sessionTokens(ctx, made.did, null, made.entry)
      return { handle: made.handle, did: made.did, didDoc: await documentOf(ctx, made), ...tokens }
    },
  }),
  query('com.atproto.temp.checkSignupQueue', {
    auth: access(),
    handler: () => ({ activated: true }),
  }),
]
