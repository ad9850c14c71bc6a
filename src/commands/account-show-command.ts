import { operated } from './operated.ts'
import { findAccount, NAMED_BY } from './operator-accounts.ts'
import { facts, minute } from './report.ts'

export const accountShowCommand = operated({
  name: 'account show',
  summary: 'Show the data of an account.',
  parameters: ['<account>'],
  details: NAMED_BY,
  async run({ server, positionals: [name = ''] }) {
    const account = await findAccount(server, name)
    const { did, handle, email, emailConfirmedAt, status, createdAt, deactivatedAt, takedownRef, hasPassword, invitesDisabled, flags } =
      account
    const text = facts({
      handle: handle ?? 'none',
      did,
      address: email === null ? 'none' : `${email} (${emailConfirmedAt === null ? 'not confirmed' : 'confirmed'})`,
      status,
      created: minute(createdAt),
      deactivated: minute(deactivatedAt),
      takedown: takedownRef,
      password: hasPassword ? 'yes' : 'none',
      invites: invitesDisabled ? 'disabled' : 'enabled',
      flags: flags.length === 0 ? null : flags.map(({ val, labelerDid }) => `${val} by ${labelerDid}`).join(', '),
    })
    return { value: account, text }
  },
})
