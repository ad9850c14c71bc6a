import { DAY_SECS } from '../../base/durations.ts'
import { accountCommand } from '../account/operator-accounts.ts'
import { integerOption, Misuse } from '../command.ts'

const DEFAULT_DAYS = 30

export const blobQuarantineCommand = accountCommand({
  summary: 'Put a blob into quarantine: only moderators can read it until the quarantine ends.',
  parameters: ['<cid>'],
  details: 'Nothing is deleted. "blob release" ends a quarantine early, and "blob quarantined" lists all of them.',
  options: {
    days: { value: 'n', doc: `Duration of the quarantine. Default: ${DEFAULT_DAYS}.` },
    'at-end': { value: 'WHAT', doc: 'What happens when it ends: release (the default) or takedown.' },
  },
  async run({ server, account: { did }, positionals: [cid = ''], options }) {
    const atEnd = options['at-end'] ?? 'release'
    if (atEnd !== 'release' && atEnd !== 'takedown') throw new Misuse('--at-end takes "release" or "takedown"')
    const secs = (integerOption(options, 'days', 1) ?? DEFAULT_DAYS) * DAY_SECS
    const value = await server.post<{ endsAt: string }>('/v1/admin/blobs/quarantine', { did, cid, secs, atEnd })
    return { value, text: `${cid} is in quarantine until ${value.endsAt}.` }
  },
})
