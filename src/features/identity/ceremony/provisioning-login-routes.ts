/** Signing in with the password of an account, for a session like the one that ends a ceremony. */
import { Type } from '@sinclair/typebox'
import { route } from '../../../http/endpoint.ts'
import { Refusal } from '../../../http/errors.ts'
import { readJson } from '../../../http/json-input.ts'
import { requestOrigin } from '../../../http/origin.ts'
import { accountStatus } from '../accounts/accounts.ts'
import { announceSignIn } from '../account-events/account-events.ts'
import { attemptLogin, loginRefused, MAX_TRIED_PASSWORD_CHARS, provePassword } from '../passwords/passwords.ts'
import { passFactor } from '../../access/factors/factors.ts'
import { openWalletSession } from '../../access/sessions/sessions.ts'

const wrongCredentials = () =>
  new Refusal(401, 'AuthenticationRequired', 'Invalid email or password', { code: 'AUTHENTICATION_REQUIRED' })

const shape = Type.Object({
  email: Type.String(),
  password: Type.String(),
  authFactorToken: Type.Optional(Type.String()),
})

export const provisioningLoginRoutes = [
  route('POST', '/v1/accounts/sessions', {
    limit: 'createSession',
    async handler(call) {
      const { ctx, body } = call
      const { email, password, authFactorToken } = await readJson(body, shape)
      if (password.length > MAX_TRIED_PASSWORD_CHARS) throw wrongCredentials()
      const origin = requestOrigin(call)
      // Opens the session within the attempt, because only a stored session may clear the failures.
      const login = await attemptLogin(call, email, async (named) => {
        const account = named?.email === email.trim().toLowerCase() ? named : null
        const revalidate = await provePassword(ctx, account, password, wrongCredentials)
        if (account === null || revalidate === null) return null
        const { did } = account
        await passFactor(call, account, authFactorToken)
        return ctx.db.transaction(async (tx) => {
          await revalidate(tx)
          if ((await accountStatus(tx, did)) !== 'active') return null
          await announceSignIn(tx, call, did, 'password')
          return { did, sessionToken: await openWalletSession(tx, did, { byPassword: true }, origin) }
        })
      })
      if (!login.ok) throw loginRefused(call, login.fault, wrongCredentials())
      return login.value
    },
  }),
]
