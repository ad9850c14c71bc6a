/** Change the takedown state of an account: shared by `account takedown` and `account restore`. */
import { findAccount, nameOf } from './operator-accounts.ts'
import type { Answer } from '../admin-command.ts'
import type { Server } from '../operator-server.ts'

export async function changeTakedown(
  server: Server,
  name: string,
  takedown: { applied: boolean; ref?: string | undefined },
): Promise<Answer> {
  const account = await findAccount(server, name)
  const subject = { $type: 'com.atproto.admin.defs#repoRef', did: account.did }
  await server.post('/xrpc/com.atproto.admin.updateSubjectStatus', { subject, takedown })
  const now = await findAccount(server, account.did)
  const state = `${nameOf(now)} is ${now.status === 'takendown' ? 'taken down' : now.status}.`
  const active = now.children.filter(({ status }) => status === 'active')
  const rest = `Accounts that it made for programs are still active: ${active.map(nameOf).join(', ')}.`
  return {
    value: { did: now.did, handle: now.handle, status: now.status },
    text: now.status === 'takendown' && active.length > 0 ? `${state}\n${rest}` : state,
  }
}
