import { accountAgentsCommand } from './account-agents-command.ts'
import { accountCreateCommand } from './account-create-command.ts'
import { accountDeleteCommand } from './account-delete-command.ts'
import { accountEndAgentsCommand } from './account-end-agents-command.ts'
import { accountListCommand } from './account-list-command.ts'
import { accountResetPasswordCommand } from './account-reset-password-command.ts'
import { accountRestoreCommand } from './account-restore-command.ts'
import { accountShowCommand } from './account-show-command.ts'
import { accountTakedownCommand } from './account-takedown-command.ts'
import { accountUsageCommand } from './account-usage-command.ts'
import { agentCallCommand } from './agent-call-command.ts'
import { agentRegisterCommand } from './agent-register-command.ts'
import { agentRevokeCommand } from './agent-revoke-command.ts'
import { agentTokenCommand } from './agent-token-command.ts'
import { agentWaitCommand } from './agent-wait-command.ts'
import { backupCommand } from './backup-command.ts'
import { ceremonyListCommand } from './ceremony-list-command.ts'
import { clusterStatusCommand } from './cluster-status-command.ts'
import type { Command } from './command.ts'
import { configCheckCommand } from './config-check-command.ts'
import { copyCommand } from './copy-command.ts'
import { devCommand } from './dev-command.ts'
import { doctorCommand } from './doctor-command.ts'
import { firehoseCommand } from './firehose-command.ts'
import { inviteCreateCommand } from './invite-create-command.ts'
import { inviteDisableCommand } from './invite-disable-command.ts'
import { inviteListCommand } from './invite-list-command.ts'
import { mailTestCommand } from './mail-test-command.ts'
import { mcpCommand } from './mcp-command.ts'
import { pushKeysCommand } from './push-keys-command.ts'
import { pushRetireKeyCommand } from './push-retire-key-command.ts'
import { pushRevokeKeyCommand } from './push-revoke-key-command.ts'
import { pushTestCommand } from './push-test-command.ts'
import { pushRotateKeyCommand } from './push-rotate-key-command.ts'
import { recoveryListCommand } from './recovery-list-command.ts'
import { relayRequestCrawlCommand } from './relay-request-crawl-command.ts'
import { relayStatusCommand } from './relay-status-command.ts'
import { restoreCommand } from './restore-command.ts'
import { rewrapCommand } from './rewrap-command.ts'
import { serveCommand } from './serve-command.ts'
import { stepDropCommand } from './step-drop-command.ts'
import { stepListCommand } from './step-list-command.ts'
import { stepRetryCommand } from './step-retry-command.ts'
import { sweepCommand } from './sweep-command.ts'
import { transferCancelCommand } from './transfer-cancel-command.ts'
import { transferListCommand } from './transfer-list-command.ts'
import { verifyCommand } from './verify-command.ts'
import { versionCommand } from './version-command.ts'
import { walletAdoptCommand } from './wallet-adopt-command.ts'
import { walletApproveCommand } from './wallet-approve-command.ts'
import { walletCreateCommand } from './wallet-create-command.ts'
import { walletDeleteCommand } from './wallet-delete-command.ts'
import { walletDenyCommand } from './wallet-deny-command.ts'
import { walletEscrowCommand } from './wallet-escrow-command.ts'
import { walletExportCommand } from './wallet-export-command.ts'
import { walletHandleCommand } from './wallet-handle-command.ts'
import { walletHostingCommand } from './wallet-hosting-command.ts'
import { walletKeyCommand } from './wallet-key-command.ts'
import { walletMoveCommand } from './wallet-move-command.ts'
import { walletRecoverCommand } from './wallet-recover-command.ts'
import { walletRotateKeyCommand } from './wallet-rotate-key-command.ts'
import { walletShowCommand } from './wallet-show-command.ts'
import { walletSignInCommand } from './wallet-sign-in-command.ts'
import { walletTransferCommand } from './wallet-transfer-command.ts'

/** All commands, in the order in which `holdfast --help` lists them. */
export const commands: readonly Command[] = [
  serveCommand,
  devCommand,
  configCheckCommand,
  doctorCommand,
  mailTestCommand,
  accountListCommand,
  accountShowCommand,
  accountCreateCommand,
  accountResetPasswordCommand,
  accountTakedownCommand,
  accountRestoreCommand,
  accountDeleteCommand,
  accountUsageCommand,
  accountAgentsCommand,
  accountEndAgentsCommand,
  inviteCreateCommand,
  inviteListCommand,
  inviteDisableCommand,
  relayRequestCrawlCommand,
  relayStatusCommand,
  clusterStatusCommand,
  ceremonyListCommand,
  recoveryListCommand,
  transferListCommand,
  transferCancelCommand,
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
  mcpCommand,
  versionCommand,
]
