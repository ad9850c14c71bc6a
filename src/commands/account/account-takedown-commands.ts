/** Take an account down, and lift its takedown. */
import type { Answer } from '../admin-command.ts'
import { type AboutAccount, accountCommand, findAccount, nameOf } from './operator-accounts.ts'

export const accountTakedownCommand = accountCommand({
  summary: 'Take an account down: hide it and refuse its writes. Its holder can still export, appeal and move away.',
  details: `Hides the account, its records, its blobs and its handle from everyone else, tells the network, and refuses writes and
uploads. Signs out its browsers, apps and wallets, and refuses its agents. Sessions opened with a password or an app
password last until their access token expires, within two hours, and can only fetch the account's own data, appeal and
move away. The holder can sign in again to do the same.

Nothing is deleted. "account restore" lifts the takedown and ends all earlier sessions.`,
  options: { ref: { value: 'TEXT', doc: 'Reference to store with the takedown. Default: the current time.' } },
  run: ({ options: { ref }, ...about }) => changeTakedown(about, { applied: true, ref }),
})

export const accountRestoreCommand = accountCommand({
  summary: 'Lift the takedown of an account.',
  details: '',
  run: (about) => changeTakedown(about, { applied: false }),
})

async function changeTakedown(
  { server, account: { did } }: AboutAccount,
  takedown: { applied: boolean; ref?: string | undefined },
): Promise<Answer> {
  const subject = { $type: 'com.atproto.admin.defs#repoRef', did }
  await server.post('/xrpc/com.atproto.admin.updateSubjectStatus', { subject, takedown })
  const { handle, status, children } = await findAccount(server, did)
  const state = `${nameOf({ handle, did })} is ${status === 'takendown' ? 'taken down' : status}.`
  const active = children.filter((child) => child.status === 'active')
  const rest = `Accounts that it made for programs are still active: ${active.map(nameOf).join(', ')}.`
  return {
    value: { did, handle, status },
    text: status === 'takendown' && active.length > 0 ? `${state}\n${rest}` : state,
  }
}
