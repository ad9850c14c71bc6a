import { listCommand } from '../operator-pages.ts'
import { minute } from '../report.ts'

interface ListedSession {
  id: string
  did: string
  handle: string | null
  kind: string
  openedAt: string
  usedAt: string
  openedWith: string | null
  openedFrom: string | null
}

export const operatorSessionsCommand = listCommand<ListedSession>({
  summary: 'List where accounts are signed in as operators.',
  details: 'With the token of a session, lists only the sessions of its account, unless the account is an owner.',
  path: '/v1/admin/sessions',
  member: 'sessions',
  columns: {
    ID: ({ id }) => id,
    ACCOUNT: ({ handle, did }) => handle ?? did,
    KIND: ({ kind }) => kind,
    OPENED: ({ openedAt }) => minute(openedAt)!,
    USED: ({ usedAt }) => minute(usedAt)!,
    WITH: ({ openedWith }) => openedWith ?? '',
    FROM: ({ openedFrom }) => openedFrom ?? '',
  },
})
