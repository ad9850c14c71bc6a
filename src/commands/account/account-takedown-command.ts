import { changeTakedown } from './change-takedown.ts'
import { adminCommand } from '../admin-command.ts'
import { NAMED_BY } from './operator-accounts.ts'

export const accountTakedownCommand = adminCommand({
  summary: 'Take an account down: hide it and refuse its writes. Its holder can still export, appeal and move away.',
  parameters: ['<account>'],
  details: `${NAMED_BY}

Hides the account, its records, its blobs and its handle from everyone else, tells the network, and refuses writes and
uploads. Signs out its browsers, apps and wallets, and refuses its agents. Sessions opened with a password or an app
password last until their access token expires, within two hours, and can only fetch the account's own data, appeal and
move away. The holder can sign in again to do the same.

Nothing is deleted. "account restore" lifts the takedown and ends all earlier sessions.`,
  options: { ref: { value: 'TEXT', doc: 'Reference to store with the takedown. Default: the current time.' } },
  run: ({ server, positionals: [name = ''], options: { ref } }) => changeTakedown(server, name, { applied: true, ref }),
})
