/** Sessions: of passwords, of app passwords, and of wallets. */
import type { Feature } from '../../../http/feature.ts'
import { deleteAppPasswordsOf } from './app-password-store.ts'
import { deleteSessionsByPassword, deleteSessionsOf } from './session-store.ts'
import { walletCredential } from './wallet-credential.ts'
import { deleteWalletSessionsByPassword, deleteWalletSessionsOf } from './wallet-session-store.ts'
import { appPasswordRoutes } from './app-password-routes.ts'
import { scopedAppPasswordRoutes } from './scoped-app-password-routes.ts'
import { expiredSessionsSweep } from './expired-sessions-sweep.ts'
import { sessionRoutes } from './session-routes.ts'
import { sessionCredential } from './session-credential.ts'
import { sessionTokenKey } from './session-tokens.ts'

export const sessions: Feature = {
  name: 'sessions',
  capabilities: ['appPasswordPersonalDetails', 'scopedAppPasswords'],
  routes: [...sessionRoutes, ...appPasswordRoutes, ...scopedAppPasswordRoutes],
  sweeps: [expiredSessionsSweep],
  credentials: [sessionCredential, walletCredential],
  async prepare(ctx) {
    await sessionTokenKey(ctx)
  },
  async forgetAccount(_, tx, did) {
    for (const forget of [deleteSessionsOf, deleteWalletSessionsOf, deleteAppPasswordsOf]) await forget(tx, did)
  },
  async endAccess(_, tx, did, why) {
    if (why === 'new_password') {
      await deleteSessionsByPassword(tx, did)
      await deleteWalletSessionsByPassword(tx, did)
      return
    }
    // As in the reference implementation, a session from before the takedown lasts until its access token expires.
    const sessions = why === 'taken_down' ? 0 : await deleteSessionsOf(tx, did)
    return {
      sessions: sessions + (await deleteWalletSessionsOf(tx, did)),
      ...(why === 'revoked' && { appPasswords: await deleteAppPasswordsOf(tx, did) }),
    }
  },
}
