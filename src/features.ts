/** All features of the service, each after those that it builds on. */
import type { Feature } from './http/feature.ts'
import { accountChanges } from './features/identity/account-changes/account-changes-feature.ts'
import { accountArchives } from './features/data/account-archives/account-archives-feature.ts'
import { accounts } from './features/identity/accounts/accounts-feature.ts'
import { accountEvents } from './features/identity/account-events/account-events-feature.ts'
import { alerts } from './features/operations/alerts/alerts.ts'
import { admin } from './features/operations/admin/admin.ts'
import { agents } from './features/agents/agents/agents-feature.ts'
import { sessions } from './features/access/sessions/sessions-feature.ts'
import { backup } from './features/operations/backup/backup.ts'
import { blobs } from './features/data/blobs/blobs-feature.ts'
import { cases } from './features/operations/cases/cases-feature.ts'
import { certificates } from './features/operations/certificates/certificates-feature.ts'
import { children } from './features/agents/children/children-feature.ts'
import { delegations } from './features/access/delegations/delegations-feature.ts'
import { ceremony } from './features/identity/ceremony/ceremony-feature.ts'
import { dataBrowser } from './features/operations/data-browser/data-browser-feature.ts'
import { doctor } from './features/operations/doctor/doctor-feature.ts'
import { escrow } from './features/identity/escrow/escrow-feature.ts'
import { factors } from './features/access/factors/factors-feature.ts'
import { failedRequests } from './features/operations/failed-requests/failed-requests.ts'
import { firehose } from './features/data/firehose/firehose-feature.ts'
import { handles } from './features/identity/handles/handles-feature.ts'
import { identity } from './features/identity/identity/identity-feature.ts'
import { identityWatch } from './features/identity/identity-watch/identity-watch-feature.ts'
import { hostRename } from './features/operations/host-rename/host-rename-feature.ts'
import { integrity } from './features/operations/integrity/integrity-feature.ts'
import { invites } from './features/identity/invites/invites-feature.ts'
import { iroh } from './features/push/iroh/iroh.ts'
import { labels } from './features/data/labels/labels.ts'
import { mails } from './features/identity/mails/mails-feature.ts'
import { migration } from './features/identity/migration/migration-feature.ts'
import { notifications } from './features/push/notifications/notifications-feature.ts'
import { oauth } from './features/access/oauth/oauth-feature.ts'
import { operators } from './features/operations/operators/operators-feature.ts'
import { passwords } from './features/identity/passwords/passwords-feature.ts'
import { plcDirectory } from './features/operations/plc-directory/plc-directory.ts'
import { preferences } from './features/data/preferences/preferences.ts'
import { proxy } from './features/data/proxy/proxy-feature.ts'
import { referenceImport } from './features/operations/reference-import/reference-import.ts'
import { repo } from './features/data/repo/repo-feature.ts'
import { repoKeys } from './features/identity/repo-keys/repo-keys.ts'
import { reach } from './features/operations/reach/reach-feature.ts'
import { reservedKeys } from './features/identity/reserved-keys/reserved-keys-feature.ts'
import { serverInfo } from './features/operations/server-info/server-info.ts'
import { serviceAuth } from './features/access/service-auth/service-auth.ts'
import { signup } from './features/identity/signup/signup-feature.ts'
import { spaces } from './features/data/spaces/spaces-feature.ts'
import { sync } from './features/data/sync/sync-feature.ts'
import { tokens } from './features/access/tokens/tokens-feature.ts'
import { transfers } from './features/identity/transfers/transfers-feature.ts'
import { waitlist } from './features/identity/waitlist/waitlist.ts'
import { webDocuments } from './features/identity/web-documents/web-documents-feature.ts'
import { walletDevices } from './features/access/wallet-devices/wallet-devices-feature.ts'
import { walletProofs } from './features/access/wallet-proofs/wallet-proofs-feature.ts'
import { accountPages } from './features/access/account-pages/account-pages.ts'
import { operatorConsole } from './features/operations/console/console.ts'
import { pages } from './features/access/pages/pages-feature.ts'

export const features: readonly Feature[] = [
  firehose,
  accounts,
  mails,
  accountEvents,
  passwords,
  factors,
  tokens,
  sessions,
  iroh,
  operators,
  notifications,
  identity,
  reservedKeys,
  webDocuments,
  handles,
  serviceAuth,
  walletProofs,
  escrow,
  invites,
  blobs,
  repo,
  spaces,
  cases,
  proxy,
  sync,
  preferences,
  accountArchives,
  labels,
  pages,
  delegations,
  oauth,
  agents,
  children,
  signup,
  walletDevices,
  transfers,
  accountChanges,
  migration,
  ceremony,
  repoKeys,
  identityWatch,
  hostRename,
  waitlist,
  admin,
  failedRequests,
  dataBrowser,
  integrity,
  backup,
  referenceImport,
  certificates,
  doctor,
  plcDirectory,
  serverInfo,
  reach,
  alerts,
  accountPages,
  operatorConsole,
]
