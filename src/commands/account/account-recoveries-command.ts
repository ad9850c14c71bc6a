import { operated } from '../operated.ts'
import { pages } from '../operator-pages.ts'
import { minute, table } from '../report.ts'

interface ReleaseView {
  did: string
  requestedAt: string
  availableAt: string
  available: boolean
}

export const accountRecoveriesCommand = operated({
  name: 'account recoveries',
  summary: 'List the recovery shares that have been requested.',
  details: 'Newest first, without releases that were collected or cancelled.',
  async run({ server }) {
    const releases = await pages<ReleaseView>(
      server,
      '/v1/admin/recovery-releases',
      'releases',
      {},
      { limit: undefined, pageSize: 100 },
    )
    const rows = releases.map(({ did, requestedAt, availableAt, available }) => [
      did,
      minute(requestedAt)!,
      minute(availableAt)!,
      available ? 'yes' : 'no',
    ])
    return { value: releases, text: table(['ACCOUNT', 'REQUESTED', 'AVAILABLE FROM', 'AVAILABLE'], rows) }
  },
})
