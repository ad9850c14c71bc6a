import { listCommand } from '../operator-pages.ts'
import { minute } from '../report.ts'

interface ListedOperator {
  did: string
  handle: string | null
  role: string
  givenBy: string
  givenAt: string
}

export const operatorListCommand = listCommand<ListedOperator>({
  summary: 'List the accounts that operate the server, with their roles.',
  details: '',
  path: '/v1/admin/operators',
  member: 'operators',
  columns: {
    HANDLE: ({ handle }) => handle ?? '–',
    DID: ({ did }) => did,
    ROLE: ({ role }) => role,
    'GIVEN BY': ({ givenBy }) => givenBy,
    GIVEN: ({ givenAt }) => minute(givenAt)!,
  },
})
