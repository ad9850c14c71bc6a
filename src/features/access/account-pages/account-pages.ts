/** Pages for account holders: signing in and up, looking after an account, choosing a new password. */
import type { Feature } from '../../../http/feature.ts'
import { accountRoutes } from './account-routes.ts'
import { agentRecordRoutes } from './agents-page.ts'
import { appealRoutes } from './appeal-page.ts'
import { eventsPageRoutes } from './events-page.ts'
import { delegateActsRoutes } from './delegate-acts-page.ts'
import { sharingRoutes } from './sharing-page.ts'
import { factorRoutes } from './factors-page.ts'
import { identityPageRoutes } from './identity-page.ts'
import { moveAwayRoutes } from './move-away-page.ts'
import { backupMoveRoutes } from './backup-move-pages.ts'
import { moveHereRoutes } from './move-here-pages.ts'
import { importPageRoutes } from './import-page.ts'
import { movePageRoutes } from './move-page.ts'
import { networkRoutes } from './network-page.ts'
import { recoveryRoutes } from './recovery-pages.ts'
import { resetPasswordRoutes } from './reset-password-pages.ts'
import { signInRoutes } from './sign-in-pages.ts'
import { signUpRoutes } from './sign-up-pages.ts'
import { walletSignInRoutes } from './wallet-sign-in-pages.ts'

export const accountPages: Feature = {
  name: 'account-pages',
  routes: [
    ...signInRoutes,
    ...walletSignInRoutes,
    ...signUpRoutes,
    ...resetPasswordRoutes,
    ...accountRoutes,
    ...factorRoutes,
    ...eventsPageRoutes,
    ...agentRecordRoutes,
    ...sharingRoutes,
    ...delegateActsRoutes,
    ...identityPageRoutes,
    ...networkRoutes,
    ...moveHereRoutes,
    ...backupMoveRoutes,
    ...importPageRoutes,
    ...movePageRoutes,
    ...moveAwayRoutes,
    ...recoveryRoutes,
    ...appealRoutes,
  ],
}
