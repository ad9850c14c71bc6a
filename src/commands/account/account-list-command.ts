import { integerOption } from '../command.ts'
import { adminCommand } from '../admin-command.ts'
import { pages } from '../operator-pages.ts'
import { bytes, minute, table } from '../report.ts'

interface ListedAccount {
  did: string
  handle: string | null
  createdAt: string
  status: string
  totalBytes: number
  flags: { val: string }[]
}

export const accountListCommand = adminCommand({
  summary: 'List the accounts.',
  details: 'Accounts that a watched labeler has flagged come first.',
  options: {
    search: { value: 'TEXT', doc: 'List only accounts whose handle, DID or email address contains this.' },
    status: { value: 'STATUS', doc: 'List only accounts with this status: active, deactivated or takendown.' },
    limit: { value: 'n', doc: 'List at most this many.' },
  },
  async run({ server, options }) {
    const accounts = await pages<ListedAccount>(
      server,
      '/v1/admin/accounts',
      'accounts',
      { q: options['search'], status: options['status'] },
      integerOption(options, 'limit', 1),
    )
    const rows = accounts.map(({ did, handle, createdAt, status: state, totalBytes, flags }) => [
      handle ?? '–',
      did,
      state,
      bytes(totalBytes),
      minute(createdAt)!,
      flags.map(({ val }) => val).join(' '),
    ])
    return { value: accounts, text: table(['HANDLE', 'DID', 'STATUS', 'BLOBS', 'CREATED', 'FLAGS'], rows) }
  },
})
