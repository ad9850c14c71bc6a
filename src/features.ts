/** All features of the service. */
import type { Feature } from './http/feature.ts'
import { accountChanges } from './features/account-changes/account-changes-feature.ts'
import { accounts } from './features/accounts/accounts-feature.ts'
import { admin } from './features/admin/admin.ts'
import { agents } from './features/agents/agents-feature.ts'
import { auth } from './features/auth/auth-feature.ts'
import { backup } from './features/backup/backup.ts'
import { blobGc } from './features/blob-gc/blob-gc.ts'
import { blobs } from './features/blobs/blobs-feature.ts'
import { children } from './features/children/children.ts'
import { ceremony } from './features/ceremony/ceremony-feature.ts'
import { doctor } from './features/doctor/doctor-feature.ts'
import { escrow } from './features/escrow/escrow-feature.ts'
import { firehose } from './features/firehose/firehose-feature.ts'
import { identity } from './features/identity/identity-feature.ts'
import { invites } from './features/invites/invites-feature.ts'
import { iroh } from './features/iroh/iroh.ts'
import { labels } from './features/labels/labels.ts'
import { notifications } from './features/notifications/notifications-feature.ts'
import { oauth } from './features/oauth/oauth-feature.ts'
import { operators } from './features/operators/operators-feature.ts'
import { plcDirectory } from './features/plc-directory/plc-directory.ts'
import { preferences } from './features/preferences/preferences.ts'
import { provisioning } from './features/provisioning/provisioning-feature.ts'
import { proxy } from './features/proxy/proxy-feature.ts'
import { repo } from './features/repo/repo-feature.ts'
import { repoKeys } from './features/repo-keys/repo-keys-feature.ts'
import { senderKeys } from './features/sender-keys/sender-keys-feature.ts'
import { serverInfo } from './features/server-info/server-info.ts'
import { signup } from './features/signup/signup-feature.ts'
import { sync } from './features/sync/sync-feature.ts'
import { transfers } from './features/transfers/transfers-feature.ts'
import { waitlist } from './features/waitlist/waitlist.ts'
import { walletDevices } from './features/wallet-devices/wallet-devices-feature.ts'
import { walletProofs } from './features/wallet-proofs/wallet-proofs-feature.ts'
import { web } from './features/web/web-feature.ts'

export const features: readonly Feature[] = [
  accountChanges,
  accounts,
  admin,
  agents,
  auth,
  backup,
  blobGc,
  blobs,
  ceremony,
  children,
  doctor,
  escrow,
  firehose,
  identity,
  invites,
  iroh,
  labels,
  notifications,
  oauth,
  operators,
  plcDirectory,
  preferences,
  provisioning,
  proxy,
  repo,
  repoKeys,
  senderKeys,
  serverInfo,
  signup,
  sync,
  transfers,
  waitlist,
  walletDevices,
  walletProofs,
  web,
]
