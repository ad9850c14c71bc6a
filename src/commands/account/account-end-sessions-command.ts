import { adminCommand } from '../admin-command.ts'
import { facts } from '../report.ts'
import { findAccount, nameOf, NAMED_BY } from './operator-accounts.ts'

interface Ended {
  sessionsRevoked: number
  appPasswordsRevoked: number
  oauthTokensRevoked: number
  agentRegistrationsRevoked: number
}

export const accountEndSessionsCommand = adminCommand({
  summary: 'End all access to an account: sessions, app passwords, apps, agents and browsers.',
  parameters: ['<account>'],
  details: `${NAMED_BY}

The password stays: "account reset-password" replaces it.`,
  async run({ server, positionals: [name = ''] }) {
    const account = await findAccount(server, name)
    const ended = await server.post<Ended>(`/v1/admin/accounts/${encodeURIComponent(account.did)}/revoke-credentials`)
    const counts = facts({
      sessions: ended.sessionsRevoked,
      'app passwords': ended.appPasswordsRevoked,
      apps: ended.oauthTokensRevoked,
      agents: ended.agentRegistrationsRevoked,
    })
    return { value: { did: account.did, ...ended }, text: `All access to ${nameOf(account)} has ended:\n${counts}` }
  },
})
