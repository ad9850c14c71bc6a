import { facts } from '../report.ts'
import { accountCommand, nameOf } from './operator-accounts.ts'

interface Ended {
  sessionsRevoked: number
  appPasswordsRevoked: number
  oauthTokensRevoked: number
  agentRegistrationsRevoked: number
  delegationsRevoked: number
}

export const accountEndSessionsCommand = accountCommand({
  summary: 'End all access to an account, or one session, app, agent, browser or app password.',
  parameters: ['[id]'],
  details: `"account sessions" lists ids. Without one, everything ends: sessions, app passwords, apps, agents, delegates and
browsers.

The password stays: "account reset-password" replaces it.`,
  async run({ server, account, path, positionals: [id] }) {
    if (id !== undefined)
      return {
        value: await server.post(`${path}/access/end`, { id }),
        text: `${id} no longer has access to ${nameOf(account)}.`,
      }
    const ended = await server.post<Ended>(`${path}/revoke-credentials`)
    const counts = facts({
      sessions: ended.sessionsRevoked,
      'app passwords': ended.appPasswordsRevoked,
      apps: ended.oauthTokensRevoked,
      agents: ended.agentRegistrationsRevoked,
      delegates: ended.delegationsRevoked,
    })
    return { value: { did: account.did, ...ended }, text: `All access to ${nameOf(account)} has ended:\n${counts}` }
  },
})
