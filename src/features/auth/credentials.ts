/** Every kind of credential. A new one needs its own file, a line here, and a place in the guards that accept it (`auth.ts`). */
import { agentCredential } from './agent-credential.ts'
import { appCredential } from './app-credential.ts'
import { deviceCredential } from './device-credential.ts'
import { operatorCredential } from './operator-credential.ts'
import { pendingCredential } from './pending-credential.ts'
import { refreshCredential } from './refresh-credential.ts'
import { delegatedCredential, moderationCredential, serviceCredential } from './service-credentials.ts'
import { sessionCredential } from './session-credential.ts'
import { walletCredential } from './wallet-credential.ts'

export const credentials = {
  session: sessionCredential,
  refresh: refreshCredential({ expired: false }),
  expiredRefresh: refreshCredential({ expired: true }),
  app: appCredential,
  agent: agentCredential,
  service: serviceCredential,
  delegated: delegatedCredential,
  moderation: moderationCredential,
  operator: operatorCredential,
  wallet: walletCredential,
  device: deviceCredential,
  pending: pendingCredential,
}
