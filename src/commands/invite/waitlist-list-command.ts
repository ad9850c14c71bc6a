import { listCommand } from '../operator-pages.ts'
import { minute } from '../report.ts'

export const waitlistListCommand = listCommand<{ email: string; handle?: string; createdAt: string }>({
  summary: 'List who is waiting for an account, newest first.',
  details: '',
  path: '/v1/admin/waitlist',
  member: 'signups',
  columns: {
    ADDRESS: ({ email }) => email,
    HANDLE: ({ handle }) => handle ?? '',
    SINCE: ({ createdAt }) => minute(createdAt)!,
  },
})
