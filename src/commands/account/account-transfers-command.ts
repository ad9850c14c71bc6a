import { operated } from '../operated.ts'
import { pages } from '../operator-pages.ts'
import { minute, table } from '../report.ts'

interface TransferView {
  id: string
  did: string
  handle?: string
  status: 'pending' | 'accepted'
  createdAt: string
  expiresAt: string
  acceptedDevicePlatform?: string
}

export const accountTransfersCommand = operated({
  name: 'account transfers',
  summary: 'List account transfers in progress.',
  details: 'Newest first. A pending transfer ends when its code expires. An accepted one has yet to be completed.',
  async run({ server }) {
    const transfers = await pages<TransferView>(
      server,
      '/v1/admin/transfers',
      'transfers',
      {},
      { limit: undefined, pageSize: 200 },
    )
    const rows = transfers.map(({ id, did, handle, status, createdAt, expiresAt, acceptedDevicePlatform }) => [
      id,
      handle ?? did,
      status,
      minute(createdAt)!,
      minute(expiresAt)!,
      acceptedDevicePlatform ?? '',
    ])
    return { value: transfers, text: table(['ID', 'ACCOUNT', 'STATUS', 'BEGUN', 'CODE EXPIRES', 'DEVICE'], rows) }
  },
})
