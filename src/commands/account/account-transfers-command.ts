import { listCommand } from '../operator-pages.ts'
import { minute } from '../report.ts'

interface TransferView {
  id: string
  did: string
  handle?: string
  status: 'pending' | 'accepted'
  createdAt: string
  expiresAt: string
  acceptedDevicePlatform?: string
}

export const accountTransfersCommand = listCommand<TransferView>({
  summary: 'List account transfers in progress.',
  details: 'Newest first. A pending transfer ends when its code expires. An accepted one has yet to be completed.',
  path: '/v1/admin/transfers',
  member: 'transfers',
  columns: {
    ID: ({ id }) => id,
    ACCOUNT: ({ handle, did }) => handle ?? did,
    STATUS: ({ status }) => status,
    BEGUN: ({ createdAt }) => minute(createdAt)!,
    'CODE EXPIRES': ({ expiresAt }) => minute(expiresAt)!,
    DEVICE: ({ acceptedDevicePlatform }) => acceptedDevicePlatform ?? '',
  },
})
