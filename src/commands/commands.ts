import { accountAgentsCommand } from './account/account-agents-command.ts'
import { accountCancelTransferCommand } from './account/account-cancel-transfer-command.ts'
import { accountCeremoniesCommand } from './account/account-ceremonies-command.ts'
import { accountCreateCommand } from './account/account-create-command.ts'
import { accountDeleteCommand } from './account/account-delete-command.ts'
import { accountEndAgentsCommand } from './account/account-end-agents-command.ts'
import { accountExportCommand } from './account/account-export-command.ts'
import { accountListCommand } from './account/account-list-command.ts'
import { accountRecoveriesCommand } from './account/account-recoveries-command.ts'
import { accountResetPasswordCommand } from './account/account-reset-password-command.ts'
import { accountRestoreCommand } from './account/account-restore-command.ts'
import { accountShowCommand } from './account/account-show-command.ts'
import { accountTakedownCommand } from './account/account-takedown-command.ts'
import { accountTransfersCommand } from './account/account-transfers-command.ts'
import { accountUsageCommand } from './account/account-usage-command.ts'
import { agentCallCommand } from './agent/agent-call-command.ts'
import { agentMcpCommand } from './agent/agent-mcp-command.ts'
import { agentRegisterCommand } from './agent/agent-register-command.ts'
import { agentRevokeCommand } from './agent/agent-revoke-command.ts'
import { agentTokenCommand } from './agent/agent-token-command.ts'
import { agentWaitCommand } from './agent/agent-wait-command.ts'
import { alertsCommand } from './server/alerts-command.ts'
import { backupCommand } from './server/backup-command.ts'
import { clusterStatusCommand } from './server/cluster-status-command.ts'
import type { Command } from './command.ts'
import { configCheckCommand } from './server/config-check-command.ts'
import { copyCommand } from './server/copy-command.ts'
import { importReferenceCommand } from './server/import-reference-command.ts'
import { devCommand } from './server/dev-command.ts'
import { doctorCommand } from './server/doctor-command.ts'
import { firehoseCommand } from './server/firehose-command.ts'
import { healthCommand } from './server/health-command.ts'
import { inviteCreateCommand } from './invite/invite-create-command.ts'
import { inviteDisableCommand } from './invite/invite-disable-command.ts'
import { inviteListCommand } from './invite/invite-list-command.ts'
import { quotaSetCommand } from './quota/quota-set-command.ts'
import { quotaShowCommand } from './quota/quota-show-command.ts'
import { mailTestCommand } from './server/mail-test-command.ts'
import { pushKeysCommand } from './push/push-keys-command.ts'
import { pushRetireKeyCommand } from './push/push-retire-key-command.ts'
import { pushRevokeKeyCommand } from './push/push-revoke-key-command.ts'
import { pushTestCommand } from './push/push-test-command.ts'
import { pushRotateKeyCommand } from './push/push-rotate-key-command.ts'
import { relayRequestCrawlCommand } from './server/relay-request-crawl-command.ts'
import { relayStatusCommand } from './server/relay-status-command.ts'
import { restoreCommand } from './server/restore-command.ts'
import { rewrapCommand } from './server/rewrap-command.ts'
import { serveCommand } from './server/serve-command.ts'
import { stepDropCommand } from './step/step-drop-command.ts'
import { stepListCommand } from './step/step-list-command.ts'
import { stepRetryCommand } from './step/step-retry-command.ts'
import { sweepCommand } from './server/sweep-command.ts'
import { upgradeCommand } from './upgrade/upgrade-command.ts'
import { verifyCommand } from './server/verify-command.ts'
import { versionCommand } from './server/version-command.ts'
import { walletAdoptCommand } from './wallet/wallet-adopt-command.ts'
import { walletApproveCommand } from './wallet/wallet-approve-command.ts'
import { walletCreateCommand } from './wallet/wallet-create-command.ts'
import { walletDeleteCommand } from './wallet/wallet-delete-command.ts'
import { walletDenyCommand } from './wallet/wallet-deny-command.ts'
import { walletEscrowCommand } from './wallet/wallet-escrow-command.ts'
import { walletExportCommand } from './wallet/wallet-export-command.ts'
import { walletHandleCommand } from './wallet/wallet-handle-command.ts'
import { walletHostingCommand } from './wallet/wallet-hosting-command.ts'
import { walletKeyCommand } from './wallet/wallet-key-command.ts'
import { walletMoveCommand } from './wallet/wallet-move-command.ts'
import { walletRecoverCommand } from './wallet/wallet-recover-command.ts'
import { walletRotateKeyCommand } from './wallet/wallet-rotate-key-command.ts'
import { walletShowCommand } from './wallet/wallet-show-command.ts'
import { walletSignInCommand } from './wallet/wallet-sign-in-command.ts'
import { walletTransferCommand } from './wallet/wallet-transfer-command.ts'

/** All commands, in the order in which `holdfast --help` lists them. */
export const commands: readonly Command[] = [
  serveCommand,
  devCommand,
  configCheckCommand,
  healthCommand,
  doctorCommand,
  alertsCommand,
  upgradeCommand,
  mailTestCommand,
  accountListCommand,
  accountShowCommand,
  accountCreateCommand,
  accountResetPasswordCommand,
  accountTakedownCommand,
  accountRestoreCommand,
  accountDeleteCommand,
  accountUsageCommand,
  accountExportCommand,
  accountAgentsCommand,
  accountEndAgentsCommand,
  accountCeremoniesCommand,
  accountRecoveriesCommand,
  accountTransfersCommand,
  accountCancelTransferCommand,
  inviteCreateCommand,
  inviteListCommand,
  inviteDisableCommand,
  quotaShowCommand,
  quotaSetCommand,
  relayRequestCrawlCommand,
  relayStatusCommand,
  clusterStatusCommand,
  pushTestCommand,
  pushKeysCommand,
  pushRotateKeyCommand,
  pushRetireKeyCommand,
  pushRevokeKeyCommand,
  stepListCommand,
  stepRetryCommand,
  stepDropCommand,
  backupCommand,
  restoreCommand,
  copyCommand,
  importReferenceCommand,
  verifyCommand,
  sweepCommand,
  rewrapCommand,
  firehoseCommand,
  walletCreateCommand,
  walletKeyCommand,
  walletAdoptCommand,
  walletShowCommand,
  walletSignInCommand,
  walletApproveCommand,
  walletDenyCommand,
  walletHandleCommand,
  walletRotateKeyCommand,
  walletEscrowCommand,
  walletMoveCommand,
  walletTransferCommand,
  walletRecoverCommand,
  walletHostingCommand,
  walletExportCommand,
  walletDeleteCommand,
  agentRegisterCommand,
  agentWaitCommand,
  agentTokenCommand,
  agentCallCommand,
  agentRevokeCommand,
  agentMcpCommand,
  versionCommand,
]
