import { listCommand } from '../operator-pages.ts'
import { minute } from '../report.ts'

interface ClaimCode {
  code: string
  status: string
  domain?: string
  createdAt: string
  expiresAt: string
}

export const claimCodeListCommand = listCommand<ClaimCode>({
  summary: 'List claim codes, newest first.',
  details: '',
  path: '/v1/accounts/claim-codes',
  member: 'codes',
  columns: {
    CODE: ({ code }) => code,
    STATUS: ({ status }) => status,
    'HANDLES UNDER': ({ domain }) => domain ?? '',
    CREATED: ({ createdAt }) => minute(createdAt)!,
    EXPIRES: ({ expiresAt }) => minute(expiresAt)!,
  },
})
