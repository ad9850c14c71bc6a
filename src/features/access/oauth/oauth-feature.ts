/** The OAuth authorization server. Apps request access to an account here, and the account holder decides. */
import type { Feature } from '../../../http/feature.ts'
import { endOAuthSessions } from './oauth.ts'
import { deleteBrowserConsentsBy } from './wallet-consent-store.ts'
import { deleteConsentsAbout } from './wallet-consents.ts'
import { appCredential } from './app-credential.ts'
import { authorizeRoutes } from './authorize-routes.ts'
import { expirySweep } from './expiry-sweep.ts'
import { metadataRoutes } from './metadata-routes.ts'
import { refreshSecret } from './oauth-refresh-tokens.ts'
import { deleteOAuthSessionsBy } from './oauth-session-store.ts'
import { clientRoutes } from './client-routes.ts'
import { walletConsentRoutes } from './wallet-consent-routes.ts'
import { waitScript } from './wallet-consent-block.ts'

export const oauth: Feature = {
  name: 'oauth',
  routes: [...metadataRoutes, ...clientRoutes, ...authorizeRoutes, ...walletConsentRoutes, waitScript.route],
  capabilities: ['walletConsent'],
  credentials: [appCredential],
  sweeps: [expirySweep],
  async prepare(ctx) {
    await refreshSecret(ctx)
  },
  async forgetAccount(_, tx, did) {
    await endOAuthSessions(tx, did)
    await deleteConsentsAbout(tx, did)
  },
  async endDelegation(_, tx, delegation) {
    await deleteOAuthSessionsBy(tx, delegation)
  },
  async endAccess(_, tx, did, why) {
    // A new password, or another device, does not change what the holder lets apps do. Only sign-ins of browsers that a
    // wallet has approved end, as those of browsers that are signed in already do.
    if (why === 'new_password' || why === 'transferred') return void (await deleteBrowserConsentsBy(tx, did))
    const { sessions, codes } = await endOAuthSessions(tx, did)
    return { oauthTokens: sessions, oauthCodes: codes }
  },
}
