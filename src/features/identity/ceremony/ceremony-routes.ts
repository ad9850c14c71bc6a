/** The last step of a ceremony: the wallet sends its identity, and gets the session of its account. */
import { Type, type TSchema } from '@sinclair/typebox'
import { route } from '../../../http/endpoint.ts'
import { underMasterKey } from '../../../http/master-key-guard.ts'
import { readJson } from '../../../http/json-input.ts'
import { requestOrigin } from '../../../http/origin.ts'
import { openWalletSession } from '../../access/sessions/sessions.ts'
import { createDid } from './ceremony.ts'
import { pending } from './pending-credential.ts'

/** Wallets send null for members that they leave out. */
const optional = <Schema extends TSchema>(schema: Schema) => Type.Optional(Type.Union([schema, Type.Null()]))

const didRequest = Type.Object({
  rotationKeyPublic: Type.String(),
  signedCreationOp: optional(Type.Object({})),
  didWebDocument: optional(Type.String()),
  password: optional(Type.String()),
  recoveryKey: optional(Type.String()),
  escrowShare: optional(Type.String()),
})

const absent = { signedCreationOp: null, didWebDocument: null, password: null, recoveryKey: null, escrowShare: null }

export const ceremonyRoutes = [
  route('POST', '/v1/dids', {
    auth: underMasterKey(pending),
    async handler(call) {
      const request = { ...absent, ...(await readJson(call.body, didRequest)) }
      const made = await createDid(call, call.caller.ceremony, request, (tx, did) =>
        openWalletSession(tx, did, { byPassword: false }, requestOrigin(call)),
      )
      return { did: made.did, did_document: made.document, status: 'active', session_token: made.entry }
    },
  }),
]
