import { accountCommand, nameOf } from './operator-accounts.ts'
import { facts, minute } from '../report.ts'

const shares: Record<string, string> = {
  none: 'none',
  held: 'held',
  pending: 'requested',
  collectable: 'requested, ready to collect',
  collected: 'handed out within the last hour',
}

export const accountShowCommand = accountCommand({
  summary: 'Show the data of an account.',
  details: '',
  async run({ account }) {
    const {
      did,
      handle,
      furtherHandles,
      email,
      emailConfirmedAt,
      status,
      createdAt,
      deactivatedAt,
      takedownRef,
      flags,
    } = account
    const text = facts({
      handle: handle ?? 'none',
      'further handles': furtherHandles.length === 0 ? null : furtherHandles.join(', '),
      did,
      address: email === null ? 'none' : `${email} (${emailConfirmedAt === null ? 'not confirmed' : 'confirmed'})`,
      status,
      created: minute(createdAt),
      deactivated: minute(deactivatedAt),
      takedown: takedownRef,
      password: account.hasPassword ? 'yes' : 'none',
      'recovery share': shares[account.escrow] ?? account.escrow,
      document: did.startsWith('did:web:') ? (account.didWebHosting ? 'served here' : 'not served here') : null,
      invites: account.invitesDisabled ? 'disabled' : 'enabled',
      'made by': account.madeBy,
      'made for programs':
        account.children.length === 0
          ? null
          : account.children.map((child) => `${nameOf(child)}, ${child.status}`).join('; '),
      flags: flags.length === 0 ? null : flags.map(({ val, labelerDid }) => `${val} by ${labelerDid}`).join(', '),
    })
    return { value: account, text }
  },
})
