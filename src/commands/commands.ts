/** All commands by their words, in the order in which `holdfast --help` lists them. Each is loaded when it is used. */
import type { Command } from './command.ts'

const loaders: Readonly<Record<string, () => Promise<Command>>> = {
  init: async () => (await import('./init/init-command.ts')).initCommand,
  serve: async () => (await import('./server/serve-command.ts')).serveCommand,
  dev: async () => (await import('./server/dev-command.ts')).devCommand,
  'config check': async () => (await import('./server/config-check-command.ts')).configCheckCommand,
  health: async () => (await import('./server/health-command.ts')).healthCommand,
  doctor: async () => (await import('./server/doctor-command.ts')).doctorCommand,
  alerts: async () => (await import('./server/alerts-command.ts')).alertsCommand,
  upgrade: async () => (await import('./upgrade/upgrade-command.ts')).upgradeCommand,
  'mail test': async () => (await import('./server/mail-test-command.ts')).mailTestCommand,
  'account list': async () => (await import('./account/account-list-command.ts')).accountListCommand,
  'account show': async () => (await import('./account/account-show-command.ts')).accountShowCommand,
  'account create': async () => (await import('./account/account-create-command.ts')).accountCreateCommand,
  'account reset-password': async () =>
    (await import('./account/account-reset-password-command.ts')).accountResetPasswordCommand,
  'account takedown': async () => (await import('./account/account-takedown-command.ts')).accountTakedownCommand,
  'account restore': async () => (await import('./account/account-restore-command.ts')).accountRestoreCommand,
  'account delete': async () => (await import('./account/account-delete-command.ts')).accountDeleteCommand,
  'account usage': async () => (await import('./account/account-usage-command.ts')).accountUsageCommand,
  'account export': async () => (await import('./account/account-export-command.ts')).accountExportCommand,
  'account import-archive': async () =>
    (await import('./account/account-import-archive-command.ts')).accountImportArchiveCommand,
  'account agents': async () => (await import('./account/account-agents-command.ts')).accountAgentsCommand,
  'account end-agents': async () => (await import('./account/account-end-agents-command.ts')).accountEndAgentsCommand,
  'account ceremonies': async () => (await import('./account/account-ceremonies-command.ts')).accountCeremoniesCommand,
  'account recoveries': async () => (await import('./account/account-recoveries-command.ts')).accountRecoveriesCommand,
  'account transfers': async () => (await import('./account/account-transfers-command.ts')).accountTransfersCommand,
  'account cancel-transfer': async () =>
    (await import('./account/account-cancel-transfer-command.ts')).accountCancelTransferCommand,
  'invite create': async () => (await import('./invite/invite-create-command.ts')).inviteCreateCommand,
  'invite list': async () => (await import('./invite/invite-list-command.ts')).inviteListCommand,
  'invite disable': async () => (await import('./invite/invite-disable-command.ts')).inviteDisableCommand,
  'quota show': async () => (await import('./quota/quota-show-command.ts')).quotaShowCommand,
  'quota set': async () => (await import('./quota/quota-set-command.ts')).quotaSetCommand,
  'relay request-crawl': async () => (await import('./server/relay-request-crawl-command.ts')).relayRequestCrawlCommand,
  'relay status': async () => (await import('./server/relay-status-command.ts')).relayStatusCommand,
  'cluster status': async () => (await import('./server/cluster-status-command.ts')).clusterStatusCommand,
  'push test': async () => (await import('./push/push-test-command.ts')).pushTestCommand,
  'push key list': async () => (await import('./push/push-keys-command.ts')).pushKeysCommand,
  'push key rotate': async () => (await import('./push/push-rotate-key-command.ts')).pushRotateKeyCommand,
  'push key retire': async () => (await import('./push/push-retire-key-command.ts')).pushRetireKeyCommand,
  'push key revoke': async () => (await import('./push/push-revoke-key-command.ts')).pushRevokeKeyCommand,
  'step list': async () => (await import('./step/step-list-command.ts')).stepListCommand,
  'step retry': async () => (await import('./step/step-retry-command.ts')).stepRetryCommand,
  'step drop': async () => (await import('./step/step-drop-command.ts')).stepDropCommand,
  backup: async () => (await import('./server/backup-command.ts')).backupCommand,
  restore: async () => (await import('./server/restore-command.ts')).restoreCommand,
  copy: async () => (await import('./server/copy-command.ts')).copyCommand,
  'import-reference': async () => (await import('./server/import-reference-command.ts')).importReferenceCommand,
  verify: async () => (await import('./server/verify-command.ts')).verifyCommand,
  sweep: async () => (await import('./server/sweep-command.ts')).sweepCommand,
  rewrap: async () => (await import('./server/rewrap-command.ts')).rewrapCommand,
  firehose: async () => (await import('./server/firehose-command.ts')).firehoseCommand,
  'wallet create': async () => (await import('./wallet/wallet-create-command.ts')).walletCreateCommand,
  'wallet key': async () => (await import('./wallet/wallet-key-command.ts')).walletKeyCommand,
  'wallet adopt': async () => (await import('./wallet/wallet-adopt-command.ts')).walletAdoptCommand,
  'wallet show': async () => (await import('./wallet/wallet-show-command.ts')).walletShowCommand,
  'wallet sign-in': async () => (await import('./wallet/wallet-sign-in-command.ts')).walletSignInCommand,
  'wallet approve': async () => (await import('./wallet/wallet-approve-command.ts')).walletApproveCommand,
  'wallet deny': async () => (await import('./wallet/wallet-deny-command.ts')).walletDenyCommand,
  'wallet handle': async () => (await import('./wallet/wallet-handle-command.ts')).walletHandleCommand,
  'wallet rotate-key': async () => (await import('./wallet/wallet-rotate-key-command.ts')).walletRotateKeyCommand,
  'wallet escrow': async () => (await import('./wallet/wallet-escrow-command.ts')).walletEscrowCommand,
  'wallet move': async () => (await import('./wallet/wallet-move-command.ts')).walletMoveCommand,
  'wallet transfer': async () => (await import('./wallet/wallet-transfer-command.ts')).walletTransferCommand,
  'wallet recover': async () => (await import('./wallet/wallet-recover-command.ts')).walletRecoverCommand,
  'wallet hosting': async () => (await import('./wallet/wallet-hosting-command.ts')).walletHostingCommand,
  'wallet export': async () => (await import('./wallet/wallet-export-command.ts')).walletExportCommand,
  'wallet delete': async () => (await import('./wallet/wallet-delete-command.ts')).walletDeleteCommand,
  'agent register': async () => (await import('./agent/agent-register-command.ts')).agentRegisterCommand,
  'agent wait': async () => (await import('./agent/agent-wait-command.ts')).agentWaitCommand,
  'agent token': async () => (await import('./agent/agent-token-command.ts')).agentTokenCommand,
  'agent call': async () => (await import('./agent/agent-call-command.ts')).agentCallCommand,
  'agent revoke': async () => (await import('./agent/agent-revoke-command.ts')).agentRevokeCommand,
  'agent mcp': async () => (await import('./agent/agent-mcp-command.ts')).agentMcpCommand,
  version: async () => (await import('./server/version-command.ts')).versionCommand,
}

export const commandNames: readonly string[] = Object.keys(loaders)

export type NamedCommand = Command & { name: string }

export const loadCommand = async (name: string): Promise<NamedCommand> => ({ name, ...(await loaders[name]!()) })

export const loadCommands = (names: readonly string[] = commandNames): Promise<NamedCommand[]> =>
  Promise.all(names.map(loadCommand))
