import { listCommand } from '../operator-pages.ts'
import { minute } from '../report.ts'

interface Quarantined {
  did: string
  handle: string | null
  cid: string
  placedAt: string
  endsAt: string
  atEnd: string
}

export const blobQuarantinedCommand = listCommand<Quarantined>({
  summary: 'List the blobs in quarantine, those whose quarantine ends first at the top.',
  details: '',
  path: '/v1/admin/blobs/quarantine',
  member: 'blobs',
  columns: {
    ACCOUNT: ({ handle, did }) => handle ?? did,
    CID: ({ cid }) => cid,
    SINCE: ({ placedAt }) => minute(placedAt)!,
    UNTIL: ({ endsAt }) => minute(endsAt)!,
    THEN: ({ atEnd }) => atEnd,
  },
})
