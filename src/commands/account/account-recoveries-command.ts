import { listCommand } from '../operator-pages.ts'
import { minute } from '../report.ts'

interface ReleaseView {
  did: string
  requestedAt: string
  availableAt: string
  available: boolean
}

export const accountRecoveriesCommand = listCommand<ReleaseView>({
  summary: 'List the recovery shares that have been requested.',
  details: 'Newest first, without releases that were collected or cancelled.',
  path: '/v1/admin/recovery-releases',
  member: 'releases',
  columns: {
    ACCOUNT: ({ did }) => did,
    REQUESTED: ({ requestedAt }) => minute(requestedAt)!,
    'AVAILABLE FROM': ({ availableAt }) => minute(availableAt)!,
    AVAILABLE: ({ available }) => (available ? 'yes' : 'no'),
  },
})
