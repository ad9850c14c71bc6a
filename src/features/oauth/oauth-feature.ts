/** The OAuth authorization server. Apps request access to an account here, and the account holder decides. */
import type { Feature } from '../../http/feature.ts'
import { authorizeRoutes } from './authorize-routes.ts'
import { expirySweep } from './expiry-sweep.ts'
import { metadataRoutes } from './metadata-routes.ts'
import { proofState } from './proofs.ts'
import { refreshSecret } from './oauth-refresh-tokens.ts'
import { serverKey } from './server-key.ts'
import { tokenRoutes } from './token-routes.ts'
import { walletConsentRoutes } from './wallet-consent-routes.ts'
import { waitScript } from './wallet-consent-block.ts'

export const oauth: Feature = {
  name: 'oauth',
  routes: [...metadataRoutes, ...tokenRoutes, ...authorizeRoutes, ...walletConsentRoutes, waitScript.route],
  capabilities: ['walletConsent'],
  sweeps: [expirySweep],
  async prepare(ctx) {
    await serverKey(ctx)
    await proofState(ctx)
    await refreshSecret(ctx)
  },
}
