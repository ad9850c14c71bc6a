/** Moving an account here, for clients: see `docs/moving-an-account.md`. */
import { Type } from '@sinclair/typebox'
import { perAccount, route, type Endpoint } from '../../../http/endpoint.ts'
import { invalidRequest } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import { requestOrigin } from '../../../http/origin.ts'
import { wireTime } from '../../../protocol/identifiers.ts'
import { owner } from '../../access/auth/auth.ts'
import { openSession, sessionTokens } from '../../access/sessions/sessions.ts'
import type { Enter } from '../signup/signup.ts'
import { planMove } from './move-plan.ts'
import { offerIdentity } from './offered-identity.ts'
import {
  beginMove,
  beginMoveWithKey,
  cancelMove,
  chooseKeys,
  giveArchive,
  giveCode,
  giveOperation,
  goWithoutOldServer,
  mailAnotherCode,
  moveOf,
  signInAgain,
  tryAgain,
} from './moving-in.ts'

const MAX_TEXT_CHARS = 2048
const text = Type.String({ maxLength: MAX_TEXT_CHARS })
/** More keys than an identity can have. */
const MAX_KEYS = 64
const keyList = Type.Array(text, { maxItems: MAX_KEYS })
const answerLimit = perAccount('answerMove')

export const moveRoutes: readonly Endpoint[] = [
  route('POST', '/v1/move-in/plan', {
    limit: 'planMove',
    async handler({ ctx, body }) {
      const given = await readJson(
        body,
        Type.Object({ identifier: text, password: text, authFactorToken: Type.Optional(text) }),
      )
      const { expiresAt, ...plan } = await planMove(ctx, given)
      return { ...plan, expiresAt: wireTime(expiresAt) }
    },
  }),

  route('POST', '/v1/move-in/offer', {
    limit: 'reserveSigningKey',
    async handler({ ctx, body }) {
      return offerIdentity(
        ctx,
        await readJson(
          body,
          Type.Object({ identifier: text, handle: text, recoveryKey: text, keepKeys: Type.Optional(keyList) }),
        ),
      )
    },
  }),

  route('POST', '/v1/move-in', {
    limit: 'createAccount',
    async handler(call) {
      const given = await readJson(
        call.body,
        Type.Object({
          ...accountMembers,
          plan: Type.Optional(text),
          authFactorToken: Type.Optional(text),
          recoveryKey: Type.Optional(text),
          keepKeys: Type.Optional(keyList),
          identifier: Type.Optional(text),
          operation: Type.Optional(Type.Object({})),
        }),
      )
      const origin = requestOrigin(call)
      const enter: Enter<string> = (tx, did) => openSession(tx, did, null, origin)
      const { plan, authFactorToken, operation, identifier = '', recoveryKey = '', ...account } = given
      if ((plan === undefined) === (operation === undefined))
        throw invalidRequest('One of plan and operation is required')
      const made =
        plan === undefined
          ? await beginMoveWithKey(call, { ...account, identifier, recoveryKey, operation }, enter)
          : await beginMove(call, { ...account, plan, authFactorToken, recoveryKey: given.recoveryKey }, enter)
      const tokens = await sessionTokens(call.ctx, made.did, null, made.entry)
      return { did: made.did, handle: made.handle, ...tokens }
    },
  }),

  route('GET', '/v1/move-in', {
    auth: owner,
    handler: async ({ ctx, caller: { did } }) => ({ move: await moveOf(ctx, did) }),
  }),

  route('POST', '/v1/move-in/answer', {
    auth: owner,
    limit: answerLimit,
    async handler(call) {
      const { ctx, caller } = call
      const given = await readJson(call.body, answerShape)
      const [name, ...others] = answers.filter((one) => given[one] !== undefined)
      if (name === undefined || others.length > 0)
        throw invalidRequest(`One of ${answers.join(', ')} is required, and no other`)
      const { code = '', agreement, operation, keepKeys = [], password = '', authFactorToken } = given
      if (given.code !== undefined && agreement === undefined)
        throw invalidRequest('agreement: required with the code; the move has it, with the keys that stay and go')
      const act = {
        code: () => giveCode(call, caller.did, { code: code.trim(), agreement: agreement ?? '' }),
        keepKeys: () => chooseKeys(call, caller.did, keepKeys),
        operation: () => giveOperation(call, caller.did, operation),
        password: () => signInAgain(call, caller.did, { password, authFactorToken }),
        mail: () => mailAnotherCode(call, caller.did),
        retry: () => tryAgain(call, caller.did),
        withoutOldServer: () => goWithoutOldServer(call, caller.did),
      }
      await act[name]()
      return { move: await moveOf(ctx, caller.did) }
    },
  }),

  route('POST', '/v1/move-in/archive', {
    auth: owner,
    limit: answerLimit,
    long: true,
    async handler(call) {
      const { ctx, caller, body } = call
      await giveArchive(call, caller.did, { upload: body, isZip: body.contentType === 'application/zip' })
      return { move: await moveOf(ctx, caller.did) }
    },
  }),

  route('DELETE', '/v1/move-in', {
    auth: owner,
    limit: answerLimit,
    async handler(call) {
      await cancelMove(call, call.caller.did)
      return { cancelled: true }
    },
  }),
]

const accountMembers = { handle: text, email: text, password: text, inviteCode: Type.Optional(text) }

const answers = ['code', 'operation', 'keepKeys', 'password', 'mail', 'retry', 'withoutOldServer'] as const
const answerShape = Type.Object({
  code: Type.Optional(text),
  agreement: Type.Optional(text),
  keepKeys: Type.Optional(keyList),
  operation: Type.Optional(Type.Object({})),
  password: Type.Optional(text),
  authFactorToken: Type.Optional(text),
  mail: Type.Optional(Type.Literal(true)),
  retry: Type.Optional(Type.Literal(true)),
  withoutOldServer: Type.Optional(Type.Literal(true)),
})
